# SPDX-License-Identifier: Apache-2.0
"""Which object of a new scene graph is which remembered one.

Two objects can be the same only if their labels are equal and

- both have a position in the same frame, at most `distance_m` apart; the score is 1 at the same
  place and 0 at that distance; or, where one has no such position,
- both were seen by the same camera with boxes that overlap (intersection over union) by at least
  `overlap`; the score is the overlap.

Two cameras' objects without positions are never the same: nothing says so. Each attribute group in
which the two differ costs `conflict_cost` of the score. Pairs are then taken from the best score
down, equal scores in the order of the remembered ids and then of the new objects, each object at
most once, so that the result does not depend on chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from ...types import SceneObject
from .scene_text import SeenObject
from .vocabulary import SceneVocabulary

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class MatchRules:
    """Thresholds of identity.

    :raises ValueError: names the field, what was expected and what came.
    """

    distance_m: float = 0.15
    overlap: float = 0.3  # intersection over union, 0 to 1
    conflict_cost: float = 0.2

    def __post_init__(self) -> None:
        if not 0.0 < self.distance_m < math.inf:
            raise ValueError(f'distance_m: expected above 0, got {self.distance_m}')
        if not 0.0 < self.overlap <= 1.0:
            raise ValueError(f'overlap: expected above 0 and at most 1, got {self.overlap}')
        if not 0.0 <= self.conflict_cost <= 1.0:
            raise ValueError(f'conflict_cost: expected 0 to 1, got {self.conflict_cost}')


def overlap(one: Box, other: Box) -> float:
    """Intersection over union of two boxes (x, y, width, height); 0 where they are apart."""
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    if width <= 0.0 or height <= 0.0:
        return 0.0
    common = width * height
    return common / (one[2] * one[3] + other[2] * other[3] - common)


def score(
    seen: SeenObject, known: SceneObject, vocabulary: SceneVocabulary, rules: MatchRules
) -> float | None:
    """Return how well two objects match, at most 1; None where they cannot be the same."""
    if seen.label != known.label:
        return None
    if seen.position_m and known.position_m and seen.frame_id == known.frame_id:
        distance = math.dist(seen.position_m, known.position_m)
        if distance > rules.distance_m:
            return None
        likeness = 1.0 - distance / rules.distance_m
    elif seen.camera == known.camera and seen.box_px and known.box_px:
        likeness = overlap(seen.box_px, known.box_px)
        if likeness < rules.overlap:
            return None
    else:
        return None
    groups = {vocabulary.group_of(word): word for word in known.attributes}
    num_conflicts = sum(
        groups.get(vocabulary.group_of(word), word) != word for word in seen.attributes
    )
    return likeness - num_conflicts * rules.conflict_cost


def match(
    seen: Sequence[SeenObject],
    known: Sequence[SceneObject],
    vocabulary: SceneVocabulary,
    rules: MatchRules,
) -> dict[int, int]:
    """Return the remembered object's id of each new object that has one, by its index."""
    pairs: list[tuple[float, int, int]] = []
    for index, new in enumerate(seen):
        for old in known:
            likeness = score(new, old, vocabulary, rules)
            if likeness is not None:
                pairs.append((-likeness, old.object_id, index))
    found: dict[int, int] = {}
    taken: set[int] = set()
    for _, object_id, index in sorted(pairs):
        if index not in found and object_id not in taken:
            found[index] = object_id
            taken.add(object_id)
    return found
