# SPDX-License-Identifier: Apache-2.0
"""The scene graph as it is remembered now, merged update by update.

The rules, in the order in which an update applies them:

1. An update from an observation older than the newest merged one changes nothing and is counted.
2. Identity: `matching` says which new object is a remembered one. That object keeps its id and
   `first_seen_ns`; camera, box, position (where the new one has one), stamp and provenance are
   those of the new sighting. Every other new object gets the next id; ids are never used again.
3. Attributes: a word of a group that the object had no word of is added. A different word of a
   group is a conflict: the old word stays until `conflict_votes` updates in a row state the same
   other word, which then takes its place. A group that is not mentioned stays as it was.
4. Relations: whatever an update states of two objects replaces all that was known between these
   two, in either direction. A subject has one object of an exclusive predicate (a cup is on one
   thing): the newest stays. Within one update the first of two relations that exclude each other
   is taken, where the same predicate in both directions excludes itself unless it is symmetric.
5. Ageing: an object is forgotten when it was last seen more than `max_age_s` ago, or when its
   camera was looked at in `max_misses` updates in a row without it being found. A relation is
   forgotten when it was last stated more than `max_age_s` ago, or with either of its objects.
6. Bounds: above `max_objects` (`max_relations`) those unseen (unstated) the longest are forgotten,
   of equal ones the newer id first.

Forgotten here is not lost: the episodic store keeps what was seen, as long as it keeps anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from ...setting import check, setting
from ...types import Provenance, SceneObject, SceneRelation, SceneUpdate
from .matching import match, MatchRules
from .scene_text import SeenObject, SeenScene
from .vocabulary import SceneVocabulary


@dataclass(frozen=True, slots=True)
class GraphRules:
    """How long and how much is remembered, and what counts as a conflict.

    :raises ValueError: names the field or parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'memory'

    max_age_s: float = setting(
        60.0, 'An object unseen for longer is deleted', 's', low=0.1, high=31_536_000.0
    )
    max_misses: int = setting(
        5,
        'Updates of its camera without a sighting after which an object is deleted',
        low=1,
        high=1000,
    )
    max_objects: int = setting(256, 'Most objects in the scene graph', low=1, high=100_000)
    max_relations: int = setting(512, 'Most relations in the scene graph', low=1, high=100_000)
    conflict_votes: int = 2
    exclusive: tuple[str, ...] = ('on', 'in')
    symmetric: tuple[str, ...] = ('near',)
    match: MatchRules = field(default_factory=MatchRules)

    def __post_init__(self) -> None:
        check(self)
        if self.conflict_votes < 1:
            raise ValueError(f'conflict_votes: expected at least 1, got {self.conflict_votes}')


@dataclass(slots=True)
class GraphCounts:
    """What became of everything that updates stated, since the start."""

    num_updates: int = 0
    num_stale: int = 0  # updates older than what was known
    num_added: int = 0
    num_matched: int = 0
    num_forgotten: int = 0
    num_attribute_conflicts: int = 0
    num_attributes_replaced: int = 0
    num_relations_replaced: int = 0
    num_relations_ignored: int = 0  # contradicted by an earlier one of the same update


@dataclass(slots=True)
class _Known:
    scene_object: SceneObject
    num_misses: int = 0
    doubts: dict[str, tuple[str, int]] = field(default_factory=dict)  # group: other word, votes


