# SPDX-License-Identifier: Apache-2.0
"""From a robot's values to messages, whoever's classes these are; no decisions here.

The node makes messages of rclpy, a replay those of rosbags: each hands in a factory, which takes
the name of a type and all of its fields.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
import json
import math
from typing import Any

import numpy as np

from ..control import Decision
from ..types import (
    ActionChunk,
    Provenance,
    SceneObject,
    SceneRelation,
    SceneUpdate,
    TextResult,
)

Make = Callable[..., Any]
"""`make('package/msg/Name', field=value, ...)` returns a message."""

NS_PER_S = 1_000_000_000
_NO_BOX = (math.nan,) * 4


def time_message(make: Make, time_ns: int) -> Any:
    """Return nanoseconds as a Time; a time before 1970 is 0."""
    seconds, nanoseconds = divmod(max(time_ns, 0), NS_PER_S)
    return make('builtin_interfaces/msg/Time', sec=seconds, nanosec=nanoseconds)


def header_message(make: Make, stamp_ns: int, frame_id: str = '') -> Any:
    """Return a Header."""
    return make('std_msgs/msg/Header', stamp=time_message(make, stamp_ns), frame_id=frame_id)


def doubles(values: np.ndarray) -> array[float]:
    """Return numbers as the array that a message holds, without a Python object for each."""
    return array('d', np.ascontiguousarray(values, dtype=np.float64).tobytes())


def provenance_message(make: Make, provenance: Provenance | None) -> Any:
    """Return a Provenance; None gives the empty one, of observation 0."""
    if provenance is None:
        provenance = Provenance(0, 0, (), (), 0, '')
    return make(
        'oxygen_ros/msg/Provenance',
        observation_id=max(provenance.observation_id, 0),
        stamp=time_message(make, provenance.stamp_ns),
        cameras=list(provenance.cameras),
        camera_stamps=[time_message(make, ns) for ns in provenance.camera_stamps_ns],
        state_stamp=time_message(make, provenance.state_stamp_ns),
        model_checksum=provenance.model_checksum,
    )


def chunk_message(make: Make, chunk: ActionChunk, joints: Sequence[str]) -> Any:
    """Return an ActionChunk."""
    horizon, dim = chunk.values.shape
    return make(
        'oxygen_ros/msg/ActionChunk',
        header=header_message(make, chunk.start_stamp_ns),
        chunk_id=chunk.chunk_id,
        epoch=chunk.epoch,
        joint_names=list(joints),
        action_horizon=horizon,
        action_dim=dim,
        action_dt_s=chunk.step_ns * 1e-9,
        inference_delay_s=chunk.inference_delay_ns * 1e-9,
        pass_s=(chunk.pass_ended_ns - chunk.pass_started_ns) * 1e-9,
        start_steady_ns=chunk.start_steady_ns,
        values=doubles(chunk.values.ravel()),
        provenance=provenance_message(make, chunk.provenance),
    )


def target_fields(decision: Decision, is_sent: bool, lateness_ns: int) -> dict[str, Any]:
    """Return the fields of a Target but for header, names and positions.

    :param is_sent: whether the actuators got it.
    """
    target = decision.target
    age_ns = target.observation_age_ns
    return {
        'tick': target.tick,
        'armed': is_sent,
        'held': target.held,
        'hold_reason': target.hold_reason,
        'lateness_s': lateness_ns * 1e-9,
        'observation_age_s': -1.0 if age_ns is None else age_ns * 1e-9,
        'chunk_ids': array('Q', target.chunk_ids),
        'observation_ids': array('Q', target.observation_ids),
        'weights': array('d', target.weights),
    }


def scene_message(
    make: Make, scene: SceneUpdate, verdicts: Mapping[int, str] | None = None
) -> Any:
    """Return a SceneGraph.

    :param verdicts: what the facts say of each object, by id; None: there are no facts.
    """
    verdicts = verdicts or {}
    return make(
        'oxygen_ros/msg/SceneGraph',
        header=header_message(make, scene.stamp_ns),
        update_id=scene.update_id,
        nodes=[
            node_message(make, known, verdicts.get(known.object_id, '')) for known in scene.objects
        ],
        edges=[_edge(make, relation) for relation in scene.relations],
        provenance=provenance_message(make, scene.provenance),
    )


def node_message(make: Make, scene_object: SceneObject, verdict: str = '') -> Any:
    """Return an object of the scene graph."""
    position = scene_object.position_m
    x, y, z = map(float, position or (0.0, 0.0, 0.0))
    pose = make(
        'geometry_msgs/msg/PoseStamped',
        header=header_message(
            make,
            0 if position is None else scene_object.last_seen_ns,
            '' if position is None else scene_object.frame_id,
        ),
        pose=make(
            'geometry_msgs/msg/Pose',
            position=make('geometry_msgs/msg/Point', x=x, y=y, z=z),
            orientation=make('geometry_msgs/msg/Quaternion', x=0.0, y=0.0, z=0.0, w=1.0),
        ),
    )
    return make(
        'oxygen_ros/msg/SceneNode',
        id=scene_object.object_id,
        label=scene_object.label,
        attributes=list(scene_object.attributes),
        confidence=scene_object.confidence,
        camera=scene_object.camera,
        box_px=np.array(scene_object.box_px or _NO_BOX, dtype=np.float32),
        pose=pose,
        first_seen=time_message(make, scene_object.first_seen_ns),
        last_seen=time_message(make, scene_object.last_seen_ns),
        verdict=verdict,
        provenance=provenance_message(make, scene_object.provenance),
    )


def _edge(make: Make, relation: SceneRelation) -> Any:
    return make(
        'oxygen_ros/msg/SceneEdge',
        subject=relation.subject_id,
        predicate=relation.predicate,
        object=relation.object_id,
        provenance=provenance_message(make, relation.provenance),
    )


TIMELINE_COLUMNS = ('kind', 'start', 'end', 'units', 'detail')


def timeline_message(make: Make, rows: np.ndarray, first: Sequence[int] = ()) -> Any:
    """Return timeline rows [num_events, 5] as an Int64MultiArray.

    :param first: numbers before the first row.
    """
    columns = len(TIMELINE_COLUMNS)

    def dimension(label: str, size: int, stride: int) -> Any:
        return make('std_msgs/msg/MultiArrayDimension', label=label, size=size, stride=stride)

    layout = make(
        'std_msgs/msg/MultiArrayLayout',
        dim=[
            dimension('event', len(rows), rows.size),
            dimension(','.join(TIMELINE_COLUMNS), columns, columns),
        ],
        data_offset=len(first),
    )
    data = array('q', np.concatenate([first, rows.ravel()]).astype(np.int64).tobytes())
    return make('std_msgs/msg/Int64MultiArray', layout=layout, data=data)


def text_message(make: Make, result: TextResult) -> Any:
    """Return a String that holds a text result as JSON; its tokens are part of it."""
    provenance = result.provenance
    content = {
        'request_id': result.request_id,
        'task': result.task.name.lower(),
        'text': result.text,
        'tokens': list(result.tokens),
        'finish_reason': result.finish_reason.value,
        'message': result.message,
        'observation_id': 0 if provenance is None else provenance.observation_id,
        'submitted_ns': result.submitted_ns,
        'first_token_ns': result.first_token_ns,
        'ended_ns': result.ended_ns,
    }
    return make('std_msgs/msg/String', data=json.dumps(content))
