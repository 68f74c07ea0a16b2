# SPDX-License-Identifier: Apache-2.0
"""From the engine's values to messages; no decisions here."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
import math
from typing import Any

from geometry_msgs.msg import PoseStamped
import numpy as np
from std_msgs.msg import Header

import oxygen_ros.msg as msg

from ..engine.kv.memory_report import MemoryReport
from ..types import ActionChunk, Provenance, SceneObject, SceneRelation, SceneUpdate
from .clocks import stamp_of

_NO_BOX = (math.nan,) * 4


def provenance_msg(provenance: Provenance | None) -> msg.Provenance:
    """Return a provenance; None gives the empty one, of observation 0."""
    if provenance is None:
        return msg.Provenance()
    return msg.Provenance(
        observation_id=max(provenance.observation_id, 0),
        stamp=stamp_of(provenance.stamp_ns),
        cameras=list(provenance.cameras),
        camera_stamps=[stamp_of(stamp_ns) for stamp_ns in provenance.camera_stamps_ns],
        state_stamp=stamp_of(provenance.state_stamp_ns),
        model_checksum=provenance.model_checksum,
    )


def doubles(values: np.ndarray) -> array[float]:
    """Return numbers as the array that a message holds, without a Python object for each."""
    return array('d', np.ascontiguousarray(values, dtype=np.float64).tobytes())


def chunk_msg(chunk: ActionChunk, joints: list[str]) -> msg.ActionChunk:
    """Return a chunk."""
    horizon, dim = chunk.values.shape
    return msg.ActionChunk(
        header=Header(stamp=stamp_of(chunk.start_stamp_ns)),
        chunk_id=chunk.chunk_id,
        epoch=chunk.epoch,
        joint_names=joints,
        action_horizon=horizon,
        action_dim=dim,
        action_dt_s=chunk.step_ns * 1e-9,
        inference_delay_s=chunk.inference_delay_ns * 1e-9,
        pass_s=(chunk.pass_ended_ns - chunk.pass_started_ns) * 1e-9,
        start_steady_ns=chunk.start_steady_ns,
        values=doubles(chunk.values),
        provenance=provenance_msg(chunk.provenance),
    )


def scene_msg(scene: SceneUpdate, verdicts: Mapping[int, str] | None = None) -> msg.SceneGraph:
    """Return a scene graph.

    :param verdicts: what the facts say of each object, by id; None: there are no facts.
    """
    verdicts = verdicts or {}
    return msg.SceneGraph(
        header=Header(stamp=stamp_of(scene.stamp_ns)),
        update_id=scene.update_id,
        nodes=[node_msg(known, verdicts.get(known.object_id, '')) for known in scene.objects],
        edges=[_edge_msg(relation) for relation in scene.relations],
        provenance=provenance_msg(scene.provenance),
    )


def node_msg(scene_object: SceneObject, verdict: str = '') -> msg.SceneNode:
    """Return an object of the scene graph."""
    pose = PoseStamped()
    if scene_object.position_m is not None:
        pose.header.stamp = stamp_of(scene_object.last_seen_ns)
        pose.header.frame_id = scene_object.frame_id
        position = pose.pose.position
        position.x, position.y, position.z = map(float, scene_object.position_m)
    return msg.SceneNode(
        id=scene_object.object_id,
        label=scene_object.label,
        attributes=list(scene_object.attributes),
        confidence=scene_object.confidence,
        camera=scene_object.camera,
        pose=pose,
        box_px=np.array(scene_object.box_px or _NO_BOX, dtype=np.float32),
        first_seen=stamp_of(scene_object.first_seen_ns),
        last_seen=stamp_of(scene_object.last_seen_ns),
        verdict=verdict,
        provenance=provenance_msg(scene_object.provenance),
    )


def _edge_msg(relation: SceneRelation) -> msg.SceneEdge:
    return msg.SceneEdge(
        subject=relation.subject_id,
        predicate=relation.predicate,
        object=relation.object_id,
        provenance=provenance_msg(relation.provenance),
    )


# Fields that the report and the service's response have in common, under the same names.
_REPORT_FIELDS = (
    'bytes_total',
    'bytes_prefix',
    'bytes_action',
    'bytes_text',
    'bytes_free',
    'bytes_isolated',
    'blocks_total',
    'blocks_free',
    'blocks_owned',
    'blocks_shared',
    'prefix_age_s',
    'prefix_readers',
)


def fill_memory_report(report: MemoryReport, response: Any) -> None:
    """Fill a GetMemoryReport response, but for the counts since activation."""
    for name in _REPORT_FIELDS:
        value = getattr(report, name)
        setattr(response, name, list(value) if isinstance(value, tuple) else value)
    response.prefix_observation_ids = [
        max(observation_id, 0) for observation_id in report.prefix_observation_ids
    ]
