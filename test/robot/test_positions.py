# SPDX-License-Identifier: Apache-2.0
"""Positions of objects: by camera_info and depth or a plane, poses or TF; or none, and why."""

from __future__ import annotations

from array import array
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oxygen_ros.memory.scene.projection import pose_matrix
from oxygen_ros.memory.scene.scene_text import SeenObject, SeenScene
from oxygen_ros.robot.memory_settings import PositionSettings
from oxygen_ros.robot.positions import depth_view, FixedPoses, ScenePositions
from oxygen_ros.setting import make
from oxygen_ros.types import Provenance

SECOND = 1_000_000_000
STAMP = 1_700_000_000 * SECOND
SIZE = {'front': (64, 48)}
BOX = (20.0, 16.0, 24.0, 16.0)  # its middle is the image's, its foot is 8 px below
SEEN = SeenScene((SeenObject('cup', (), 'front', (10, 21, 10, 21), BOX),))
DOWN = (0.5, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0)  # 1 m above the floor, looking down
FIXED = PositionSettings(('front',), 'base', DOWN, has_plane=True)
FROM = Provenance(1, STAMP, ('front',), (STAMP,), 0, 'sum')


def info(width: int = 64, height: int = 48, focal: float = 40.0) -> Any:
    """Return the calibration of a camera with its centre in the middle."""
    k = [focal, 0.0, width / 2, 0.0, focal, height / 2, 0.0, 0.0, 1.0]
    header = SimpleNamespace(frame_id='front_optical')
    return SimpleNamespace(width=width, height=height, k=k, header=header)


def depth(values: Any, encoding: str = '16UC1') -> Any:
    """Return a depth image."""
    values = np.asarray(values)
    return SimpleNamespace(
        height=values.shape[0],
        width=values.shape[1],
        encoding=encoding,
        step=values.shape[1] * values.itemsize,
        is_bigendian=0,
        data=array('B', values.tobytes()),
    )


def positions_of(settings: PositionSettings) -> ScenePositions:
    """Make positions that heard nothing yet."""
    return ScenePositions(settings, FixedPoses(settings.camera_poses))


def position(positions: ScenePositions, provenance: Provenance = FROM) -> Any:
    """Return where the one object is, None: nowhere."""
    found = positions.locate(SEEN, provenance, SIZE).objects[0]
    assert found.frame_id == ('base' if found.position_m else '')
    return found.position_m


def test_without_camera_info_there_is_no_position_and_it_is_said():
    positions = positions_of(FIXED)
    assert position(positions) is None
    assert positions.problems == {'front': 'no camera_info'}


def test_the_foot_of_the_box_stands_on_the_plane():
    positions = positions_of(FIXED)
    positions.take_info('front', info())
    assert position(positions) == pytest.approx((0.5, -0.2, 0.0))  # 8 px of 40 at 1 m
    raised = positions_of(replace(FIXED, height_m=0.5))
    raised.take_info('front', info())
    assert position(raised) == pytest.approx((0.5, -0.1, 0.5))
    nothing = positions_of(replace(FIXED, has_plane=False))
    nothing.take_info('front', info())
    assert position(nothing) is None


def test_a_calibration_of_another_resolution_is_scaled():
    positions = positions_of(FIXED)
    positions.take_info('front', info(640, 480, 400.0))
    assert position(positions) == pytest.approx((0.5, -0.2, 0.0))


@pytest.mark.parametrize(
    ('values', 'encoding'),
    [(np.full((48, 64), 700, '<u2'), '16UC1'), (np.full((96, 128), 0.7, '<f4'), '32FC1')],
)
def test_depth_goes_before_the_plane_whatever_its_form(values, encoding):
    positions = positions_of(replace(FIXED, depth_cameras=('front',)))
    positions.take_info('front', info())
    positions.take_depth('front', depth(values, encoding=encoding), STAMP)
    assert position(positions) == pytest.approx((0.5, 0.0, 0.3), abs=1e-6)


def test_depth_of_another_time_or_without_values_leaves_the_plane():
    positions = positions_of(replace(FIXED, depth_cameras=('front',)))
    positions.take_info('front', info())
    positions.take_depth('front', depth(np.full((48, 64), 700, np.uint16)), STAMP - SECOND)
    assert position(positions)[2] == 0.0
    positions.take_depth('front', depth(np.zeros((48, 64), np.uint16)), STAMP)
    assert position(positions)[2] == 0.0


def test_of_the_depth_images_the_one_of_the_images_time_is_taken():
    positions = positions_of(replace(FIXED, depth_cameras=('front',)))
    positions.take_info('front', info())
    for number in range(200):  # 6.7 s at 30 Hz: what is kept is bounded and reaches back
        stamp = STAMP + (number - 150) * SECOND // 30
        positions.take_depth('front', depth(np.full((48, 64), 300 + number, np.uint16)), stamp)
    assert len(positions._depth['front']) == 32
    assert position(positions)[2] == pytest.approx(1.0 - 0.450, abs=0.003)


def test_a_wrong_depth_image_is_told_and_leaves_the_plane():
    positions = positions_of(replace(FIXED, depth_cameras=('front',)))
    positions.take_info('front', info())
    positions.take_depth('front', depth(np.zeros((48, 64), np.uint8), encoding='rgb8'), STAMP)
    assert position(positions)[2] == 0.0
    assert "got 'rgb8'" in positions.problems['front']
    short = depth(np.zeros((48, 64), np.uint16))
    short.data = short.data[:-1]
    with pytest.raises(ValueError, match='depth data: expected 48 rows of 128 bytes'):
        depth_view(short)


def test_an_uncalibrated_camera_is_told():
    positions = positions_of(FIXED)
    positions.take_info('front', info(focal=0.0))
    assert position(positions) is None
    assert 'expected focal lengths above 0' in positions.problems['front']


def test_a_camera_that_was_not_in_the_observation_gives_nothing():
    positions = positions_of(FIXED)
    positions.take_info('front', info())
    assert position(positions, replace(FROM, cameras=(), camera_stamps_ns=())) is None


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({'frame_id': 'base', 'camera_poses': [1.0] * 8}, 'expected 7 numbers for each of the 1'),
        ({'frame_id': 'base', 'camera_poses': [0.0] * 7}, 'memory.camera_poses: front: pose'),
        ({'frame_id': 'base', 'depth_cameras': ['rear']}, 'memory.depth_cameras: expected names'),
        ({'plane': True}, 'memory.frame_id: expected the frame'),
    ],
)
def test_wrong_settings_name_their_parameter(values, message):
    named = {f'memory.{key}': value for key, value in values.items()}
    with pytest.raises(ValueError, match=message):
        make(PositionSettings, named, cameras=('front',))


def test_a_pose_is_that_of_its_quaternion():
    quarter = pose_matrix(1.0, 2.0, 3.0, 0.0, 0.0, 2.0, 2.0)  # about z, not of unit length
    assert quarter @ [1.0, 0.0, 0.0, 1.0] == pytest.approx([1.0, 3.0, 3.0, 1.0])
