# SPDX-License-Identifier: Apache-2.0
"""Models by name, or by the folder of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import cast

import torch

from ..engine.model import VLAModel
from ..engine.spec import PrefixScope
from .binding import check_binding, parse_camera_map
from .checkpoint import is_checkpoint, load_checkpoint
from .compiled import CompiledModel
from .errors import CheckpointError
from .graphed import GraphedModel
from .tiny import TinyModel
from .tiny_config import TinyConfig

DTYPES = {'float32': torch.float32, 'bfloat16': torch.bfloat16}


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What a caller may choose of a model; a checkpoint says sizes, scope and steps itself.

    :raises ValueError: names the field, what was expected and what came.
    """

    num_cameras: int = 3
    num_joints: int = 7
    image_px: int = 112  # side of the vision tower's input
    action_dt_s: float = 0.02  # seconds between two steps of a chunk
    seed: int = 0  # of random weights
    device: str = 'auto'  # 'auto' (cuda where there is one), 'cpu', 'cuda', 'cuda:1' ...
    dtype: str = 'float32'
    prefix_scope: PrefixScope | str = PrefixScope.OBSERVATION
    num_kv_heads: int = 1
    num_denoising_steps: int = 5
    cameras: tuple[str, ...] = ()  # the robot's, to be checked against a checkpoint's keys
    camera_map: tuple[str, ...] = ()  # 'camera=key' where the names differ
    adapter: str = ''  # PEFT folder with a LoRA for text
    compile: bool = False  # vision tower and denoising step by torch.compile
    cuda_graphs: bool = False  # the passes that launch most kernels, replayed

    def __post_init__(self) -> None:
        """Check what no model checks itself."""
        if self.dtype not in DTYPES:
            raise ValueError(f'dtype: expected one of {", ".join(DTYPES)}, got {self.dtype}')
        scopes = [scope.value for scope in PrefixScope]
        if self.prefix_scope not in scopes:
            raise ValueError(
                f'prefix_scope: expected one of {", ".join(scopes)}, got {self.prefix_scope}'
            )
        self.torch_device()

    def torch_device(self) -> torch.device:
        """Resolve `device`."""
        if self.device == 'auto':
            return torch.device('cuda' if torch.cuda.is_available() else 'cpu')
        try:
            device = torch.device(self.device)
        except RuntimeError:
            device = torch.device('meta')
        if device.type not in ('cpu', 'cuda'):
            raise ValueError(f'device: expected auto, cpu or cuda, got {self.device}')
        if device.type == 'cuda' and not torch.cuda.is_available():
            raise ValueError(
                f'device: expected a usable CUDA device for {self.device}, found none'
            )
        return device


def _tiny(options: ModelOptions) -> VLAModel:
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
    return TinyModel(config, options.torch_device(), DTYPES[options.dtype])


_BUILDERS: dict[str, Callable[[ModelOptions], VLAModel]] = {'tiny': _tiny}


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


def model_names() -> tuple[str, ...]:
    """Names that `create_model` knows."""
    return tuple(_BUILDERS)


def create_model(name: str, **options: object) -> VLAModel:
    """Build a model; `options` are the fields of `ModelOptions`.

    :param name: one of ours, or the path of a checkpoint folder.
    :raises CheckpointError: the folder cannot be used, or is not for this robot.
    :raises ValueError: unknown name or option, or a value out of range; names what is known.
    """
    if not is_known_model(name):
        raise ValueError(
            f'model: expected one of {", ".join(_BUILDERS)} or the folder of a '
            f'checkpoint, got {name}'
        )
    known = [field.name for field in fields(ModelOptions)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f'model options: expected {", ".join(known)}, got {", ".join(unknown)}')
    chosen = ModelOptions(**options)  # type: ignore[arg-type]
    model = _BUILDERS[name](chosen) if name in _BUILDERS else _checkpoint(name, chosen)
    # All but what a wrapper defines is found on the model behind it.
    if chosen.compile:
        model = cast(VLAModel, CompiledModel(model))
    return cast(VLAModel, GraphedModel(model)) if chosen.cuda_graphs else model
