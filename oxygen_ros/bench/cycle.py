# SPDX-License-Identifier: Apache-2.0
"""The three-task cycle: each frame brings an action, a dialogue and a scene-graph request."""

from __future__ import annotations

from collections.abc import Sequence
import time
from typing import Any

import numpy as np

from ..engine.config import ActionConfig, ActionMode
from ..engine.engine import EngineEvent
from ..engine.model import VLAModel
from ..engine.scheduling.cost_model import OnlineCostModel
from ..engine.scheduling.work import UnitKey, UnitKind
from ..runtime.work_clock import work_clock
from ..types import ActionChunk, Observation, TaskType
from .machine import count_flop
from .rows import BenchRow, ROWS
from .workbench import MS, SyntheticSensors, Workbench

FRAMES = 10  # of a window
TEXT_TOKENS = 30  # of a request
MAX_LIVE_PREFIXES = 8
FAR_NS = 20 * MS  # deadline of a cycle: unpaced, it only bounds the time between two looks
CYCLE_ROWS = ('isolated_fifo', 'shared_fifo', 'shared_batched', 'full')


class _UnpacedSensors(SyntheticSensors):
    """The next frame as soon as it is wanted, while fewer than `in_flight` have live requests."""

    def __init__(self, num_cameras: int, num_joints: int, in_flight: int) -> None:
        super().__init__(num_cameras, num_joints, period_ns=0, num_observations=0)
        self.in_flight = in_flight
        self.frames_live = 0
        self._cache = [
            super(_UnpacedSensors, self).make(index, 0) for index in range(1, FRAMES + 1)
        ]

    def make(self, observation_id: int, now_ns: int) -> Observation:
        """Return a frame whose pixels were made before the clock ran."""
        made = self._cache[(observation_id - 1) % FRAMES]
        # Stamps differ from window to window, so no feature of an earlier one is reused.
        frames = tuple(
            type(frame)(frame.camera, observation_id, now_ns, frame.image) for frame in made.frames
        )
        return Observation(observation_id, observation_id, now_ns, frames, self.state(now_ns))

    def observation(self, now_ns: int) -> Observation | None:
        if self.frames_live >= self.in_flight:
            return None
        return super().observation(now_ns)


class _CycleBench(Workbench):
    """Two requests for each frame, submitted when its action has left."""

    def __init__(self, model: VLAModel, row: BenchRow) -> None:
        config = row.engine_config(
            ActionConfig(ActionMode.CHUNKED, 1e-6, 10**9),
            max_live_prefixes=MAX_LIVE_PREFIXES,
            text_prefix_max_age_s=0.0,
            observation_period_s=0.0,
        )
        # One slot is being built and one is the newest; isolated caches take one slot for each
        # text request.
        in_flight = MAX_LIVE_PREFIXES - 2
        self.cycle_sensors = _UnpacedSensors(
            model.spec.num_cameras, model.spec.action_dim, in_flight
        )
        super().__init__(
            model,
            config,
            self.cycle_sensors,
            work_clock(model.device),
            # Medians of the whole run, as those of its windows: the last moments are a chance.
            OnlineCostModel(window=4096),
        )
        self.engine.swap(self.cycle_sensors, self._take)
        self._live: dict[int, int] = {}  # observation id: live requests
        self._frame_of: dict[int, int] = {}
        self.in_flight_sum = 0
        self.num_frames = 0

    def _take(self, event: EngineEvent) -> None:
        self.events.append(event)
        if isinstance(event, ActionChunk):
            frame = event.provenance.observation_id
            self._live[frame] = 2
            for task in (TaskType.DIALOGUE, TaskType.SCENE_GRAPH):
                self._num_requests += 1
                self._frame_of[self._num_requests] = frame
                self.ask(max_tokens=TEXT_TOKENS, task=task, request_id=self._num_requests)
            self._count()
            self.in_flight_sum += self.cycle_sensors.frames_live
            self.num_frames += 1
        elif hasattr(event, 'finish_reason'):
            frame = self._frame_of.pop(event.request_id)
            self._live[frame] -= 1
            if not self._live[frame]:
                del self._live[frame]
            self._count()

    def _count(self) -> None:
        self.cycle_sensors.frames_live = len(self._live)

    def window(self) -> float:
        """Run ten frames from empty to drained; return ms a frame."""
        engine = self.engine
        self.events.clear()
        self.cycle_sensors.num_observations += FRAMES
        chunks_before = engine.counters.action_passes
        start_ns = time.perf_counter_ns()
        while (
            engine.counters.action_passes - chunks_before < FRAMES
            or engine.text.num_live
            or engine.is_building
        ):
            now_ns = self.clock.now_ns()
            engine.run_cycle(now_ns, now_ns + FAR_NS)
        return (time.perf_counter_ns() - start_ns) / 1e6 / FRAMES


