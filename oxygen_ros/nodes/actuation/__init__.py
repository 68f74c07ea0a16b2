# SPDX-License-Identifier: Apache-2.0
"""What leaves for the robot: targets by group, and the services that arm it."""
