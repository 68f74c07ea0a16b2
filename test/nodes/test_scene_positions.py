# SPDX-License-Identifier: Apache-2.0
"""Positions of objects: by camera_info and depth or a plane, poses or TF; or none, and why."""

from __future__ import annotations

from array import array
from dataclasses import replace
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the positions come by ROS topics')
from own_domain import DOMAIN
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image

from oxygen_ros.memory.scene.projection import pose_matrix
from oxygen_ros.memory.scene.scene_text import SeenObject, SeenScene
from oxygen_ros.nodes.clocks import stamp_of
from oxygen_ros.nodes.faults import FaultLog
from oxygen_ros.nodes.requests.scene_positions import depth_view, ScenePositions
from oxygen_ros.robot.memory_settings import PositionSettings
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


def info(width: int = 64, height: int = 48, focal: float = 40.0) -> CameraInfo:
    """Return the calibration of a camera with its centre in the middle."""
    message = CameraInfo(width=width, height=height)
    message.header.frame_id = 'front_optical'
    message.k = [focal, 0.0, width / 2, 0.0, focal, height / 2, 0.0, 0.0, 1.0]
    return message


def depth(values: Any, stamp_ns: int = STAMP, encoding: str = '16UC1') -> Image:
    """Return a depth image."""
    values = np.asarray(values)
    message = Image(
        height=values.shape[0],
        width=values.shape[1],
        encoding=encoding,
        step=values.shape[1] * values.itemsize,
    )
    message.data = array('B', values.tobytes())
    message.header.stamp = stamp_of(stamp_ns)
    return message


class Desk:
    """A node with positions, and what is published to it."""

    def __init__(self) -> None:
        self.context = Context()
        rclpy.init(context=self.context, domain_id=DOMAIN)
        self.node = Node('positions', context=self.context)
        self.made: list[ScenePositions] = []

    def make(self, settings: PositionSettings) -> ScenePositions:
        """Make positions that heard nothing yet."""
        self.made.append(
            ScenePositions(self.node, settings, ('front',), FaultLog(self.node.get_logger()))
        )
        return self.made[-1]

    def close(self) -> None:
        for positions in self.made:
            positions.destroy()
        self.node.destroy_node()
        self.context.try_shutdown()


@pytest.fixture(scope='module')
def desk():
    desk = Desk()
    yield desk
    desk.close()


def position(positions: ScenePositions, provenance: Provenance = FROM) -> Any:
    """Return where the one object is, None: nowhere."""
    found = positions.locate(SEEN, provenance, SIZE).objects[0]
    assert found.frame_id == ('base' if found.position_m else '')
    return found.position_m


def test_without_camera_info_there_is_no_position_and_it_is_said(desk):
    positions = desk.make(FIXED)
    assert position(positions) is None
    assert positions.problems == {'front': 'no camera_info'}


def test_camera_info_and_depth_come_by_their_topics(desk):
    positions = desk.make(replace(FIXED, depth_cameras=('front',)))
    infos = desk.node.create_publisher(CameraInfo, 'front/camera_info', 1)
    images = desk.node.create_publisher(Image, 'front/depth/image_raw', 1)
    executor = SingleThreadedExecutor(context=desk.context)
    executor.add_node(desk.node)
    for _ in range(200):
        infos.publish(info())
        images.publish(depth(np.full((48, 64), 400, np.uint16)))
        executor.spin_once(timeout_sec=0.1)
        if positions._infos and positions._depth['front']:
            break
    executor.shutdown()
    assert position(positions) == pytest.approx((0.5, 0.0, 0.6))


def test_the_foot_of_the_box_stands_on_the_plane(desk):
    positions = desk.make(FIXED)
    positions._infos['front'] = info()
    assert position(positions) == pytest.approx((0.5, -0.2, 0.0))  # 8 px of 40 at 1 m
    raised = desk.make(replace(FIXED, height_m=0.5))
    raised._infos['front'] = info()
    assert position(raised) == pytest.approx((0.5, -0.1, 0.5))
    nothing = desk.make(replace(FIXED, has_plane=False))
    nothing._infos['front'] = info()
    assert position(nothing) is None


def test_a_calibration_of_another_resolution_is_scaled(desk):
    positions = desk.make(FIXED)
    positions._infos['front'] = info(640, 480, 400.0)
    assert position(positions) == pytest.approx((0.5, -0.2, 0.0))


