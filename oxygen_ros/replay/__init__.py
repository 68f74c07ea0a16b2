# SPDX-License-Identifier: Apache-2.0
"""Recordings: read, understood, played again. No ROS installation is needed to read them."""
