"""Recordings: read, understood, played again. No ROS installation is needed to read them."""
