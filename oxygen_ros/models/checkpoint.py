# SPDX-License-Identifier: Apache-2.0
"""A checkpoint folder to a model: config, weights, processing, adapter, checksum."""

from __future__ import annotations

from pathlib import Path

import torch

from .adapter import load_adapter
from .config_file import ConfigFile, read_config
from .errors import CheckpointError
from .flow_vla import FlowVLA
from .paligemma import PaliGemmaModel
from .pi0 import Pi0Model
from .pi05 import Pi05Model
from .read_processing import read_norm_stats, read_processing
from .smolvla import SmolVLAModel
from .vla_config import Family, VLAConfig
from .weight_file import WeightFile
from .weights import weights_checksum

CLASSES: dict[Family, type[FlowVLA]] = {
    Family.PI05: Pi05Model,
    Family.PI0: Pi0Model,
    Family.SMOLVLA: SmolVLAModel,
    Family.PALIGEMMA: PaliGemmaModel,
}
DEFAULT_ACTION_DT_S = 1.0 / 30.0


def is_checkpoint(path: str | Path) -> bool:
    """Return whether a name means a folder and not a model of ours."""
    return Path(path).is_dir()


def read_folder(folder: Path) -> tuple[ConfigFile, WeightFile, VLAConfig]:
    """Open a folder without reading its weights.

    :raises CheckpointError: names the file, what was expected and what came.
    """
    weights = WeightFile(folder)
    file = ConfigFile(folder)
    joints = None
    if not file.is_lerobot and 'model_type' not in file.values:
        statistics = read_norm_stats(folder)
        joints = (len(statistics['state']['mean']), len(statistics['actions']['mean']))
    return file, weights, read_config(file, weights, joints)


def load_checkpoint(
    path: str | Path,
    *,
    device: torch.device | str = 'cpu',
    dtype: torch.dtype = torch.float32,
    action_dt_s: float = DEFAULT_ACTION_DT_S,
    adapter: str | Path | None = None,
    with_processing: bool = True,
) -> FlowVLA:
    """Load a model from a LeRobot or openpi folder; refuse it whole where anything is amiss.

    :param action_dt_s: seconds between two steps of a chunk; no checkpoint says it.
    :param adapter: PEFT folder with a LoRA of the language layers, for text alone.
    :param with_processing: False: tensors in, tensors out.
    :raises CheckpointError: one line on each thing that does not fit.
    """
    folder = Path(path)
    file, weights, config = read_folder(folder)
    if config.family is Family.PALIGEMMA and with_processing:
        raise CheckpointError(
            f'{folder}: expected pi05, pi0 or smolvla, got paligemma, which has no actions'
        )
    processing = read_processing(folder, file, config) if with_processing else None
    where = torch.device(device)
    adapters = None if adapter is None else load_adapter(Path(adapter), config, where, dtype)
    checksum = weights_checksum(weights)
    try:
        return CLASSES[config.family](
            config, weights, checksum, where, dtype, action_dt_s, processing, adapters
        )
    except CheckpointError as error:
        raise CheckpointError(f'{folder}: {error}') from error
