# SPDX-License-Identifier: Apache-2.0
"""Positions from boxes agree with the point that was projected."""

from __future__ import annotations

from hypothesis import given, strategies
import numpy as np
from numpy.typing import NDArray
import pytest

from oxygen_ros.memory.scene.projection import (
    CameraGeometry,
    position_from_depth,
    position_on_plane,
)


def looking_down(height_m: float = 1.0) -> CameraGeometry:
    """Return a camera above the origin that looks straight down; image x is the frame's x."""
    pose = np.diag([1.0, -1.0, -1.0, 1.0])
    pose[2, 3] = height_m
    return CameraGeometry(500.0, 500.0, 320.0, 240.0, pose, 'table')


def depth(value: float) -> NDArray[np.float32]:
    """Return a depth image of one value."""
    return np.full((480, 640), value, dtype=np.float32)


@given(strategies.floats(-0.5, 0.5), strategies.floats(-0.4, 0.4))
def test_depth_and_plane_find_the_point_that_was_projected(x: float, y: float) -> None:
    u, v = 320.0 + 500.0 * x, 240.0 - 500.0 * y
    box = (u - 20.0, v - 20.0, 40.0, 40.0)
    assert position_from_depth(box, depth(1.0), looking_down()) == pytest.approx(
        (x, y, 0.0), abs=1e-6
    )
    foot = (u - 20.0, v - 40.0, 40.0, 40.0)
    assert position_on_plane(foot, looking_down(), 0.0) == pytest.approx((x, y, 0.0), abs=1e-6)
    raised = position_on_plane(foot, looking_down(), 0.5)
    assert raised == pytest.approx((x / 2, y / 2, 0.5), abs=1e-6)


def test_depth_is_that_of_the_object_before_its_background() -> None:
    image = depth(2.0)
    image[230:250, 310:330] = 0.8
    image[232:236, 312:316] = np.nan
    image[236:238, 310:330] = 0.0
    found = position_from_depth((300.0, 220.0, 40.0, 40.0), image, looking_down())
    assert found == pytest.approx((0.0, 0.0, 0.2), abs=1e-6)


def test_no_depth_no_position() -> None:
    for image in (depth(0.0), depth(float('nan'))):
        assert position_from_depth((300.0, 220.0, 40.0, 40.0), image, looking_down()) is None
    for box in ((900.0, 0.0, 10.0, 10.0), (-50.0, -50.0, 10.0, 10.0), (5.0, 5.0, 0.0, 0.0)):
        assert position_from_depth(box, depth(0.0), looking_down()) is None


def test_a_ray_that_misses_the_plane_finds_nothing() -> None:
    box = (300.0, 220.0, 40.0, 40.0)
    assert position_on_plane(box, looking_down(1.0), 2.0) is None  # the plane is behind it
    level = CameraGeometry(
        500.0,
        500.0,
        320.0,
        240.0,
        np.array(
            [
                [0.0, 0.0, 1.0, 0.0],
                [-1.0, 0.0, 0.0, 0.0],
                [0.0, -1.0, 0.0, 1.0],
                [0.0, 0.0, 0.0, 1.0],
            ]
        ),
        'map',
    )
    assert position_on_plane((300.0, 200.0, 40.0, 40.0), level, 0.0) is None  # at the horizon


@pytest.mark.parametrize(
    ('focal', 'shape'), [(0.0, (4, 4)), (float('nan'), (4, 4)), (1.0, (3, 4))]
)
def test_a_wrong_camera_is_refused(focal: float, shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match='expected'):
        CameraGeometry(focal, 1.0, 0.0, 0.0, np.zeros(shape), 'map')
