# SPDX-License-Identifier: Apache-2.0
"""Settings of a replay from a recording's layout and the node's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import yaml

from ..engine.model import VLAModel
from ..models import create_model
from ..nodes.parameters.declare import ParameterError
from ..nodes.parameters.model_settings import fit_to_model
from ..nodes.parameters.settings import make_settings
from ..nodes.parameters.spec import ParameterSpec, Value
from ..nodes.parameters.table import PARAMETERS
from ..replay.bag import Bag
from ..replay.deterministic import Replay
from ..replay.layout import BagLayout
from ..replay.settings import Question, ReplaySettings, SceneSettings

SPECS = {spec.name: spec for spec in PARAMETERS}


def parse_setting(text: str) -> tuple[str, object]:
    """Return name and value of `parameter=value`, the value written as in a parameter file.

    :raises ParameterError: not of that form.
    """
    name, equals, value = text.partition('=')
    if not equals or not name:
        raise ParameterError(f'--set: expected parameter=value, got {text!r}')
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError:
        raise ParameterError(f'{name}: expected a value, got {value!r}') from None


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
    :raises ParameterError: a parameter is unknown, or its value cannot be used.
    """
    values: dict[str, Value] = {spec.name: spec.default for spec in PARAMETERS}
    values.update(
        {
            'cameras': list(layout.cameras) or [''],
            'engine.deterministic': True,
            'model.device': 'cpu',
        }
    )
    if layout.joint_names:
        values['joints'] = list(layout.joint_names)
    for name, value in (parameters or {}).items():
        values[name] = _checked(name, value)
    node = make_settings(values)
    memory = node.memory
    try:
        return ReplaySettings(
            joints=node.joints,
            runtime=node.runtime,
            scene=SceneSettings(
                memory.period_s if scene_period is None else scene_period,
                memory.prompt,
                memory.scene_format,
                memory.rules,
            ),
            model_name=node.model_name,
            model_options=node.model_options,
            max_answer_tokens=node.dialogue.max_tokens,
            ingest=node.ingest,
            num_threads=node.num_threads,
            questions=tuple(Question(time_s, text) for time_s, text in questions),
            start_s=start,
            duration_s=duration,
        )
    except ValueError as error:
        raise ParameterError(str(error)) from error


def make_replay(bag: Bag, layout: BagLayout, settings: ReplaySettings) -> Replay:
    """Load the model and return a replay that is ready to run.

    :raises BagError: the recording is shorter than the start.
    :raises ParameterError: the settings cannot be met by this model or recording.
    """
    try:
        model: VLAModel = create_model(settings.model_name, **settings.model_options)
        # As the node does: a checkpoint says itself when its passes are worth making.
        runtime, _ = fit_to_model(settings.runtime, model.spec)
        return Replay(bag, layout, replace(settings, runtime=runtime), model)
    except ValueError as error:
        raise ParameterError(str(error)) from error


def _checked(name: str, value: object) -> Value:
    spec = SPECS.get(name)
    if spec is None:
        raise ParameterError(
            f'{name}: expected the name of a parameter, got an unknown one '
            '(config/oxygen.yaml lists them all)'
        )
    converted = _converted(spec, value)
    problem = spec.problem(converted)
    if problem:
        raise ParameterError(problem)
    return converted


def _converted(spec: ParameterSpec, value: Any) -> Value:
    default: Any = spec.default
    if isinstance(default, list):
        if isinstance(value, (list, tuple)) and value:
            return [_scalar(spec, default[0], item) for item in value]
        raise ParameterError(f'{spec.name}: expected a {spec.type_name}, got {value!r}')
    converted: Value = _scalar(spec, default, value)
    return converted


def _scalar(spec: ParameterSpec, default: Any, value: Any) -> Any:
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        raise ParameterError(f'{spec.name}: expected a {spec.type_name}, got {value!r}')
    return value
