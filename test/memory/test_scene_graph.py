# SPDX-License-Identifier: Apache-2.0
"""How the remembered scene changes, update by update."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oxygen_ros.memory.scene.matching import MatchRules, overlap
from oxygen_ros.memory.scene.scene_graph import GraphRules, SceneGraph
from oxygen_ros.memory.scene.scene_text import SeenObject, SeenRelation, SeenScene
from oxygen_ros.memory.scene.vocabulary import SceneVocabulary
from oxygen_ros.types import Provenance, SceneUpdate

SECOND = 1_000_000_000
Merge = Callable[..., SceneUpdate]


def seen(
    label: str = 'cup',
    *attributes: str,
    x: float = 0.0,
    camera: str = 'front',
    at: tuple[float, float, float] | None = None,
) -> SeenObject:
    """Return a 100 px square at column x, or without a box at a place on the base frame."""
    box = None if at else (x, 0.0, 100.0, 100.0)
    return SeenObject(label, attributes, camera, (0, 0, 0, 0), box, 'base' if at else '', at)


class Memory:
    """A scene graph that is told one scene a second."""

    def __init__(self, make_provenance: Callable[..., Provenance], **rules: object) -> None:
        self.graph = SceneGraph(SceneVocabulary(), GraphRules(**rules))  # type: ignore[arg-type]
        self.make_provenance = make_provenance
        self.time_s = 0

    def tell(
        self,
        *objects: SeenObject,
        relations: tuple[tuple[int, str, int], ...] = (),
        after_s: int = 1,
        cameras: tuple[str, ...] = ('front', 'left'),
    ) -> SceneUpdate:
        self.time_s += after_s
        provenance = self.make_provenance(self.time_s, self.time_s * SECOND, cameras)
        scene = SeenScene(objects, tuple(SeenRelation(*triple) for triple in relations))
        update = self.graph.update(scene, provenance, self.time_s * SECOND)
        assert all(known.provenance is not None for known in update.objects)
        ids = {known.object_id for known in update.objects}
        assert all({edge.subject_id, edge.object_id} <= ids for edge in update.relations)
        return update


@pytest.fixture
def memory(make_provenance: Callable[..., Provenance]) -> Memory:
    """Return an empty memory with the rules' defaults."""
    return Memory(make_provenance)


def ids(update: SceneUpdate) -> list[int]:
    """Return the ids of the remembered objects."""
    return [known.object_id for known in update.objects]


def triples(update: SceneUpdate) -> list[tuple[int, str, int]]:
    """Return the remembered relations."""
    return [(edge.subject_id, edge.predicate, edge.object_id) for edge in update.relations]


def test_an_object_keeps_its_id_while_its_box_overlaps(memory: Memory) -> None:
    assert ids(memory.tell(seen(x=0))) == [1]
    update = memory.tell(seen(x=40))
    assert ids(update) == [1]
    assert update.objects[0].first_seen_ns == SECOND
    assert update.objects[0].last_seen_ns == 2 * SECOND
    assert update.objects[0].box_px == (40.0, 0.0, 100.0, 100.0)
    assert update.objects[0].provenance == memory.make_provenance(2, 2 * SECOND)
    assert ids(memory.tell(seen(x=100))) == [1, 2]  # overlap 0.25, below the threshold


def test_label_and_camera_keep_objects_apart(memory: Memory) -> None:
    update = memory.tell(seen('cup'), seen('mug'), seen('cup', camera='left'))
    assert ids(update) == [1, 2, 3]
    assert ids(memory.tell(seen('cup', camera='left'), seen('mug'), seen('cup'))) == [1, 2, 3]


def test_a_position_decides_over_boxes_and_joins_cameras(memory: Memory) -> None:
    memory.tell(seen(at=(0.5, 0.0, 0.1)))
    update = memory.tell(seen(at=(0.55, 0.0, 0.1), camera='left'))
    assert ids(update) == [1]
    assert update.objects[0].position_m == (0.55, 0.0, 0.1)
    assert ids(memory.tell(seen(at=(0.75, 0.0, 0.1)))) == [1, 2]


def test_a_known_position_stays_where_the_new_sighting_has_none(memory: Memory) -> None:
    box = SeenObject(
        'cup', (), 'front', (0, 0, 0, 0), (0.0, 0.0, 9.0, 9.0), 'base', (1.0, 2.0, 3.0)
    )
    memory.tell(box)
    update = memory.tell(SeenObject('cup', (), 'front', (0, 0, 0, 0), (0.0, 0.0, 9.0, 9.0)))
    assert ids(update) == [1]
    assert (update.objects[0].frame_id, update.objects[0].position_m) == ('base', (1.0, 2.0, 3.0))


def test_the_best_pairs_are_taken_first_each_object_once(memory: Memory) -> None:
    memory.tell(seen(x=0), seen(x=50))
    update = memory.tell(seen(x=45), seen(x=5))
    assert {known.object_id: known.box_px[0] for known in update.objects if known.box_px} == {
        1: 5.0,
        2: 45.0,
    }
    assert ids(memory.tell(seen(x=5), seen(x=5), seen(x=45))) == [1, 2, 3]


def test_a_different_colour_tips_the_balance_between_equal_boxes(memory: Memory) -> None:
    memory.tell(seen('cup', 'red', x=0), seen('cup', 'blue', x=20))
    update = memory.tell(seen('cup', 'blue', x=10))
    assert {known.object_id: known.last_seen_ns for known in update.objects} == {
        1: SECOND,
        2: 2 * SECOND,
    }


