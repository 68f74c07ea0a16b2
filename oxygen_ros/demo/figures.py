# SPDX-License-Identifier: Apache-2.0
"""The figures of a demo run, from what a client received; no ROS here."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
import math
import statistics

ON_TIME_S = 0.002  # a target is on time when published within this of its deadline


@dataclass(slots=True)
class Recording:
    """What the client received between activation and its end."""

    duration_s: float
    max_observation_age_s: float
    action_horizon: int = 0
    first_deadline_ns: int | None = None  # ROS time of tick 0
    ticks: int = 0
    held: int = 0
    on_time: int = 0
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

    def add_tick(
        self, deadline_ns: int, held: bool, reason: str, lateness_s: float, age_s: float
    ) -> None:
        """Count one published target, if its deadline lies within the run."""
        if self.first_deadline_ns is None:
            self.first_deadline_ns = deadline_ns
        if not 0 <= deadline_ns - self.first_deadline_ns < round(self.duration_s * 1e9):
            return
        self.ticks += 1
        self.held += held
        if held:
            self.hold_reasons[reason] = self.hold_reasons.get(reason, 0) + 1
        self.lateness_ms.append(lateness_s * 1e3)
        fresh = not held and 0.0 <= age_s <= self.max_observation_age_s
        self.on_time += fresh and lateness_s <= ON_TIME_S

    def add_images(self, cameras: list[str], stamps_ns: list[int]) -> None:
        """Note the images behind one published result."""
        self.images_used.update(zip(cameras, stamps_ns))


@dataclass(frozen=True, slots=True)
class Figures:
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


def summarise(recording: Recording) -> Figures:
    """Turn a recording into figures; first-token time is the median."""
    lateness = recording.lateness_ms
    chunks_per_s = recording.chunks / recording.duration_s
    return Figures(
        ticks=recording.ticks,
        held=recording.held,
        on_time=recording.on_time / recording.ticks if recording.ticks else 0.0,
        jitter_sd_ms=statistics.pstdev(lateness) if lateness else math.nan,
        chunks_per_s=chunks_per_s,
        actions_per_s=chunks_per_s * recording.action_horizon,
        ttft_ms=statistics.median(recording.ttft_ms) if recording.ttft_ms else None,
        tokens_per_s=statistics.fmean(recording.tokens_per_s) if recording.tokens_per_s else None,
        dialogue_results=recording.dialogue_results,
        scene_graphs=recording.scene_graphs,
        images_encoded=recording.images_encoded,
        images_used=len(recording.images_used),
        images_superseded=recording.images_superseded,
        kv_bytes_shared=recording.kv_bytes_shared,
        kv_bytes_isolated=recording.kv_bytes_isolated,
        hold_reasons=dict(recording.hold_reasons),
    )