@pytest.mark.parametrize(
    ('values', 'encoding'),
    [(np.full((48, 64), 700, '<u2'), '16UC1'), (np.full((96, 128), 0.7, '<f4'), '32FC1')],
)
def test_depth_goes_before_the_plane_whatever_its_form(desk, values, encoding):
    positions = desk.make(replace(FIXED, depth_cameras=('front',)))
    positions._infos['front'] = info()
    positions._keep('front', depth(values, encoding=encoding))
    assert position(positions) == pytest.approx((0.5, 0.0, 0.3), abs=1e-6)


def test_depth_of_another_time_or_without_values_leaves_the_plane(desk):
    positions = desk.make(replace(FIXED, depth_cameras=('front',)))
    positions._infos['front'] = info()
    positions._keep('front', depth(np.full((48, 64), 700, np.uint16), STAMP - SECOND))
    assert position(positions)[2] == 0.0
    positions._keep('front', depth(np.zeros((48, 64), np.uint16)))
    assert position(positions)[2] == 0.0


def test_of_the_depth_images_the_one_of_the_images_time_is_taken(desk):
    positions = desk.make(replace(FIXED, depth_cameras=('front',)))
    positions._infos['front'] = info()
    for number in range(200):  # 6.7 s at 30 Hz: what is kept is bounded and reaches back
        stamp = STAMP + (number - 150) * SECOND // 30
        positions._keep('front', depth(np.full((48, 64), 300 + number, np.uint16), stamp))
    assert len(positions._depth['front']) == 32
    assert position(positions)[2] == pytest.approx(1.0 - 0.450, abs=0.003)


def test_a_wrong_depth_image_is_told_and_leaves_the_plane(desk):
    positions = desk.make(replace(FIXED, depth_cameras=('front',)))
    positions._infos['front'] = info()
    positions._keep('front', depth(np.zeros((48, 64), np.uint8), encoding='rgb8'))
    assert position(positions)[2] == 0.0
    assert "got 'rgb8'" in positions.problems['front']
    short = depth(np.zeros((48, 64), np.uint16))
    short.data = short.data[:-1]
    with pytest.raises(ValueError, match='depth data: expected 48 rows of 128 bytes'):
        depth_view(short)


def test_an_uncalibrated_camera_is_told(desk):
    positions = desk.make(FIXED)
    positions._infos['front'] = info(focal=0.0)
    assert position(positions) is None
    assert 'expected focal lengths above 0' in positions.problems['front']


def test_a_camera_that_was_not_in_the_observation_gives_nothing(desk):
    positions = desk.make(FIXED)
    positions._infos['front'] = info()
    assert position(positions, replace(FROM, cameras=(), camera_stamps_ns=())) is None


def test_tf_is_asked_for_the_pose_at_the_images_stamp(desk, monkeypatch):
    asked = []

    class NoTransform(Exception):
        pass

    class Buffer:
        def lookup_transform(self, target: str, source: str, time: Any) -> Any:
            asked.append((target, source, time.nanoseconds))
            if len(asked) > 1:
                raise NoTransform('no such frame')
            return SimpleNamespace(
                transform=SimpleNamespace(
                    translation=SimpleNamespace(x=0.5, y=0.0, z=1.0),
                    rotation=SimpleNamespace(x=1.0, y=0.0, z=0.0, w=0.0),
                )
            )

    tf2 = ModuleType('tf2_ros')
    listener = SimpleNamespace(unregister=lambda: None)
    vars(tf2).update(
        Buffer=Buffer,
        TransformException=NoTransform,
        TransformListener=lambda buffer, node, spin_thread: listener,
    )
    monkeypatch.setitem(sys.modules, 'tf2_ros', tf2)
    positions = desk.make(replace(FIXED, pose_numbers=(0.0,)))
    positions._infos['front'] = info()
    assert position(positions) == pytest.approx((0.5, -0.2, 0.0))
    assert asked == [('base', 'front_optical', STAMP)]
    assert position(positions) is None and positions.problems == {'front': 'no such frame'}


def test_neither_poses_nor_tf_is_refused(desk, monkeypatch):
    monkeypatch.setitem(sys.modules, 'tf2_ros', None)
    with pytest.raises(ValueError, match='memory.camera_poses: expected the poses'):
        desk.make(replace(FIXED, pose_numbers=(0.0,)))


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