def test_a_conflicting_attribute_needs_votes_in_a_row(memory: Memory) -> None:
    memory.tell(seen('cup', 'red'))
    assert memory.tell(seen('cup', 'blue', 'empty')).objects[0].attributes == ('red', 'empty')
    assert memory.tell(seen('cup', 'red')).objects[0].attributes == ('red', 'empty')
    assert memory.tell(seen('cup', 'blue')).objects[0].attributes == ('red', 'empty')
    assert memory.tell(seen('cup', 'green')).objects[0].attributes == ('red', 'empty')
    assert memory.tell(seen('cup', 'green')).objects[0].attributes == ('green', 'empty')
    assert memory.graph.counts.num_attribute_conflicts == 4
    assert memory.graph.counts.num_attributes_replaced == 1


def test_what_is_said_of_a_pair_replaces_what_was_known_of_it(memory: Memory) -> None:
    cup, table, plate = seen('cup'), seen('table'), seen('plate')
    both = memory.tell(cup, table, plate, relations=((0, 'on', 1), (2, 'near', 0)))
    assert triples(both) == [(1, 'on', 2), (3, 'near', 1)]
    update = memory.tell(table, cup, relations=((0, 'left_of', 1),))
    assert triples(update) == [(2, 'left_of', 1), (3, 'near', 1)]
    assert memory.graph.counts.num_relations_replaced == 1
    assert triples(memory.tell(table, cup)) == triples(update)


def test_a_thing_is_on_one_other_thing_only(memory: Memory) -> None:
    cup, table, plate = seen('cup'), seen('table'), seen('plate')
    update = memory.tell(cup, table, plate, relations=((0, 'on', 1), (0, 'on', 2), (2, 'on', 1)))
    assert triples(update) == [(1, 'on', 2), (3, 'on', 2)]
    assert triples(memory.tell(cup, plate, relations=((0, 'on', 1),))) == [
        (1, 'on', 3),
        (3, 'on', 2),
    ]


def test_a_predicate_contradicts_its_reverse_unless_symmetric(memory: Memory) -> None:
    cup, table = seen('cup'), seen('table')
    update = memory.tell(
        cup, table, relations=((0, 'behind', 1), (1, 'behind', 0), (0, 'near', 1), (1, 'near', 0))
    )
    assert triples(update) == [(1, 'behind', 2), (1, 'near', 2), (2, 'near', 1)]
    assert memory.graph.counts.num_relations_ignored == 1


def test_an_unseen_object_is_forgotten_after_misses_with_its_relations(memory: Memory) -> None:
    memory.tell(seen('cup'), seen('table'), relations=((0, 'on', 1),))
    for _ in range(4):
        assert ids(memory.tell(seen('table'))) == [1, 2]
    update = memory.tell(seen('table'))
    assert ids(update) == [2]
    assert triples(update) == []
    assert ids(memory.tell(seen('cup'))) == [2, 3]  # an id is never used again


def test_a_camera_that_was_not_looked_at_is_no_miss_but_age_counts(memory: Memory) -> None:
    memory.tell(seen('cup', camera='left'))
    for _ in range(10):
        assert ids(memory.tell(cameras=('front',))) == [1]
    assert ids(memory.tell(cameras=('front',), after_s=50)) == [1]
    assert ids(memory.tell(cameras=('front',), after_s=1)) == []


def test_a_relation_not_restated_is_forgotten_by_age(memory: Memory) -> None:
    cup, table = seen('cup'), seen('table')
    memory.tell(cup, table, relations=((0, 'on', 1),))
    assert triples(memory.tell(cup, table, after_s=60)) == [(1, 'on', 2)]
    assert triples(memory.tell(cup, table, after_s=1)) == []


def test_numbers_are_bounded_and_the_longest_unseen_go_first(
    make_provenance: Callable[..., Provenance],
) -> None:
    memory = Memory(make_provenance, max_objects=3, max_relations=2)
    memory.tell(seen('cup'), seen('mug'))
    update = memory.tell(
        seen('box'),
        seen('cup'),
        seen('pan'),
        relations=((0, 'near', 1), (0, 'near', 2), (1, 'near', 2)),
    )
    assert [known.label for known in update.objects] == ['cup', 'box', 'pan']
    assert triples(update) == [(1, 'near', 4), (3, 'near', 1)]
    assert memory.graph.counts.num_forgotten == 1


def test_an_older_observation_changes_nothing(memory: Memory) -> None:
    before = memory.tell(seen('cup'), after_s=10)
    assert memory.tell(seen('mug'), after_s=-5) == before
    assert memory.graph.counts.num_stale == 1


def test_the_graph_is_empty_before_the_first_update(memory: Memory) -> None:
    assert memory.graph.current() == SceneUpdate(0, 0)


def test_overlap_is_intersection_over_union() -> None:
    assert overlap((0, 0, 2, 2), (1, 1, 2, 2)) == pytest.approx(1 / 7)
    assert overlap((0, 0, 2, 2), (2, 0, 2, 2)) == 0.0
    assert overlap((0, 0, 0, 0), (0, 0, 0, 0)) == 0.0


@pytest.mark.parametrize(
    ('rules', 'kwargs', 'field'),
    [
        (GraphRules, {'max_age_s': 0.0}, 'max_age_s'),
        (GraphRules, {'max_misses': 0}, 'max_misses'),
        (GraphRules, {'conflict_votes': 0}, 'conflict_votes'),
        (MatchRules, {'distance_m': 0.0}, 'distance_m'),
        (MatchRules, {'overlap': 1.5}, 'overlap'),
        (MatchRules, {'conflict_cost': -1.0}, 'conflict_cost'),
    ],
)
def test_a_wrong_rule_names_its_field(
    rules: Callable[..., object], kwargs: dict[str, float], field: str
) -> None:
    with pytest.raises(ValueError, match=f'{field}: expected'):
        rules(**kwargs)
