# SPDX-License-Identifier: Apache-2.0
"""When a figure is good, worth a look or bad; the same limits for window, terminal and page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
import math

from .claims import CLAIM
from .ticks import MAX_OBSERVATION_AGE_MS, ON_TIME_MS


class Level(Enum):
    """How good a figure is."""

    UNKNOWN = 'unknown'  # nothing was measured
    GOOD = 'good'
    WARN = 'warn'
    BAD = 'bad'


@dataclass(frozen=True, slots=True)
class Threshold:
    """Two limits of a figure, in its own unit; a figure that meets a limit exactly is within."""

    warn: float
    bad: float
    lower_is_better: bool = True

    def judge(self, value: float) -> Level:
        """Return how good a value is."""
        if math.isnan(value):
            return Level.UNKNOWN
        sign = 1.0 if self.lower_is_better else -1.0
        if sign * value > sign * self.bad:
            return Level.BAD
        return Level.WARN if sign * value > sign * self.warn else Level.GOOD


# By field of LatencyReport. Where the project claims a figure, the claim is the first limit.
THRESHOLDS = {
    'on_time_ratio': Threshold(CLAIM['on_time'].limit, 0.95, lower_is_better=False),
    'jitter_sd_ms': Threshold(CLAIM['jitter_sd'].limit, 2.0),
    'jitter_p99_ms': Threshold(1.0, ON_TIME_MS),
    'jitter_max_ms': Threshold(ON_TIME_MS, 20.0),  # 20 ms: a whole tick
    'observation_age_p99_ms': Threshold(150.0, MAX_OBSERVATION_AGE_MS),  # 150: a pass a tick
    'action_wait_p99_ms': Threshold(CLAIM['action_wait'].limit, 20.0),  # 20 ms: a whole tick
    'ttft_ms': Threshold(CLAIM['ttft_p99'].limit, 1000.0),
    'kv_blocks_free': Threshold(8.0, 1.0, lower_is_better=False),
    'camera_age_max_ms': Threshold(200.0, 1000.0),  # beyond 1 s an image is not used
}


def judge(field: str, value: float) -> Level:
    """Return how good a field's value is; without limits it is good when it is known."""
    threshold = THRESHOLDS.get(field)
    if threshold is None:
        return Level.UNKNOWN if math.isnan(value) else Level.GOOD
    return threshold.judge(value)
