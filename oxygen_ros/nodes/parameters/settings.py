# SPDX-License-Identifier: Apache-2.0
"""From parameter values to the frozen settings of every part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_topic_name import validate_topic_name

from ...engine.action_runner import ActionConfig, ActionMode
from ...engine.config import Batching, EngineConfig, Policy
from ...engine.kv.manager import KVConfig
from ...engine.scheduling.scheduler import SchedulerConfig
from ...ingest import IngestRules
from ...memory.scene.scene_grammar import SceneFormat
from ...memory.scene.scene_graph import GraphRules
from ...memory.scene.vocabulary import load_vocabulary, SceneVocabulary
from ...runtime.runtime import Publish, RuntimeConfig
from ...runtime.sensor_hub import SensorConfig
from .actuator_groups import actuator_groups, ActuatorGroup
from .declare import ParameterError
from .model_settings import model_choice
from .position_settings import position_settings, PositionSettings
from .record_settings import record_settings, RecordSettings
from .spec import Value
from .tick_settings import (
    ActuationLimits,
    joint_limits,
    names,
    parameter_error,
    realtime_settings,
    same_limits,
    tick_config,
)


@dataclass(frozen=True, slots=True)
class DialogueSettings:
    """How goals are taken."""

    max_tokens: int
    max_concurrent: int
    policy: str  # queue, refuse or supersede
    max_queued: int
    max_prompt_bytes: int


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """How the scene is looked at and remembered."""

    period_s: float  # 0: only on request
    prompt: str
    scene_format: SceneFormat
    rules: GraphRules
    temperature: float  # 0: greedy
    positions: PositionSettings


@dataclass(frozen=True, slots=True)
class DiagnosticLimits(ActuationLimits):
    """Above (or below) what a status is a warning."""

    min_camera_rate_hz: float
    stuck_after_s: float


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Everything that the node was told, checked."""

    joints: tuple[str, ...]
    groups: tuple[ActuatorGroup, ...]
    image_transport: str
    ingest: IngestRules
    model_name: str  # or the folder of a checkpoint
    model_options: dict[str, Any]
    num_threads: int
    record_file: str  # empty: none
    runtime: RuntimeConfig
    dialogue: DialogueSettings
    memory: MemorySettings
    records: RecordSettings
    diagnostics: DiagnosticLimits
    latency_rate_hz: float  # 0: no reports
    diagnostics_rate_hz: float  # 0: none

    def has_limits_of(self, other: NodeSettings) -> bool:
        """Whether the joints' limits are the same."""
        return same_limits(self.runtime.limits, other.runtime.limits)


def make_settings(values: Mapping[str, Value]) -> NodeSettings:
    """Check all values together.

    :raises ParameterError: names the parameter, what was expected and what came.
    """
    reader: Mapping[str, Any] = values
    joints = names(reader, 'joints')
    for camera in names(reader, 'cameras'):
        _check_topic(camera)
    name, options = model_choice(reader, len(joints))
    try:
        return NodeSettings(
            joints=joints,
            groups=actuator_groups(reader, joints),
            image_transport=reader['image_transport'],
            ingest=_fields(reader, 'sensors', IngestRules),
            model_name=name,
            model_options=options,
            num_threads=reader['engine.num_threads'],
            record_file=reader['record_file'],
            runtime=_runtime(reader, len(joints)),
            dialogue=_fields(reader, 'dialogue', DialogueSettings),
            memory=_memory(reader),
            records=record_settings(reader),
            diagnostics=DiagnosticLimits(
                reader['diagnostics.max_jitter_p99_ms'],
                reader['diagnostics.max_held_ratio'],
                reader['diagnostics.min_camera_rate_hz'],
                reader['engine.stuck_after_s'],
            ),
            latency_rate_hz=reader['latency.rate_hz'],
            diagnostics_rate_hz=reader['diagnostics.rate_hz'],
        )
    except ValueError as error:
        raise parameter_error(error) from error


def _check_topic(camera: str) -> None:
    try:
        validate_topic_name(camera)
    except InvalidTopicNameException:
        raise ParameterError(
            'cameras: expected names that can begin a topic (letters, digits and _, parts '
            f'separated by /), got {camera!r}'
        ) from None


def _fields(reader: Mapping[str, Any], group: str, cls: type[Any], **more: Any) -> Any:
    """Make a dataclass whose fields are named like the parameters of a group."""
    given = {
        name: reader[f'{group}.{name}']
        for name in cls.__dataclass_fields__
        if f'{group}.{name}' in reader
    }
    return cls(**given, **more)


def _runtime(reader: Mapping[str, Any], num_joints: int) -> RuntimeConfig:
    return RuntimeConfig(
        sensors=_sensors(reader),
        tick=tick_config(reader, num_joints),
        limits=joint_limits(reader, num_joints),
        publish=_publish(reader),
        engine=_engine(reader),
        blend_s=reader['actuation.blend_s'],
        realtime=realtime_settings(reader),
    )


def _sensors(reader: Mapping[str, Any]) -> SensorConfig:
    cameras, ages_s = names(reader, 'cameras'), tuple(reader['sensors.camera_max_age_s'])
    if len(ages_s) not in (1, len(cameras)):
        raise ParameterError(
            f'sensors.camera_max_age_s: expected 1 or {len(cameras)} values, one '
            f'for each of the cameras, got {len(ages_s)}'
        )
    return SensorConfig(
        cameras=cameras,
        optional_cameras=names(reader, 'optional_cameras'),
        camera_max_age_s=ages_s,
        state_max_age_s=reader['sensors.state_max_age_s'],
        assembly_wait_s=reader['sensors.assembly_wait_s'],
        max_skew_s=reader['sensors.max_skew_s'],
    )


def _publish(reader: Mapping[str, Any]) -> Publish:
    publish = Publish(reader['actuation.publish'])
    if reader['tick.process'] != 'separate':
        return publish
    if publish is not Publish.TICK:
        raise ParameterError(
            f'actuation.publish: expected tick where tick.process is separate, got {publish.value}'
        )
    return Publish.ELSEWHERE


def _engine(reader: Mapping[str, Any]) -> EngineConfig:
    action = ActionConfig(
        mode=ActionMode(reader['action.mode']),
        period_s=1.0 / reader['actuation.rate_hz'],
        chunk_periods=reader['action.chunk_periods'],
    )
    config: EngineConfig = _fields(
        reader,
        'engine',
        EngineConfig,
        kv=_fields(reader, 'kv', KVConfig),
        scheduler=_fields(reader, 'scheduler', SchedulerConfig),
        action=action,
        policy=Policy(reader['scheduler.policy']),
        batching=Batching(reader['batching']),
        place_queries=reader['memory.place_queries'],
        hash_inputs=bool(reader['audit.file']),
    )
    return config


def _memory(reader: Mapping[str, Any]) -> MemorySettings:
    path = reader['memory.vocabulary_file']
    vocabulary = load_vocabulary(path) if path else SceneVocabulary()
    scene_format = SceneFormat(
        names(reader, 'cameras'),
        reader['memory.max_new_objects'],
        reader['memory.max_new_relations'],
        reader['memory.max_attributes'],
        vocabulary,
    )
    return MemorySettings(
        reader['memory.period_s'],
        reader['memory.prompt'],
        scene_format,
        _fields(reader, 'memory', GraphRules),
        reader['memory.temperature'],
        position_settings(reader, names(reader, 'cameras')),
    )
