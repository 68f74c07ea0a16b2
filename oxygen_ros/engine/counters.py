# SPDX-License-Identifier: Apache-2.0
"""What the engine has done, as plain counts: the evidence of the tests and of the reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from .scheduling.work import UnitKind


@dataclass(slots=True)
class Counters:
    """Counts since construction; only the thread that owns the engine writes."""

    units: Counter[UnitKind] = field(default_factory=Counter)  # units that ran, by kind
    images_encoded: int = 0  # images through the vision tower
    images_reused: int = 0  # images whose features were kept from the last observation
    prefills: int = 0  # prefixes built
    action_passes: int = 0
    decode_steps: int = 0
    decode_rows: int = 0  # rows of all decode steps together
    text_tokens: int = 0  # of all answers
    forced_tokens: int = 0  # of these, not sampled but forced by a grammar
    tokens_recomputed: int = 0  # prompt and text tokens prefilled again after memory was exhausted
    dense_reads: int = 0  # prefixes read by query vectors
    preemptions: int = 0  # text requests that gave back their blocks
    requests_started: int = 0
    requests_ended: int = 0
    requests_refused: int = 0
    observations_started: int = 0

    def reset(self) -> None:
        """Start again from zero."""
        for item in fields(self):
            setattr(self, item.name, Counter() if item.name == 'units' else 0)
