"""The demonstration: cameras, node and client in three processes, over real DDS."""
