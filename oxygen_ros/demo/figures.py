# SPDX-License-Identifier: Apache-2.0
"""The figures of a demo run, from what a client received; no ROS here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
import statistics

from ..figures.ticks import expected_deadlines, percentile, summarise_ticks
from ..types import CONTROL_RATE_HZ


@dataclass(slots=True)
class DemoRun:
    """What the client received between activation and its end."""

    duration_s: float
    max_observation_age_s: float
    action_horizon: int = 0
    first_deadline_ns: int | None = None  # ROS time of tick 0
    held: list[bool] = field(default_factory=list)  # of each tick, as the lists below
    numbers: list[int] = field(default_factory=list)
    ages_ms: list[float] = field(default_factory=list)
    hold_reasons: dict[str, int] = field(default_factory=dict)
    lateness_ms: list[float] = field(default_factory=list)
    chunks: int = 0
    dialogue_results: int = 0
    ttft_ms: list[float] = field(default_factory=list)
    tokens_per_s: list[float] = field(default_factory=list)  # of windows in which text was live
    scene_graphs: int = 0
    images_used: set[tuple[str, int]] = field(default_factory=set)
    images_encoded: int = 0
    images_superseded: int = 0
    kv_bytes_shared: int = 0  # when isolated caches would have taken most
    kv_bytes_isolated: int = 0

    @property
    def ticks(self) -> int:
        """Targets that came."""
        return len(self.numbers)

    def add_tick(
        self,
        number: int,
        deadline_ns: int,
        held: bool,
        reason: str,
        lateness_s: float,
        age_s: float,
    ) -> None:
        """Count one published target, if its deadline lies within the run."""
        if self.first_deadline_ns is None:
            self.first_deadline_ns = deadline_ns
        if not 0 <= deadline_ns - self.first_deadline_ns < round(self.duration_s * 1e9):
            return
        self.numbers.append(number)
        self.held.append(held)
        if held:
            self.hold_reasons[reason] = self.hold_reasons.get(reason, 0) + 1
        self.lateness_ms.append(lateness_s * 1e3)
        self.ages_ms.append(age_s * 1e3)

    def add_images(self, cameras: list[str], stamps_ns: list[int]) -> None:
        """Note the images behind one published result."""
        self.images_used.update(zip(cameras, stamps_ns))


@dataclass(frozen=True, slots=True)
class DemoFigures:
    """The summary that the demo prints and writes."""

    ticks: int
    held: int
    on_time: float
    jitter_sd_ms: float
    chunks_per_s: float
    actions_per_s: float
    ttft_ms: float | None
    tokens_per_s: float | None
    dialogue_results: int
    scene_graphs: int
    images_encoded: int
    images_used: int
    images_superseded: int
    kv_bytes_shared: int
    kv_bytes_isolated: int
    hold_reasons: dict[str, int]

    def to_json(self) -> dict[str, object]:
        """Return the figures as JSON values."""
        return asdict(self)


def summarise(run: DemoRun) -> DemoFigures:
    """Turn a run into figures; first-token time is the median."""
    ticks = summarise_ticks(
        run.numbers,
        run.lateness_ms,
        run.held,
        run.ages_ms,
        run.max_observation_age_s * 1e3,
        expected_deadlines(run.duration_s, CONTROL_RATE_HZ),
    )
    chunks_per_s = run.chunks / run.duration_s
    return DemoFigures(
        ticks=ticks.ticks,
        held=ticks.held,
        on_time=ticks.on_time,
        jitter_sd_ms=ticks.lateness_ms.sd,
        chunks_per_s=chunks_per_s,
        actions_per_s=chunks_per_s * run.action_horizon,
        ttft_ms=percentile(run.ttft_ms, 50.0) if run.ttft_ms else None,
        tokens_per_s=statistics.fmean(run.tokens_per_s) if run.tokens_per_s else None,
        dialogue_results=run.dialogue_results,
        scene_graphs=run.scene_graphs,
        images_encoded=run.images_encoded,
        images_used=len(run.images_used),
        images_superseded=run.images_superseded,
        kv_bytes_shared=run.kv_bytes_shared,
        kv_bytes_isolated=run.kv_bytes_isolated,
        hold_reasons=dict(run.hold_reasons),
    )
