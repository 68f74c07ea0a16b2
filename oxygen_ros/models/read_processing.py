# SPDX-License-Identifier: Apache-2.0
"""A checkpoint folder's own pre- and post-processing, LeRobot's or openpi's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..types import FloatArray
from .config_file import ConfigFile, read_object
from .errors import CheckpointError
from .images import ImageConvention
from .normalise import Normaliser, NormMode
from .pipeline_file import (
    check_features,
    Pipeline,
    POSTPROCESSOR_NAME,
    PREPROCESSOR_NAME,
    PROMPT_STEPS,
)
from .processing import Processing
from .prompts import PromptStyle
from .text_tokenizer import TextTokenizer
from .vla_config import Family, VLAConfig

NORM_STATS_NAME = 'norm_stats.json'
_PROMPT_STEP = dict(zip((Family.PI05, Family.PI0, Family.SMOLVLA), PROMPT_STEPS, strict=True))
_OPENPI_EPS = 1e-6


def read_processing(folder: Path, file: ConfigFile, config: VLAConfig) -> Processing:
    """Read what the folder says of images, prompt, state and actions.

    :raises CheckpointError: names the file, what was expected and what came.
    """
    tokenizer = TextTokenizer(folder, config.vocab_size)
    if file.is_lerobot:
        return _lerobot(folder, file, config, tokenizer)
    return _openpi(folder, file, config, tokenizer)


def _lerobot(
    folder: Path, file: ConfigFile, config: VLAConfig, tokenizer: TextTokenizer
) -> Processing:
    before, after = Pipeline(folder / PREPROCESSOR_NAME), Pipeline(folder / POSTPROCESSOR_NAME)
    normaliser, inverse = before.find('normalizer_processor'), after.find('unnormalizer_processor')
    check_features(normaliser, file)
    check_features(inverse, file)
    if normaliser.mode('VISUAL') is not NormMode.IDENTITY:
        raise CheckpointError(
            f'{before.path}: norm_map of VISUAL: expected IDENTITY, '
            f'got {normaliser.mode("VISUAL").value}'
        )
    before.find(_PROMPT_STEP[config.family])
    tokens = before.find('tokenizer_processor').config
    limit = tokens.get('max_length', config.max_prompt_tokens)
    if limit != config.max_prompt_tokens:
        raise CheckpointError(
            f'{before.path}: max_length: expected {config.max_prompt_tokens} '
            f'as in config.json, got {limit}'
        )
    is_pi05 = config.family is Family.PI05
    return Processing(
        images=(
            ImageConvention.LEROBOT_TOP_LEFT
            if config.family is Family.SMOLVLA
            else ImageConvention.LEROBOT_CENTRED
        ),
        prompt=PromptStyle.STATE if is_pi05 else PromptStyle.NEWLINE,
        max_prompt_tokens=config.max_prompt_tokens,
        state=Normaliser.load(
            'observation.state',
            normaliser.mode('STATE'),
            normaliser.statistics('observation.state'),
            config.state_dim,
            float(normaliser.config.get('eps', 1e-8)),
        ),
        action=Normaliser.load(
            'action',
            inverse.mode('ACTION'),
            inverse.statistics('action'),
            config.action_dim,
            float(inverse.config.get('eps', 1e-8)),
        ),
        tokenizer=tokenizer,
        renames=before.renames(),
    )


def _openpi(
    folder: Path, file: ConfigFile, config: VLAConfig, tokenizer: TextTokenizer
) -> Processing:
    statistics = read_norm_stats(folder)
    is_pi05 = config.family is Family.PI05
    mode = NormMode.QUANTILES if is_pi05 else NormMode.MEAN_STD

    def load(name: str, size: int) -> Normaliser:
        return Normaliser.load(name, mode, statistics[name], size, _OPENPI_EPS, always_add=True)

    in_prompt = is_pi05 and file.values.get('discrete_state_input', True)
    return Processing(
        images=ImageConvention.OPENPI,
        prompt=PromptStyle.STATE if in_prompt else PromptStyle.CLEAN_NEWLINE,
        max_prompt_tokens=config.max_prompt_tokens,
        state=load('state', config.state_dim),
        action=load('actions', config.action_dim),
        tokenizer=tokenizer,
    )


def read_norm_stats(folder: Path) -> Mapping[str, Mapping[str, FloatArray]]:
    """Read openpi's statistics: of `state` and `actions`, by name.

    :raises CheckpointError: there is no such file, or more than one.
    """
    paths = sorted({*folder.glob(NORM_STATS_NAME), *folder.glob(f'assets/**/{NORM_STATS_NAME}')})
    if len(paths) != 1:
        raise CheckpointError(
            f'{folder}: expected one {NORM_STATS_NAME}, there or below assets/, '
            f'found {", ".join(map(str, paths)) or "none"}'
        )
    values = read_object(paths[0])
    values = values.get('norm_stats', values)
    result = {}
    for name in ('state', 'actions'):
        if not isinstance(values.get(name), dict):
            raise CheckpointError(
                f'{paths[0]}: expected statistics of {name}, found {", ".join(values) or "none"}'
            )
        result[name] = {
            key: np.asarray(value, np.float32)
            for key, value in values[name].items()
            if value is not None
        }
    return result
