"""What the node subscribes to: cameras, joint states, the instruction."""
