"""Nodes that stand in for a robot: cameras and recordings."""
