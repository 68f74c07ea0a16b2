"""What the node tells of itself: /diagnostics and ~/latency."""
