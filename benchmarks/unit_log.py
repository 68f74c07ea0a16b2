# SPDX-License-Identifier: Apache-2.0
"""The time of every unit that an engine ran, put together to stages."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from oxygen_ros.engine.scheduling.cost_model import OnlineCostModel
from oxygen_ros.engine.scheduling.work import UnitKey, UnitKind


class UnitLog(OnlineCostModel):
    """An online cost model that keeps all durations.

    Text prompts must have ended before decode steps are measured: both end in an output head.
    """

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self._num_layers = num_layers
        self.units_ns: dict[UnitKind, list[int]] = defaultdict(list)
        self.prefills_ns: list[int] = []  # all layers of one prefix
        self.steps_ns: dict[int, list[int]] = defaultdict(list)  # by rows, the head included
        self._prefill_ns = 0
        self._layers_ns: list[int] = []

    def observe(self, key: UnitKey, duration_ns: int) -> None:
        """Keep a duration, and close the stage that it ends."""
        super().observe(key, duration_ns)
        self.units_ns[key.kind].append(duration_ns)
        if key.kind is UnitKind.PREFILL:
            self._prefill_ns += duration_ns
        elif key.kind is UnitKind.WRITE_KV and self._prefill_ns:
            self.prefills_ns.append(self._prefill_ns + duration_ns)
            self._prefill_ns = 0
        elif key.kind is UnitKind.DECODE:
            self._layers_ns.append(duration_ns)
        elif key.kind is UnitKind.HEAD:
            if len(self._layers_ns) == self._num_layers:
                self.steps_ns[key.size].append(sum(self._layers_ns) + duration_ns)
            self._layers_ns.clear()


def spread_ms(durations_ns: list[int] | np.ndarray, skip: int = 0) -> dict[str, float]:
    """Return median and p99 in ms, and their number; the first `skip` are warm-up."""
    values = np.asarray(durations_ns, np.float64)[skip:] * 1e-6
    if not len(values):
        return {'p50': float('nan'), 'p99': float('nan'), 'n': 0.0}
    p50, p99 = np.percentile(values, [50, 99])
    return {'p50': float(p50), 'p99': float(p99), 'n': float(len(values))}
