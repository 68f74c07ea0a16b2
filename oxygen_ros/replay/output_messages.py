# SPDX-License-Identifier: Apache-2.0
"""From the engine's values to rosbags messages; no decisions here."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ..control import Decision
from ..types import ActionChunk, Provenance, SceneObject, SceneUpdate, TextResult
from .output_types import INT64S, output_types, STRING
from .outputs import SCHEDULE_COLUMNS

_NO_BOX = (math.nan,) * 4
_OURS = 'oxygen_ros/msg/'


def _make(msgtype: str, *values: Any) -> Any:
    return output_types().types[msgtype](*values)


def _time(stamp_ns: int) -> Any:
    return _make('builtin_interfaces/msg/Time', *divmod(max(stamp_ns, 0), 1_000_000_000))


def _header(stamp_ns: int, frame_id: str = '') -> Any:
    return _make('std_msgs/msg/Header', _time(stamp_ns), frame_id)


def _provenance(provenance: Provenance | None) -> Any:
    if provenance is None:
        return _make(_OURS + 'Provenance', 0, _time(0), [], [], _time(0), '')
    return _make(
        _OURS + 'Provenance',
        max(provenance.observation_id, 0),
        _time(provenance.stamp_ns),
        list(provenance.cameras),
        [_time(ns) for ns in provenance.camera_stamps_ns],
        _time(provenance.state_stamp_ns),
        provenance.model_checksum,
    )


def chunk_message(chunk: ActionChunk, joints: tuple[str, ...]) -> Any:
    """Return an ActionChunk."""
    horizon, dim = chunk.values.shape
    return _make(
        _OURS + 'ActionChunk',
        _header(chunk.start_stamp_ns),
        chunk.chunk_id,
        chunk.epoch,
        list(joints),
        horizon,
        dim,
        chunk.step_ns * 1e-9,
        chunk.inference_delay_ns * 1e-9,
        (chunk.pass_ended_ns - chunk.pass_started_ns) * 1e-9,
        chunk.start_steady_ns,
        np.asarray(chunk.values, np.float64).ravel(),
        _provenance(chunk.provenance),
    )


def target_message(decision: Decision, joints: tuple[str, ...], offset_ns: int) -> Any:
    """Return a Target.

    :param offset_ns: ROS time minus steady time.
    """
    target = decision.target
    age_ns = target.observation_age_ns
    return _make(
        _OURS + 'Target',
        _header(target.deadline_ns + offset_ns),
        target.tick,
        list(joints),
        np.asarray(target.values, np.float64),
        decision.armed,
        target.held,
        target.hold_reason,
        0.0,
        -1.0 if age_ns is None else age_ns * 1e-9,
        np.array(target.chunk_ids, np.uint64),
        np.array(target.observation_ids, np.uint64),
        np.array(target.weights, np.float64),
    )


def scene_message(scene: SceneUpdate) -> Any:
    """Return a SceneGraph."""
    edges = [
        _make(
            _OURS + 'SceneEdge',
            relation.subject_id,
            relation.predicate,
            relation.object_id,
            _provenance(relation.provenance),
        )
        for relation in scene.relations
    ]
    return _make(
        _OURS + 'SceneGraph',
        _header(scene.stamp_ns),
        scene.update_id,
        [_node(scene_object) for scene_object in scene.objects],
        edges,
        _provenance(scene.provenance),
    )


def _node(scene_object: SceneObject) -> Any:
    position = scene_object.position_m
    stamp_ns = 0 if position is None else scene_object.last_seen_ns
    pose = _make(
        'geometry_msgs/msg/PoseStamped',
        _header(stamp_ns, '' if position is None else scene_object.frame_id),
        _make(
            'geometry_msgs/msg/Pose',
            _make('geometry_msgs/msg/Point', *map(float, position or (0.0, 0.0, 0.0))),
            _make('geometry_msgs/msg/Quaternion', 0.0, 0.0, 0.0, 1.0),
        ),
    )
    box = np.array(scene_object.box_px or _NO_BOX, np.float32)
    return _make(
        _OURS + 'SceneNode',
        scene_object.object_id,
        scene_object.label,
        list(scene_object.attributes),
        scene_object.confidence,
        scene_object.camera,
        box,
        pose,
        _time(scene_object.first_seen_ns),
        _time(scene_object.last_seen_ns),
        '',
        _provenance(scene_object.provenance),
    )


def text_message(result: TextResult) -> Any:
    """Return a String that holds a text result as JSON; its tokens are part of it."""
    provenance = result.provenance
    return _make(
        STRING,
        json.dumps(
            {
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
        ),
    )


def utterance_message(text: str) -> Any:
    """Return a String to be spoken."""
    return _make(STRING, text)


def schedule_message(observation_id: int, rows: np.ndarray) -> Any:
    """Return timeline rows [num_events, 5] behind the id of the newest observation."""

    def dimension(label: str, size: int, stride: int) -> Any:
        return _make('std_msgs/msg/MultiArrayDimension', label, size, stride)

    layout = _make(
        'std_msgs/msg/MultiArrayLayout',
        [
            dimension('event', len(rows), rows.size),
            dimension('kind, start_ns, end_ns, units, detail', SCHEDULE_COLUMNS, SCHEDULE_COLUMNS),
        ],
        1,
    )
    return _make(INT64S, layout, np.concatenate([[observation_id], rows.ravel()]).astype(np.int64))
