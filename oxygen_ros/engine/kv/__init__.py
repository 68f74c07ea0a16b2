"""The KV cache: blocks, prefixes, contexts, and who holds what."""
