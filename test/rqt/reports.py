# SPDX-License-Identifier: Apache-2.0
"""Reports as rows, and a clock that only the test moves."""

import numpy as np

from oxygen_ros.figures.latency_fields import COLUMN, FIELDS

STAMP_NS = 1_700_000_000_000_000_000


class Clock:
    """Seconds that stand still until told otherwise."""

    def __init__(self, now_s=1000.0):
        self.now_s = now_s

    def __call__(self):
        return self.now_s


def report(**values):
    """Return a report in which all is well, but for the values given."""
    row = np.full(len(FIELDS), 1.0)
    good = {
        'on_time_ratio': 1.0,
        'overruns': 0.0,
        'held': 0.0,
        'jitter_sd_ms': 0.1,
        'jitter_p99_ms': 0.3,
        'jitter_max_ms': 0.6,
        'action_pass_p99_ms': 5.0,
        'observation_age_p99_ms': 90.0,
        'ttft_ms': 180.0,
        'kv_blocks_free': 200.0,
        'kv_bytes_shared': 1.0 * 2**20,
        'kv_bytes_isolated': 3.0 * 2**20,
        'camera_age_max_ms': 40.0,
    }
    for name, value in (good | values).items():
        row[COLUMN[name]] = value
    return row


def feed(target, clock, count, period_s=0.1, make=lambda index: report(ticks=5.0 * index)):
    """Give reports to a history or a widget, one each period."""
    add = getattr(target, 'add_report', None) or target.add
    for index in range(count):
        clock.now_s += period_s
        add(make(index), STAMP_NS + round(index * period_s * 1e9))
