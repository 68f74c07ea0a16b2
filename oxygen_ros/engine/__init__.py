"""The shared-prefix engine: paged KV cache, heterogeneous paged attention, scheduler. Torch; no ROS, no threads."""
