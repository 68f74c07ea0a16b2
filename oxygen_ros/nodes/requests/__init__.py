# SPDX-License-Identifier: Apache-2.0
"""What people and programs ask of the node: dialogue, scene graph, instruction."""
