# SPDX-License-Identifier: Apache-2.0
"""What the node tells of itself: /diagnostics and ~/latency."""
