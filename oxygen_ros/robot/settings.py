# SPDX-License-Identifier: Apache-2.0
"""All settings of a robot as one tree, made of parameters; neither torch nor ROS is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar

from ..control import TickConfig
from ..engine.config import ActionConfig, ActionMode, EngineConfig
from ..engine.spec import ModelSpec
from ..ingest import CameraRules
from ..models.options import ModelOptions
from ..setting import (
    all_settings,
    check,
    make,
    parameter,
    part,
    read,
    refusal,
    Setting,
    setting,
    SettingError,
    values_of,
)
from .actuator_groups import is_topic
from .memory_settings import make_memory_settings, MemorySettings, RecordSettings
from .model_settings import ModelSettings
from .sensor_config import SensorConfig
from .tick_settings import ActuationLimits, tick_parts, TickSettings

BASELINE = 'baseline.'
# Names of before, which a file may still have.
_RENAMED = {
    'kv.sharing': 'baseline.kv_sharing',
    'scheduler.policy': 'baseline.scheduler_policy',
    'batching': 'baseline.batching',
    'actuation.publish': 'baseline.publish',
}


class Publish(str, Enum):
    """Who publishes targets."""

    TICK = 'tick'  # the tick's own thread, at absolute deadlines
    # The engine's thread, as each pass ends: the unmanaged baseline of the benchmark
    ENGINE = 'engine'
    ELSEWHERE = 'elsewhere'  # a tick in another process, fed by the published chunks


class EngineClock(str, Enum):
    """What time engine and tick live on."""

    STEADY = 'steady'  # of this machine
    ROS = 'ros'  # that which /clock lets pass


@dataclass(frozen=True, slots=True)
class DialogueSettings:
    """How goals are taken."""

    PREFIX: ClassVar[str] = 'dialogue'

    max_tokens: int = setting(
        64,
        'Longest answer if the goal sets no limit',
        'tokens',
        low=1,
        high=1_000_000,
        live=True,
    )
    max_concurrent: int = setting(
        8, 'Goals that are answered at the same time', low=1, high=1000, live=True
    )
    policy: str = setting(
        'queue',
        'What happens to a goal beyond max_concurrent: it waits, is refused, or replaces the '
        'oldest',
        choices=('queue', 'refuse', 'supersede'),
        live=True,
    )
    max_queued: int = setting(
        32, 'Goals that may wait; more are refused', low=0, high=10_000, live=True
    )
    max_prompt_bytes: int = setting(
        2000,
        'Longest prompt or instruction (UTF-8)',
        'bytes',
        low=1,
        high=1_000_000,
        live=True,
    )
    result_timeout_s: int = setting(
        900, 'How long a result is kept for its client', 's', low=1, high=86_400
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class DiagnosticLimits(ActuationLimits):
    """Above (or below) what a status is a warning."""

    min_camera_rate_hz: float = setting(
        1.0,
        'Image rate below which diagnostics warn about a camera',
        'Hz',
        low=0.0,
        high=1000.0,
        live=True,
    )
    stuck_after_s: float = setting(
        2.0,
        'Time without a sign of life after which the engine is reported as stuck',
        's',
        low=0.1,
        high=600.0,
        name='engine.stuck_after_s',
    )


@dataclass(frozen=True, kw_only=True)
class RobotSettings(TickSettings):
    """Everything that a robot is told, checked.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    cameras: tuple[str, ...] = setting(
        ('front', 'left_wrist', 'right_wrist'),
        'Camera names in the order of the model; their images come on <name>/image_raw',
        none='',
    )
    image_transport: str = setting(
        'auto',
        'Topics to subscribe to: <name>/image_raw, <name>/image_raw/compressed, or both',
        choices=('auto', 'raw', 'compressed'),
    )
    sensors: SensorConfig = part(SensorConfig)
    ingest: CameraRules = part(CameraRules)
    model: ModelSettings = part(ModelSettings)
    tick_process: str = setting(
        'own',
        'Where the tick runs: in the process of this node, or separate, in that of tick_node, '
        'where it outlives this one',
        choices=('own', 'separate'),
        fixed=True,
        name='tick.process',
    )
    targets_by: Publish = setting(
        Publish.TICK,
        'Who publishes targets: the thread of the tick, or, unmanaged, the engine at the end of '
        'a pass',
        choices=('tick', 'engine'),
        name='baseline.publish',
    )
    engine: EngineConfig = part(EngineConfig)
    num_threads: int = setting(
        1,
        'CPU threads of a pass; 0: the default of torch',
        low=0,
        high=256,
        name='engine.num_threads',
    )
    clock: EngineClock = setting(
        EngineClock.STEADY,
        'Clock of engine and tick: steady, or ros, on which time passes only as /clock advances '
        'and a table says how long work takes, so that the same messages in the same order give '
        'the same outputs; needs use_sim_time and engine.deterministic',
        name='engine.clock',
    )
    dialogue: DialogueSettings = part(DialogueSettings)
    memory: MemorySettings = part(MemorySettings)
    records: RecordSettings = part(RecordSettings)
    latency_rate_hz: float = setting(
        10.0,
        'Reports on ~/latency per second; 0: off',
        'Hz',
        low=0.0,
        high=100.0,
        live=True,
        name='latency.rate_hz',
    )
    diagnostics: DiagnosticLimits = part(DiagnosticLimits)
    record_file: str = setting(
        '',
        'JSON file that gets the timeline of the engine and the image counts at deactivation; '
        'empty: none',
    )

    def __post_init__(self) -> None:
        TickSettings.__post_init__(self)
        for camera in self.cameras:
            if not is_topic(camera):
                raise refusal(
                    self,
                    'cameras',
                    'names that can begin a topic (letters, digits and _, parts separated by /)',
                    repr(camera),
                )
        for name, is_so in (
            (f'{parameter(RobotSettings, "tick_process")} is separate', self._is_separate),
            (f'{parameter(TickConfig, "space")} is joint_delta', bool(self.tick.deltas)),
        ):
            if is_so and self.targets_by is not Publish.TICK:
                raise refusal(self, 'targets_by', f'tick where {name}')

        if self.clock is EngineClock.ROS:
            if not self.engine.deterministic:
                needed = parameter(EngineConfig, 'deterministic')
                raise refusal(self, 'clock', f'steady without {needed}')
            if self.publish is not Publish.TICK:
                raise refusal(self, 'clock', 'steady where the tick is not in this thread')

    @property
    def optional_cameras(self) -> tuple[str, ...]:
        """Cameras without which an observation may be made."""
        return self.sensors.optional_cameras

    @property
    def publish(self) -> Publish:
        """Who publishes targets."""
        return Publish.ELSEWHERE if self._is_separate else self.targets_by

    @property
    def _is_separate(self) -> bool:
        return self.tick_process == 'separate'

    def baselines(self) -> dict[str, Any]:
        """Return what is set as the benchmark's baselines have it, by name."""
        return {
            name: value
            for name, value in values_of(self).items()
            if name.startswith(BASELINE) and value != SETTINGS[name].default
        }