def _stage_ms(bench: _CycleBench) -> dict[str, float]:
    """Medians of the stages of one frame, from the units' own times in this run."""
    cost_model = bench.engine.scheduler.cost_model
    assert isinstance(cost_model, OnlineCostModel)
    spec = bench.model.spec
    medians = {key: (cost_model.median_ns(key) or 0) * 1e-6 for key in cost_model.observed()}

    def unit(kind: UnitKind) -> float:
        found = [value for key, value in medians.items() if key.kind is kind]
        return found[0] if found else 0.0

    def step(rows: int) -> float:
        def nearest(kind: UnitKind) -> float:
            sizes = [key.size for key in medians if key.kind is kind]
            return (
                medians[UnitKey(kind, min(sizes, key=lambda size: abs(size - rows)))]
                if sizes
                else 0.0
            )

        return spec.num_layers * nearest(UnitKind.DECODE) + nearest(UnitKind.HEAD)

    counters = bench.engine.counters
    rows = round(counters.decode_rows / max(1, counters.decode_steps))
    layers = spec.num_layers
    return {
        'prefix': spec.num_cameras * (unit(UnitKind.INGEST) + unit(UnitKind.VISION))
        + (layers - 1) * unit(UnitKind.PREFILL)
        + unit(UnitKind.WRITE_KV),
        'action': (layers - 1) * unit(UnitKind.ACTION_PROMPT)
        + spec.num_denoising_steps * unit(UnitKind.DENOISE),
        'text_prefill': layers * unit(UnitKind.TEXT_PREFILL) + step(1),
        'decode_step': step(rows),
        'rows': float(rows),
    }


def _predict(stages: dict[str, float], num_prefixes: int) -> float:
    """Ms a frame by the stages: prefixes, one action, two prompts, and 2 x 29 further tokens in
    batches.
    """
    tokens = 2 * (TEXT_TOKENS - 1)
    return (
        num_prefixes * stages['prefix']
        + stages['action']
        + 2 * stages['text_prefill']
        + tokens / stages['rows'] * stages['decode_step']
    )


def _flops(model: VLAModel, row: BenchRow) -> int:
    bench = _CycleBench(model, row)
    return count_flop(bench.window)


def cycle_times(
    model: VLAModel, num_windows: int, names: Sequence[str]
) -> tuple[dict[str, _CycleBench], dict[str, list[float]]]:
    """Run rows window by window in turn; return their engines, and ms a frame in each window."""
    benches = {name: _CycleBench(model, ROWS[name]) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for window in range(num_windows + 1):
        for name, bench in benches.items():
            ms = bench.window()
            if window:  # the first warms up
                times[name].append(ms)
    return benches, times


def measure(model: VLAModel, num_windows: int) -> dict[str, Any]:
    """Run the rows window by window in turn; return `cycle_ms` and `cycle` of the JSON."""
    benches, times = cycle_times(model, num_windows, CYCLE_ROWS)
    stages = {name: _stage_ms(bench) for name, bench in benches.items()}
    medians = {name: float(np.median(values)) for name, values in times.items()}
    predicted = _predict(stages['isolated_fifo'], 3) / _predict(stages['full'], 1)
    flops = {name: _flops(model, ROWS[name]) for name in ('isolated_fifo', 'full')}
    full = benches['full']
    return {
        'cycle_ms': {
            name: {'p50': medians[name], 'p99': float(np.percentile(values, 99))}
            for name, values in times.items()
        },
        'cycle': {
            'speedup': medians['isolated_fifo'] / medians['full'],
            'predicted_speedup': predicted,
            'flop_ratio': flops['isolated_fifo'] / flops['full'],
            'frames_in_flight': full.in_flight_sum / max(1, full.num_frames),
            'rows_per_step': full.engine.counters.decode_rows / full.engine.counters.decode_steps,
            'stage_ms': stages,
            'windows': num_windows,
            'frames_per_window': FRAMES,
            'text_tokens': TEXT_TOKENS,
        },
    }
