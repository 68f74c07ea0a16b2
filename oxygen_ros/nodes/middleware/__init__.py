# SPDX-License-Identifier: Apache-2.0
"""Workarounds for rclpy, rmw_fastrtps and Fast DDS, a file each: issue, version, when it may go.

Seen with rclpy 9.1.2, rmw_fastrtps 9.3.3 and Fast DDS 3.2.3, the wheels of PyPI (ROS 2 Kilted).
"""
