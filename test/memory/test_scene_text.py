# SPDX-License-Identifier: Apache-2.0
"""The text of a scene graph and what it stands for."""

from __future__ import annotations

from hypothesis import given, strategies

from oxygen_ros.memory.scene.scene_format import GRID_DIGITS, SceneFormat
from oxygen_ros.memory.scene.scene_text import (
    box_of_cells,
    parse_scene,
    SeenObject,
    SeenRelation,
    SeenScene,
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


def text_of(scene: SeenScene) -> str:
    """Return the text that states a scene."""
    lines = [
        ' '.join((seen.label, *seen.attributes, str(FORMAT.cameras.index(seen.camera)), digits))
        for seen in scene.objects
        for digits in [''.join(GRID_DIGITS[cell] for cell in seen.cells)]
    ]
    lines += [
        f'{relation.subject} {relation.predicate} {relation.object}'
        for relation in scene.relations
    ]
    return '\n'.join([*lines, '.'])


@given(scenes())
def test_what_is_stated_is_read(scene: SeenScene) -> None:
    assert parse_scene(text_of(scene), FORMAT, SIZES) == scene


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
