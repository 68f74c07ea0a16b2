# SPDX-License-Identifier: Apache-2.0
"""Which model the node runs, and what a model makes of the node's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...engine.action_runner import ActionMode
from ...engine.spec import ModelSpec
from ...models import model_names, ModelOptions
from ...runtime.runtime import RuntimeConfig
from .declare import ParameterError
from .tick_settings import names


def model_choice(reader: Mapping[str, Any], num_joints: int) -> tuple[str, dict[str, Any]]:
    """Return name and options for `create_model`; a checkpoint's name is its folder.

    The folder's contents are compared with cameras and joints when the model is made.

    :raises ParameterError: names the parameter, what was expected and what came.
    """
    options = {
        name: reader[f'model.{name}']
        for name in (
            'device',
            'dtype',
            'seed',
            'image_px',
            'action_dt_s',
            'prefix_scope',
            'num_kv_heads',
            'num_denoising_steps',
            'compile',
            'cuda_graphs',
        )
    }
    cameras = names(reader, 'cameras')
    options.update(num_cameras=len(cameras), num_joints=num_joints)
    name, folder = reader['model.name'], reader['model.checkpoint']
    camera_map = tuple(pair for pair in reader['model.camera_map'] if pair)
    adapter = reader['model.adapter']
    if folder:
        for parameter, path in (('checkpoint', folder), ('adapter', adapter)):
            if path and not Path(path).is_dir():
                raise ParameterError(f'model.{parameter}: expected a folder, got {path}')
        name = folder
        options.update(cameras=cameras, camera_map=camera_map, adapter=adapter)
    else:
        for parameter, value in (('adapter', adapter), ('camera_map', ', '.join(camera_map))):
            if value:
                raise ParameterError(
                    f'model.{parameter}: expected together with '
                    f'model.checkpoint, got {value} alone'
                )
        if name not in model_names():
            raise ParameterError(
                f'model.name: expected one of {", ".join(model_names())}, got {name}'
            )
    try:
        ModelOptions(**options)
    except ValueError as error:
        raise ParameterError(f'model.{error}') from error
    return name, options


def fit_to_model(config: RuntimeConfig, spec: ModelSpec) -> tuple[RuntimeConfig, str]:
    """Return the settings that a model can follow, and what differs; empty: nothing.

    A model that reads the state in its prompt has nothing new in a tick without a new prefix.
    """
    action = config.engine.action
    if spec.is_state_fresh or action.mode is ActionMode.CHUNKED:
        return config, ''
    engine = replace(config.engine, action=replace(action, mode=ActionMode.CHUNKED))
    return replace(config, engine=engine), (
        f'action.mode: chunked and not {action.mode.value}, for {spec.name} reads the state in '
        'its prompt: a pass at each new prefix'
    )
