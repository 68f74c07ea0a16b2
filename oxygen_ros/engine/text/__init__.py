"""Text requests: admission, decoding in one batch, delivery."""
