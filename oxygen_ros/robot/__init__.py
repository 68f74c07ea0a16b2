# SPDX-License-Identifier: Apache-2.0
"""One robot below ROS: its settings, and what it decides."""
