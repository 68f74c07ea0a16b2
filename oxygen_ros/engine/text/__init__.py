# SPDX-License-Identifier: Apache-2.0
"""Text requests: admission, decoding in one batch, delivery."""
