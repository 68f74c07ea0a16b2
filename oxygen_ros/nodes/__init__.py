# SPDX-License-Identifier: Apache-2.0
"""The ROS nodes: with rqt/ the only place that imports rclpy."""
