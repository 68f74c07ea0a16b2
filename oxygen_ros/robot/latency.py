# SPDX-License-Identifier: Apache-2.0
"""The figures of ~/latency: of the last second, under the names of the message's fields."""

from __future__ import annotations

from collections import deque
import math

import numpy as np
from numpy.typing import NDArray

from ..engine.scheduling.cost_model import OnlineCostModel
from ..engine.scheduling.timeline import EventKind
from ..engine.scheduling.work import UnitKind
from ..figures.latency_fields import FIELDS
from ..figures.ticks import on_time_ratio, spread_of
from .robot import Robot

_WINDOW_NS = 1_000_000_000
_NUM_EVENTS = 4096  # of the timeline; more than happen in a window


class LatencyFigures:
    """Reads a robot's counts now and then; belongs to the owner's thread.

    Where no tick runs in this process, its fields are NaN.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        # Time, then the counts whose growth over the window is reported.
        self._history: deque[tuple[int, int, int, int]] = deque()

    def restart(self) -> None:
        """Begin a new window, at activation."""
        self._history.clear()

    def read(self, now_ns: int) -> dict[str, float]:
        """Return the figures at a steady time, by field of LatencyReport."""
        return {
            **dict.fromkeys(FIELDS, math.nan),
            **(self._ticks() if self._robot.ticks_here else {}),
            **self._rates(now_ns),
            **self._costs(now_ns),
            **self._memory(now_ns),
        }

    def _ticks(self) -> dict[str, float]:
        actuation = self._robot.actuation
        ticks, held, overruns, on_time = actuation.statistics.counts()
        window = max(1, round(1e9 / actuation.tick.config.period_ns))
        figures = actuation.statistics.window(window)
        return {
            'ticks': float(ticks),
            'held': float(held),
            'overruns': float(overruns),
            'on_time_ratio': on_time_ratio(on_time, ticks, overruns),
            'jitter_sd_ms': figures.lateness_sd_ms,
            'jitter_p99_ms': figures.lateness_p99_ms,
            'jitter_max_ms': figures.lateness_max_ms,
            'observation_age_p50_ms': figures.observation_age_p50_ms,
            'observation_age_p99_ms': figures.observation_age_p99_ms,
        }

    def _rates(self, now_ns: int) -> dict[str, float]:
        robot, counters = self._robot, self._robot.engine.counters
        counts = (
            now_ns,
            counters.action_passes,
            counters.text_tokens,
            counters.observations_started,
        )
        self._history.append(counts)
        # The oldest that is kept is the newest of those that are a window old.
        while len(self._history) > 2 and self._history[1][0] <= now_ns - _WINDOW_NS:
            self._history.popleft()
        rates = [math.nan] * 3
        window_s = (now_ns - self._history[0][0]) * 1e-9
        if window_s > 0.0:
            rates = [(new - old) / window_s for new, old in zip(counts[1:], self._history[0][1:])]
        chunks_per_s, tokens_per_s, observations_per_s = rates
        return {
            'window_s': window_s,
            'chunks_per_s': chunks_per_s,
            'tokens_per_s': tokens_per_s,
            'observations_per_s': observations_per_s,
            'actions_per_s': chunks_per_s * robot.model.spec.action_horizon,
            'preemptions': float(counters.preemptions),
            'text_requests': float(robot.engine.text.num_live),
            'ttft_ms': robot.dialogue.counts.newest_ttft_s * 1e3,
        }

    def _costs(self, now_ns: int) -> dict[str, float]:
        layers = self._robot.model.spec.num_layers
        rows = self._robot.engine.timeline.newest(_NUM_EVENTS)
        rows = rows[rows[:, 2] >= now_ns - _WINDOW_NS]
        passes_ms = spread_of(_durations_ms(rows, EventKind.ACTION))
        waits_ms = spread_of(_durations_ms(rows, EventKind.ACTION_WAIT))
        decode_ms = self._median_ms(UnitKind.DECODE) * layers
        return {
            'vision_ms': self._median_ms(UnitKind.VISION),
            'prefill_ms': self._median_ms(UnitKind.PREFILL) * layers,
            'decode_step_ms': decode_ms + self._median_ms(UnitKind.HEAD),
            'action_pass_ms': passes_ms.p50,
            'action_pass_p99_ms': passes_ms.p99,
            'action_wait_p99_ms': waits_ms.p99,
        }

    def _median_ms(self, kind: UnitKind) -> float:
        """Return the median cost of a unit of a kind, of the size that was measured last."""
        model = self._robot.cost_model
        if not isinstance(model, OnlineCostModel):
            return math.nan
        keys = [key for key in model.observed() if key.kind == kind]
        median_ns = model.median_ns(keys[-1]) if keys else None
        return math.nan if median_ns is None else median_ns * 1e-6

    def _memory(self, now_ns: int) -> dict[str, float]:
        memory = self._robot.memory_report()
        sensors = self._robot.sensors
        ages_ms = [
            (now_ns - frame.steady_ns) * 1e-6
            for camera in sensors.config.cameras
            if (frame := sensors.frame(camera)) is not None
        ]
        return {
            'kv_blocks_free': float(memory.blocks_free),
            'kv_bytes_prefix': float(memory.bytes_prefix),
            'kv_bytes_action': float(memory.bytes_action),
            'kv_bytes_text': float(memory.bytes_text),
            'kv_bytes_shared': float(memory.bytes_referenced),
            'kv_bytes_isolated': float(memory.bytes_isolated),
            'camera_age_max_ms': max(ages_ms, default=math.nan),
        }


def _durations_ms(rows: NDArray[np.int64], kind: EventKind) -> NDArray[np.float64]:
    chosen = rows[rows[:, 0] == kind]
    durations: NDArray[np.float64] = (chosen[:, 2] - chosen[:, 1]) * 1e-6
    return durations
