# SPDX-License-Identifier: Apache-2.0
"""The KV cache: blocks, prefixes, contexts, and who holds what."""
