# SPDX-License-Identifier: Apache-2.0
"""What the robot remembers and can account for; no torch, no ROS, no threads."""
