# SPDX-License-Identifier: Apache-2.0
"""~/markers: what RViz shows of a scene graph."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy', reason='markers are ROS messages')
from visualization_msgs.msg import Marker

from oxygen_ros.nodes.requests.markers import scene_markers
from oxygen_ros.types import SceneObject, SceneUpdate


def test_an_object_with_a_place_is_a_point_and_its_words_above_it():
    cup = SceneObject(
        7,
        'cup',
        ('red', 'small'),
        frame_id='base',
        position_m=(0.5, -0.25, 0.125),
        last_seen_ns=5 * 10**9,
    )
    nowhere = SceneObject(8, 'plate')
    first, point, words = scene_markers(SceneUpdate(1, 0, (cup, nowhere))).markers
    assert first.action == Marker.DELETEALL  # what is forgotten vanishes
    assert (point.type, words.type) == (Marker.SPHERE, Marker.TEXT_VIEW_FACING)
    assert words.text == 'red small cup'
    place, above = point.pose.position, words.pose.position
    assert (place.x, place.y, place.z) == (0.5, -0.25, 0.125)
    assert (above.x, above.y) == (place.x, place.y) and above.z > place.z
    for marker in (point, words):
        assert (marker.id, marker.header.frame_id) == (7, 'base')
        assert marker.pose.orientation.w == 1.0 and marker.color.a > 0.0 and marker.scale.z > 0.0
        # Latched, it is shown long after; with a stamp RViz would find no frame so old.
        assert (marker.header.stamp.sec, marker.header.stamp.nanosec) == (0, 0)


def test_points_and_words_of_all_objects_have_names_of_their_own():
    objects = tuple(
        SceneObject(number, 'cup', frame_id='base', position_m=(0.0, 0.0, 0.0))
        for number in range(5)
    )
    markers = scene_markers(SceneUpdate(1, 0, objects)).markers[1:]
    assert len({(marker.ns, marker.id) for marker in markers}) == len(markers) == 10
