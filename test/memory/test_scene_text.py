# SPDX-License-Identifier: Apache-2.0
"""The text of a scene graph and what it stands for."""

from __future__ import annotations

from hypothesis import given, strategies
import pytest

from oxygen_ros.memory.scene.scene_format import SceneFormat
from oxygen_ros.memory.scene.scene_text import (
    box_of_cells,
    cells_of_box,
    parse_scene,
    SeenObject,
    SeenRelation,
    SeenScene,
    write_scene,
)

FORMAT = SceneFormat(('front', 'left', 'wrist'), 8, 8)
WORDS = FORMAT.vocabulary
SIZES = {'front': (640, 480), 'wrist': (320, 240)}


def span() -> strategies.SearchStrategy[tuple[int, int]]:
    """Return first and last of a run of cells."""
    cell = strategies.integers(0, 31)
    return strategies.tuples(cell, cell).map(lambda pair: (min(pair), max(pair)))


@strategies.composite
def scenes(draw: strategies.DrawFn) -> SeenScene:
    """Draw any scene of the format."""
    objects = []
    for _ in range(draw(strategies.integers(0, FORMAT.max_objects))):
        groups = draw(strategies.sets(strategies.sampled_from(list(WORDS.attributes)), max_size=2))
        attributes = tuple(
            draw(strategies.sampled_from(words))
            for group, words in WORDS.attributes.items()
            if group in groups
        )
        camera, (left, right), (top, bottom) = (
            draw(strategies.sampled_from(FORMAT.cameras)),
            draw(span()),
            draw(span()),
        )
        cells = (left, right, top, bottom)
        objects.append(
            SeenObject(
                draw(strategies.sampled_from(WORDS.labels)),
                attributes,
                camera,
                cells,
                box_of_cells(cells, SIZES[camera]) if camera in SIZES else None,
            )
        )
    relations = []
    if len(objects) > 1:
        index = strategies.integers(0, len(objects) - 1)
        relations = draw(
            strategies.lists(
                strategies.builds(
                    SeenRelation, index, strategies.sampled_from(WORDS.predicates), index
                ).filter(lambda relation: relation.subject != relation.object),
                max_size=8,
            )
        )
    return SeenScene(tuple(objects), tuple(relations))


@given(scenes())
def test_what_is_written_is_read_back_the_same(scene: SeenScene) -> None:
    assert parse_scene(write_scene(scene, FORMAT), FORMAT, SIZES) == scene


@given(strategies.text(max_size=200))
def test_any_other_text_is_refused_with_its_line(text: str) -> None:
    try:
        parse_scene(text, FORMAT)
    except ValueError as error:
        assert 'line ' in str(error)
    else:
        assert text == '.'


def test_a_box_covers_its_cells() -> None:
    scene = parse_scene('cup red 0 8bck\ntable 1 0vgv\n0 on 1\n.', FORMAT, SIZES)
    assert scene.objects[0].box_px == (160.0, 180.0, 80.0, 135.0)
    assert scene.objects[1].box_px is None  # the size of that camera's image is not known
    assert scene.relations == (SeenRelation(0, 'on', 1),)


@given(span(), span(), strategies.integers(1, 9_000), strategies.integers(1, 9_000))
def test_cells_and_boxes_go_both_ways(
    columns: tuple[int, int], rows: tuple[int, int], width: int, height: int
) -> None:
    cells, size = (*columns, *rows), (width, height)
    assert cells_of_box(box_of_cells(cells, size), size) == cells


def test_a_box_beyond_the_image_is_cut() -> None:
    assert cells_of_box((-50.0, 470.0, 60.0, 100.0), (640, 480)) == (0, 0, 31, 31)
    assert cells_of_box((700.0, 0.0, 5.0, 0.0), (640, 480)) == (31, 31, 0, 0)


def test_a_scene_of_another_format_is_not_written() -> None:
    with pytest.raises(ValueError, match='line 1'):
        write_scene(SeenScene((SeenObject('unicorn', (), 'front', (0, 0, 0, 0)),)), FORMAT)
