# SPDX-License-Identifier: Apache-2.0
"""The fields of oxygen_ros/msg/LatencyReport, and one report as a row of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# In the order of the message, header aside.
FIELDS = (
    'window_s',
    'ticks',
    'on_time_ratio',
    'held',
    'overruns',
    'jitter_sd_ms',
    'jitter_p99_ms',
    'jitter_max_ms',
    'observation_age_p50_ms',
    'observation_age_p99_ms',
    'vision_ms',
    'prefill_ms',
    'action_pass_ms',
    'action_pass_p99_ms',
    'decode_step_ms',
    'action_wait_p99_ms',
    'ttft_ms',
    'tokens_per_s',
    'chunks_per_s',
    'actions_per_s',
    'observations_per_s',
    'text_requests',
    'preemptions',
    'kv_blocks_free',
    'kv_bytes_prefix',
    'kv_bytes_action',
    'kv_bytes_text',
    'kv_bytes_shared',
    'kv_bytes_isolated',
    'camera_age_max_ms',
)
COLUMN = {name: index for index, name in enumerate(FIELDS)}


def row_of(report: Any) -> NDArray[np.float64]:
    """Return a LatencyReport as [num_fields] float64; NaN for a field that it does not have."""
    nan = float('nan')
    return np.array([getattr(report, name, nan) for name in FIELDS], dtype=np.float64)


def stamp_ns_of(header: Any) -> int:
    """Return the stamp of a header, made by ROS or read from a recording (ROS time)."""
    return int(header.stamp.sec) * 1_000_000_000 + int(header.stamp.nanosec)


def growth(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a counter grew by at each reading; 0 at the first.

    A counter that fell was started again: all it has counted by then is growth.
    """
    if not len(counts):
        return np.zeros(0)
    steps = np.diff(counts, prepend=counts[0])
    restarted = steps < 0.0
    steps[restarted] = counts[restarted]
    return steps


def kv_reduction(shared_bytes: ArrayLike, isolated_bytes: ArrayLike) -> NDArray[np.float64]:
    """Return the share of memory that is saved, 0 to 1; NaN where isolated caches take nothing."""
    shared, isolated = np.asarray(shared_bytes, dtype=np.float64), np.asarray(isolated_bytes)
    saved: NDArray[np.float64] = 1.0 - shared / np.where(isolated > 0.0, isolated, np.nan)
    return saved