SETTINGS: Mapping[str, Setting] = all_settings(RobotSettings)
"""Every parameter, in the order of config/oxygen.yaml."""


def check_names(names: Iterable[str]) -> None:
    """Refuse what is no parameter's name.

    :raises SettingError: says the new name where there is one.
    """
    for name in names:
        if name in _RENAMED:
            raise SettingError(f'{name}: expected its new name {_RENAMED[name]}, got the old one')
        if name not in SETTINGS:
            raise SettingError(
                f'{name}: expected the name of a parameter, got an unknown one '
                '(config/oxygen.yaml lists them all)'
            )


def make_settings(values: Mapping[str, object]) -> RobotSettings:
    """Make the settings of a robot of its parameters; what is not given has its default.

    :raises SettingError: names the parameter, what was expected and what came.
    """
    check_names(values)
    cameras = read(RobotSettings, 'cameras', values)
    of_tick = tick_parts(values)
    tick = of_tick['tick']
    records = make(RecordSettings, values)
    return make(
        RobotSettings,
        values,
        **of_tick,
        cameras=cameras,
        sensors=make(SensorConfig, values, cameras=cameras),
        model=make(
            ModelSettings,
            values,
            options=make(
                ModelOptions,
                values,
                num_cameras=len(cameras),
                num_joints=tick.num_joints,
                cameras=cameras,
            ),
        ),
        engine=make(
            EngineConfig,
            values,
            action=make(ActionConfig, values, period_s=1.0 / tick.rate_hz),
            hash_inputs=bool(records.audit_folder),
        ),
        memory=make_memory_settings(values, cameras),
        records=records,
    )


def fit_to_model(settings: RobotSettings, spec: ModelSpec) -> tuple[RobotSettings, str]:
    """Return the settings that a model can follow, and what differs; empty: nothing.

    A model that reads the state in its prompt has nothing new in a tick without a new prefix.
    """
    action = settings.engine.action
    if spec.is_state_fresh or action.mode is ActionMode.CHUNKED:
        return settings, ''
    engine = replace(settings.engine, action=replace(action, mode=ActionMode.CHUNKED))
    return replace(settings, engine=engine), (
        f'{parameter(ActionConfig, "mode")}: chunked and not {action.mode.value}, for '
        f'{spec.name} reads the state in its prompt: a pass at each new prefix'
    )
