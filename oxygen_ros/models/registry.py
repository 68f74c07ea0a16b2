# SPDX-License-Identifier: Apache-2.0
"""Models by name, or by the folder of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import cast

import torch

from ..engine.model import VLAModel
from ..engine.spec import PrefixScope
from ..setting import parameter, SettingError
from .binding import check_binding, parse_camera_map
from .checkpoint import is_checkpoint, load_checkpoint
from .compiled import CompiledModel
from .errors import CheckpointError
from .graphed import GraphedModel
from .options import DTYPE_NAMES, MODEL_NAMES, ModelOptions
from .tiny import TinyModel
from .tiny_config import TinyConfig

DTYPES = {name: getattr(torch, name) for name in DTYPE_NAMES}


def _tiny(options: ModelOptions) -> VLAModel:
    try:
        config = TinyConfig(
            num_cameras=options.num_cameras,
            image_px=options.image_px,
            action_dim=options.num_joints,
            action_dt_s=options.action_dt_s,
            prefix_scope=PrefixScope(options.prefix_scope),
            num_kv_heads=options.num_kv_heads,
            num_denoising_steps=options.num_denoising_steps,
            seed=options.seed,
        )
    except ValueError as error:
        name, _, rest = str(error).partition(':')
        known = 'cameras' if name == 'num_cameras' else parameter(ModelOptions, name)
        raise SettingError(f'{known}:{rest}') from error
    return TinyModel(config, options.torch_device(), DTYPES[options.dtype])


_BUILDERS: dict[str, Callable[[ModelOptions], VLAModel]] = dict(zip(MODEL_NAMES, (_tiny,)))


def _checkpoint(path: str, options: ModelOptions) -> VLAModel:
    model = load_checkpoint(
        path,
        device=options.torch_device(),
        dtype=DTYPES[options.dtype],
        action_dt_s=options.action_dt_s,
        adapter=options.adapter or None,
    )
    check_binding(
        model.config,
        model.processing,
        options.cameras,
        parse_camera_map(options.camera_map),
        options.num_joints,
    )
    if options.num_cameras > len(model.config.cameras):
        raise CheckpointError(
            f'num_cameras: expected at most {len(model.config.cameras)}, got {options.num_cameras}'
        )
    return model


def is_known_model(name: str) -> bool:
    """Return whether `create_model` would look at a name: one of ours, or a folder."""
    return name in _BUILDERS or is_checkpoint(name)


def create_model(
    name: str, options: ModelOptions | None = None, **fields_of_them: object
) -> VLAModel:
    """Build a model.

    :param name: one of ours, or the path of a checkpoint folder.
    :param fields_of_them: in place of options.
    :raises CheckpointError: the folder cannot be used, or is not for this robot.
    :raises ValueError: unknown name or option, or a value out of range; names what is known.
    """
    if not is_known_model(name):
        raise ValueError(
            f'model: expected one of {", ".join(_BUILDERS)} or the folder of a '
            f'checkpoint, got {name}'
        )
    known = [field.name for field in fields(ModelOptions)]
    unknown = sorted(set(fields_of_them) - set(known))
    if unknown:
        raise ValueError(f'model options: expected {", ".join(known)}, got {", ".join(unknown)}')
    chosen = options or ModelOptions(**fields_of_them)  # type: ignore[arg-type]
    chosen.check_for(is_checkpoint=name not in _BUILDERS)
    model = _BUILDERS[name](chosen) if name in _BUILDERS else _checkpoint(name, chosen)
    # All but what a wrapper defines is found on the model behind it.
    if chosen.compile:
        model = cast(VLAModel, CompiledModel(model))
    return cast(VLAModel, GraphedModel(model)) if chosen.cuda_graphs else model
