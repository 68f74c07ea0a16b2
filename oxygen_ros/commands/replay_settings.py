# SPDX-License-Identifier: Apache-2.0
"""Settings of a replay from a recording's layout and the node's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import yaml

from ..engine.config import EngineConfig
from ..models.options import ModelOptions
from ..replay.bag import Bag
from ..replay.deterministic import Replay
from ..replay.layout import BagLayout
from ..replay.settings import ReplaySettings, TimedQuestion
from ..robot.memory_settings import MemorySettings
from ..robot.robot import load_model
from ..robot.settings import make_settings, RobotSettings
from ..setting import parameter, SettingError, values_of


def parse_setting(text: str) -> tuple[str, object]:
    """Return name and value of `parameter=value`, the value written as in a parameter file.

    :raises SettingError: not of that form.
    """
    name, equals, value = text.partition('=')
    if not equals or not name:
        raise SettingError(f'--set: expected parameter=value, got {text!r}')
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError:
        raise SettingError(f'{name}: expected a value, got {value!r}') from None


def replay_settings(
    layout: BagLayout,
    parameters: Mapping[str, object] | None = None,
    *,
    questions: Iterable[tuple[float, str]] = (),
    scene_period: float | None = None,
    start: float = 0.0,
    duration: float | None = None,
) -> ReplaySettings:
    """Return the settings of a deterministic replay; times are seconds.

    Cameras and joints are the recording's, the engine is deterministic and on the CPU, all else
    is as in config/oxygen.yaml, unless `parameters` says otherwise.

    :param questions: (time since the start, text) of dialogue requests.
    :param scene_period: between scene-graph requests; None: the parameter memory.period_s.
    :raises SettingError: a parameter is unknown, or its value cannot be used.
    """
    values: dict[str, object] = {
        parameter(RobotSettings, 'cameras'): list(layout.cameras) or [''],
        parameter(EngineConfig, 'deterministic'): True,
        parameter(ModelOptions, 'device'): 'cpu',
    }
    if layout.joint_names:
        values[parameter(RobotSettings, 'joints')] = list(layout.joint_names)
    if scene_period is not None:
        values[parameter(MemorySettings, 'period_s')] = scene_period
    try:
        robot = make_settings({**values, **(parameters or {})})
        return ReplaySettings(
            robot=robot,
            parameters=values_of(robot),
            questions=tuple(TimedQuestion(time_s, text) for time_s, text in questions),
            start_s=start,
            duration_s=duration,
        )
    except ValueError as error:
        raise SettingError(str(error)) from error


def make_replay(bag: Bag, layout: BagLayout, settings: ReplaySettings) -> Replay:
    """Load the model and return a replay that is ready to run.

    :raises BagError: the recording is shorter than the start.
    :raises SettingError: the settings cannot be met by this model or recording.
    """
    try:
        # As the node does: a checkpoint says itself when its passes are worth making.
        robot, model, _ = load_model(settings.robot)
        return Replay(bag, layout, replace(settings, robot=robot), model)
    except ValueError as error:
        raise SettingError(str(error)) from error
