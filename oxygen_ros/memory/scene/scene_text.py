# SPDX-License-Identifier: Apache-2.0
"""Reading the text of a scene graph (the format is described in `scene_grammar`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import re

from .scene_format import END, GRID_CELLS, GRID_DIGITS, SceneFormat

ImageSizes = Mapping[str, tuple[int, int]]
"""Width and height (px) of each camera's image, by camera name."""

_OBJECT = re.compile(rf'([a-z][a-z0-9_-]*)((?: [a-z][a-z0-9_-]*)*) ([0-9]) ([{GRID_DIGITS}]{{4}})')
_RELATION = re.compile(r'([0-9]{1,2}) ([a-z][a-z0-9_-]*) ([0-9]{1,2})')


@dataclass(frozen=True, slots=True)
class SeenObject:
    """One object as one scene graph states it."""

    label: str
    attributes: tuple[str, ...]
    camera: str
    cells: tuple[int, int, int, int]  # first and last column, first and last row of the grid
    box_px: tuple[float, float, float, float] | None = None  # x, y, width, height
    frame_id: str = ''  # of the position; filled in by who can locate the box
    position_m: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class SeenRelation:
    """One relation as one scene graph states it, by index into its objects."""

    subject: int
    predicate: str
    object: int


@dataclass(frozen=True, slots=True)
class SeenScene:
    """What one scene graph states."""

    objects: tuple[SeenObject, ...] = ()
    relations: tuple[SeenRelation, ...] = ()


def box_of_cells(
    cells: tuple[int, int, int, int], size: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Return the pixel box (x, y, width, height) that grid cells cover in an image of a size."""
    left, right, top, bottom = cells
    cell_width, cell_height = size[0] / GRID_CELLS, size[1] / GRID_CELLS
    return (
        left * cell_width,
        top * cell_height,
        (right - left + 1) * cell_width,
        (bottom - top + 1) * cell_height,
    )


def _object(line: str, scene_format: SceneFormat, sizes: ImageSizes) -> SeenObject | None:
    match = _OBJECT.fullmatch(line)
    if match is None:
        return None
    label, attribute_text, camera_number, digits = match.groups()
    attributes = tuple(attribute_text.split())
    words = scene_format.vocabulary
    order = list(words.attributes)
    groups = [words.group_of(attribute) for attribute in attributes]
    left, right, top, bottom = (GRID_DIGITS.index(digit) for digit in digits)
    if (
        label not in words.labels
        or '' in groups
        or len(groups) > scene_format.max_attributes
        or groups != sorted(set(groups), key=order.index)
        or int(camera_number) >= len(scene_format.cameras)
        or left > right
        or top > bottom
    ):
        return None
    camera, cells = scene_format.cameras[int(camera_number)], (left, right, top, bottom)
    box_px = box_of_cells(cells, sizes[camera]) if camera in sizes else None
    return SeenObject(label, attributes, camera, cells, box_px)


def _relation(line: str, scene_format: SceneFormat, num_objects: int) -> SeenRelation | None:
    match = _RELATION.fullmatch(line)
    if match is None:
        return None
    subject, predicate, other = int(match[1]), match[2], int(match[3])
    if (
        predicate not in scene_format.vocabulary.predicates
        or subject == other
        or max(subject, other) >= num_objects
    ):
        return None
    return SeenRelation(subject, predicate, other)


def parse_scene(
    text: str, scene_format: SceneFormat, sizes: ImageSizes | None = None
) -> SeenScene:
    """Read the text of a scene graph; every text that the grammar admits can be read.

    :param sizes: image sizes, for the pixel boxes; other cameras have none.
    :raises ValueError: the text is not a scene graph of this format; names the line.
    """
    *lines, last = text.split('\n')
    if last != END:
        raise ValueError(
            f'line {len(lines) + 1}: expected {END!r} as the last line, got {last!r:.80}'
        )
    objects: list[SeenObject] = []
    relations: list[SeenRelation] = []
    for number, line in enumerate(lines, 1):
        seen = None if relations else _object(line, scene_format, sizes or {})
        relation = None if seen else _relation(line, scene_format, len(objects))
        if seen is not None:
            objects.append(seen)
        elif relation is not None:
            relations.append(relation)
        else:
            raise ValueError(f'line {number}: expected an object or a relation, got {line!r:.80}')
    for name, num, most in (
        ('objects', len(objects), scene_format.max_objects),
        ('relations', len(relations), scene_format.max_relations),
    ):
        if num > most:
            raise ValueError(f'{name}: expected at most {most}, got {num}')
    return SeenScene(tuple(objects), tuple(relations))
