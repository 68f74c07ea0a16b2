"""The ROS nodes: with rqt/ the only place that imports rclpy."""
