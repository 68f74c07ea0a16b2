# SPDX-License-Identifier: Apache-2.0
"""Poses of cameras by TF, with a stand-in for tf2_ros, which is no wheel."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the times are those of ROS')
from oxygen_ros.memory.scene.projection import pose_matrix
from oxygen_ros.nodes.sensors.tf_poses import TfPoses

STAMP = 1_700_000_000 * 1_000_000_000


def test_tf_is_asked_for_the_pose_at_the_images_stamp(monkeypatch):
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
    node: Any = None  # the stand-in needs none
    poses = TfPoses(node, 'base')
    pose, problem = poses.pose('front', 'front_optical', STAMP)
    assert pose is not None and not problem
    assert np.allclose(pose, pose_matrix(0.5, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    assert asked == [('base', 'front_optical', STAMP)]
    assert poses.pose('front', 'front_optical', STAMP) == (None, 'no such frame')


def test_neither_poses_nor_tf_is_refused(monkeypatch):
    node: Any = None
    monkeypatch.setitem(sys.modules, 'tf2_ros', None)
    with pytest.raises(ValueError, match='memory.camera_poses: expected the poses'):
        TfPoses(node, 'base')
