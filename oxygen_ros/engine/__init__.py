# SPDX-License-Identifier: Apache-2.0
"""The shared-prefix engine: paged KV cache, heterogeneous paged attention, scheduler.

Torch only; no ROS, no threads.
"""
