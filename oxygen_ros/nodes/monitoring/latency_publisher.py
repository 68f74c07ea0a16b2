# SPDX-License-Identifier: Apache-2.0
"""~/latency: the figures of the last second, some ten times a second."""

from __future__ import annotations

from collections import deque
import math
import time

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Header

import oxygen_ros.msg as msg

from ...engine.scheduling.cost_model import OnlineCostModel
from ...engine.scheduling.timeline import EventKind
from ...engine.scheduling.work import UnitKind
from ...runtime.runtime import Runtime
from ..actuation.target_publisher import TargetPublisher
from ..clocks import ClockBridge, stamp_of
from ..middleware.endpoints import make_publisher
from ..requests.dialogue_server import DialogueServer
from .timeline_publisher import TimelinePublisher

_TICK_FIELDS = (
    'ticks',
    'on_time_ratio',
    'held',
    'overruns',
    'jitter_sd_ms',
    'jitter_p99_ms',
    'jitter_max_ms',
    'observation_age_p50_ms',
    'observation_age_p99_ms',
)
_WINDOW_NS = 1_000_000_000
_NUM_EVENTS = 4096  # of the timeline; more than happen in a window


class LatencyPublisher:
    """Made at configure; `publish` belongs to the executor's thread.

    :param targets: of the tick; None: it runs in another process, and its fields are NaN.
    """

    def __init__(
        self,
        node: Node,
        runtime: Runtime,
        targets: TargetPublisher | None,
        dialogue: DialogueServer,
        clock: ClockBridge,
    ) -> None:
        self._node = node
        self._runtime = runtime
        self._statistics = None if targets is None else targets.statistics
        self._dialogue = dialogue
        self._clock = clock
        self._window_ticks = max(1, round(1e9 / runtime.config.tick.period_ns))
        # Time, then the counts whose growth over the window is reported.
        self._history: deque[tuple[int, int, int, int]] = deque()
        self._publisher = make_publisher(node, msg.LatencyReport, '~/latency', 10)
        self._timeline = TimelinePublisher(node, runtime.engine.timeline, clock)

    def restart(self) -> None:
        """Begin a new window, at activation."""
        self._history.clear()

    def publish(self) -> None:
        """Publish one report, and what the engine ran since the last one."""
        now_ns = time.monotonic_ns()
        report = msg.LatencyReport(header=Header(stamp=stamp_of(now_ns + self._clock.offset_ns())))
        self._fill_ticks(report)
        self._fill_rates(report, now_ns)
        self._fill_costs(report, now_ns)
        self._fill_memory(report, now_ns)
        self._publisher.publish(report)
        self._timeline.publish()

    def destroy(self) -> None:
        """Take the topics back."""
        self._timeline.destroy()
        self._node.destroy_publisher(self._publisher)

    def _fill_ticks(self, report: msg.LatencyReport) -> None:
        if self._statistics is None:
            for name in _TICK_FIELDS:
                setattr(report, name, math.nan)
            return
        ticks, held, overruns, on_time = self._statistics.counts()
        figures = self._statistics.window(self._window_ticks)
        report.ticks, report.held, report.overruns = float(ticks), float(held), float(overruns)
        report.on_time_ratio = on_time / (ticks + overruns) if ticks else math.nan
        report.jitter_sd_ms = figures.lateness_sd_ms
        report.jitter_p99_ms = figures.lateness_p99_ms
        report.jitter_max_ms = figures.lateness_max_ms
        report.observation_age_p50_ms = figures.observation_age_p50_ms
        report.observation_age_p99_ms = figures.observation_age_p99_ms

    def _fill_rates(self, report: msg.LatencyReport, now_ns: int) -> None:
        counters = self._runtime.engine.counters
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
        report.window_s = window_s
        report.chunks_per_s, report.tokens_per_s, report.observations_per_s = rates
        report.actions_per_s = rates[0] * self._runtime.model.spec.action_horizon
        report.preemptions = float(counters.preemptions)
        report.text_requests = float(self._runtime.engine.text.num_live)
        report.ttft_ms = self._dialogue.counts.newest_ttft_s * 1e3

    def _fill_costs(self, report: msg.LatencyReport, now_ns: int) -> None:
        layers = self._runtime.model.spec.num_layers
        costs = {
            kind: self._median_ms(kind)
            for kind in (UnitKind.VISION, UnitKind.PREFILL, UnitKind.DECODE, UnitKind.HEAD)
        }
        report.vision_ms = costs[UnitKind.VISION]
        report.prefill_ms = costs[UnitKind.PREFILL] * layers
        report.decode_step_ms = costs[UnitKind.DECODE] * layers + costs[UnitKind.HEAD]
        since_ns = now_ns - _WINDOW_NS
        rows = self._runtime.engine.timeline.newest(_NUM_EVENTS)
        rows = rows[rows[:, 2] >= since_ns]
        passes_ms = _durations_ms(rows, EventKind.ACTION)
        waits_ms = _durations_ms(rows, EventKind.ACTION_WAIT)
        report.action_pass_ms = _percentile(passes_ms, 50.0)
        report.action_pass_p99_ms = _percentile(passes_ms, 99.0)
        report.action_wait_p99_ms = _percentile(waits_ms, 99.0)

    def _median_ms(self, kind: UnitKind) -> float:
        """Return the median cost of a unit of a kind, of the size that was measured last."""
        model = self._runtime.cost_model
        if not isinstance(model, OnlineCostModel):
            return math.nan
        keys = [key for key in model.observed() if key.kind == kind]
        median_ns = model.median_ns(keys[-1]) if keys else None
        return math.nan if median_ns is None else median_ns * 1e-6

    def _fill_memory(self, report: msg.LatencyReport, now_ns: int) -> None:
        memory = self._runtime.memory_report()
        report.kv_blocks_free = float(memory.blocks_free)
        report.kv_bytes_prefix = float(memory.bytes_prefix)
        report.kv_bytes_action = float(memory.bytes_action)
        report.kv_bytes_text = float(memory.bytes_text)
        report.kv_bytes_shared = float(memory.bytes_referenced)
        report.kv_bytes_isolated = float(memory.bytes_isolated)
        sensors = self._runtime.sensors
        ages_ms = [
            (now_ns - frame.steady_ns) * 1e-6
            for camera in sensors.config.cameras
            if (frame := sensors.frame(camera)) is not None
        ]
        report.camera_age_max_ms = max(ages_ms, default=math.nan)


def _durations_ms(rows: np.ndarray, kind: EventKind) -> np.ndarray:
    chosen = rows[rows[:, 0] == kind]
    durations: np.ndarray = (chosen[:, 2] - chosen[:, 1]) * 1e-6
    return durations


def _percentile(values: np.ndarray, percent: float) -> float:
    return float(np.percentile(values, percent)) if len(values) else math.nan
