# SPDX-License-Identifier: Apache-2.0
"""The demonstration: cameras, node and client in three processes, over real DDS."""
