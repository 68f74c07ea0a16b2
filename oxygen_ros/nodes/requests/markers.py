# SPDX-License-Identifier: Apache-2.0
"""The scene graph for RViz: a point and a label for each object whose place is known."""

from __future__ import annotations

from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ...types import SceneObject, SceneUpdate

_SIZE_M = 0.05
_TEXT_ABOVE_M = 0.08


def scene_markers(scene: SceneUpdate) -> MarkerArray:
    """Return the markers of a whole graph; they replace all those before."""
    markers = [Marker(action=Marker.DELETEALL)]
    for scene_object in scene.objects:
        if scene_object.position_m is None:
            continue
        markers.append(_marker(scene_object, 'objects', Marker.SPHERE, 0.0, ''))
        words = ' '.join((*scene_object.attributes, scene_object.label))
        markers.append(
            _marker(scene_object, 'labels', Marker.TEXT_VIEW_FACING, _TEXT_ABOVE_M, words)
        )
    return MarkerArray(markers=markers)


def _marker(
    scene_object: SceneObject, namespace: str, kind: int, above_m: float, text: str
) -> Marker:
    assert scene_object.position_m is not None
    marker = Marker(
        ns=namespace, id=scene_object.object_id, type=kind, action=Marker.ADD, text=text
    )
    # Without a stamp, as it stays for long: RViz drops what is older than the frames it knows.
    marker.header.frame_id = scene_object.frame_id
    x, y, z = map(float, scene_object.position_m)
    marker.pose.position = Point(x=x, y=y, z=z + above_m)
    marker.pose.orientation.w = 1.0
    marker.scale.x = marker.scale.y = marker.scale.z = _SIZE_M
    marker.color = ColorRGBA(r=1.0, g=0.6, b=0.1, a=1.0)
    return marker
