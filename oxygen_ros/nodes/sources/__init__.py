# SPDX-License-Identifier: Apache-2.0
"""Nodes that stand in for a robot: cameras and recordings."""
