# SPDX-License-Identifier: Apache-2.0
"""What the node subscribes to: cameras, joint states, the instruction."""