class SceneGraph:
    """Objects and relations that are remembered now. Used by one thread at a time."""

    def __init__(self, vocabulary: SceneVocabulary, rules: GraphRules | None = None) -> None:
        self.rules = rules or GraphRules()
        self.counts = GraphCounts()
        self._vocabulary = vocabulary
        self._known: dict[int, _Known] = {}
        self._relations: dict[tuple[int, str, int], tuple[int, SceneRelation]] = {}  # stamp, it
        self._next_id = 1
        self._stamp_ns = 0
        self._provenance: Provenance | None = None

    def current(self) -> SceneUpdate:
        """Return the graph as it is; `update_id` 0 before the first update."""
        return SceneUpdate(
            self.counts.num_updates,
            self._stamp_ns,
            tuple(known.scene_object for _, known in sorted(self._known.items())),
            tuple(relation for _, (_, relation) in sorted(self._relations.items())),
            self._provenance,
        )

    def update(self, scene: SeenScene, provenance: Provenance, stamp_ns: int) -> SceneUpdate:
        """Merge what one scene graph states and return the graph after it.

        :param stamp_ns: stamp of the observation behind it (ROS time).
        """
        if stamp_ns < self._stamp_ns:
            self.counts.num_stale += 1
            return self.current()
        self.counts.num_updates += 1
        self._stamp_ns, self._provenance = stamp_ns, provenance
        ids = self._merge_objects(scene, provenance, stamp_ns)
        self._merge_relations(scene, ids, provenance, stamp_ns)
        self._forget(set(ids), provenance.cameras, stamp_ns)
        return self.current()

    def _merge_objects(self, scene: SeenScene, provenance: Provenance, stamp_ns: int) -> list[int]:
        known = [entry.scene_object for entry in self._known.values()]
        found = match(scene.objects, known, self._vocabulary, self.rules.match)
        ids: list[int] = []
        for index, seen in enumerate(scene.objects):
            object_id = found.get(index)
            if object_id is None:
                object_id, self._next_id = self._next_id, self._next_id + 1
                self._known[object_id] = _Known(
                    SceneObject(object_id, seen.label, seen.attributes, first_seen_ns=stamp_ns)
                )
                self.counts.num_added += 1
            else:
                self.counts.num_matched += 1
            entry = self._known[object_id]
            entry.num_misses = 0
            old = entry.scene_object
            located = seen.position_m is not None
            entry.scene_object = replace(
                old,
                attributes=self._merge_attributes(entry, seen),
                camera=seen.camera,
                box_px=seen.box_px,
                frame_id=seen.frame_id if located else old.frame_id,
                position_m=seen.position_m if located else old.position_m,
                last_seen_ns=stamp_ns,
                provenance=provenance,
            )
            ids.append(object_id)
        return ids

    def _merge_attributes(self, entry: _Known, seen: SeenObject) -> tuple[str, ...]:
        group_of = self._vocabulary.group_of
        words = {group_of(word): word for word in entry.scene_object.attributes}
        for word in seen.attributes:
            group = group_of(word)
            if words.setdefault(group, word) == word:
                entry.doubts.pop(group, None)
                continue
            self.counts.num_attribute_conflicts += 1
            other, votes = entry.doubts.get(group, (word, 0))
            votes = votes + 1 if other == word else 1
            entry.doubts[group] = (word, votes)
            if votes >= self.rules.conflict_votes:
                words[group] = word
                del entry.doubts[group]
                self.counts.num_attributes_replaced += 1
        return tuple(words.values())

    def _merge_relations(
        self, scene: SeenScene, ids: list[int], provenance: Provenance, stamp_ns: int
    ) -> None:
        new: dict[tuple[int, str, int], None] = {}
        for seen in scene.relations:
            subject, predicate, other = ids[seen.subject], seen.predicate, ids[seen.object]
            reverse = predicate not in self.rules.symmetric and (other, predicate, subject) in new
            second = predicate in self.rules.exclusive and any(
                key[:2] == (subject, predicate) and key[2] != other for key in new
            )
            if reverse or second:
                self.counts.num_relations_ignored += 1
            else:
                new[(subject, predicate, other)] = None
        pairs = {frozenset((subject, other)) for subject, _, other in new}
        bound = {
            (subject, predicate)
            for subject, predicate, _ in new
            if predicate in self.rules.exclusive
        }
        for key in list(self._relations):
            if frozenset((key[0], key[2])) in pairs or key[:2] in bound:
                del self._relations[key]
                self.counts.num_relations_replaced += key not in new
        for key in new:
            self._relations[key] = (stamp_ns, SceneRelation(*key, provenance))

    def _forget(self, seen: set[int], cameras: tuple[str, ...], stamp_ns: int) -> None:
        rules = self.rules
        oldest_ns = stamp_ns - int(rules.max_age_s * 1e9)
        for object_id, entry in list(self._known.items()):
            if object_id not in seen and entry.scene_object.camera in cameras:
                entry.num_misses += 1
            if entry.scene_object.last_seen_ns < oldest_ns or entry.num_misses >= rules.max_misses:
                self._forget_object(object_id)
        newest = sorted(
            self._known, key=lambda key: (-self._known[key].scene_object.last_seen_ns, key)
        )
        for object_id in newest[rules.max_objects :]:
            self._forget_object(object_id)
        kept = [
            (key, value)
            for key, value in self._relations.items()
            if key[0] in self._known and key[2] in self._known and value[0] >= oldest_ns
        ]
        kept.sort(key=lambda item: (-item[1][0], item[0]))
        self._relations = dict(kept[: rules.max_relations])

    def _forget_object(self, object_id: int) -> None:
        del self._known[object_id]
        self.counts.num_forgotten += 1
