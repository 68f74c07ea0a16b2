# SPDX-License-Identifier: Apache-2.0
"""Parity of pre- and post-processing with LeRobot and openpi, from a folder of references."""

from __future__ import annotations

from hashlib import sha256
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
import torch

from ..types import FloatArray
from .images import fit_image, ImageConvention, resize_with_pillow
from .normalise import needed_statistics, Normaliser, NormMode
from .parity import Comparison, Difference
from .pipeline_file import Pipeline, POSTPROCESSOR_NAME, PREPROCESSOR_NAME
from .prompts import build_prompt, PromptStyle

TOLERANCES = {
    'resize_lerobot_pi': 1e-6,
    'resize_lerobot_smolvla': 1e-6,
    'resize_openpi': 1.0,
    'normalise': 1e-6,
    'unnormalise': 1e-6,
    'prompts': 0.0,
    'statistics': 0.0,
}
_CONVENTIONS = {
    'lerobot_pi': ImageConvention.LEROBOT_CENTRED,
    'lerobot_smolvla': ImageConvention.LEROBOT_TOP_LEFT,
}


def is_processing_folder(folder: Path) -> bool:
    """Return whether a folder holds references of processing."""
    return (folder / 'normalise.safetensors').is_file()


def check_processing(folder: Path) -> list[Difference]:
    """Compare resizing, normalisation, prompts and the reading of processor files.

    Differences of normalisation are relative where a value is above 1.
    """
    comparison = Comparison(TOLERANCES)
    _check_resize(folder, comparison)
    _check_normalise(folder, comparison)
    _check_prompts(folder, comparison)
    _check_files(folder, comparison)
    return comparison.differences()


def synthetic_image(case: dict[str, Any]) -> NDArray[np.uint8]:
    """Return the image of a case, [height, width, 3]."""
    height, width, seed = case['height'], case['width'], case['seed']
    if case['kind'] == 'noise':
        noise = np.random.RandomState(seed).randint(0, 256, (height, width, 3))
        return noise.astype(np.uint8)
    y, x = np.mgrid[0:height, 0:width]
    channels = (x * 255 // (width - 1), y * 255 // (height - 1), (x + y + seed) % 256)
    return np.stack(channels, -1).astype(np.uint8)


def _check_resize(folder: Path, comparison: Comparison) -> None:
    references = load_file(folder / 'resize.safetensors')
    for case in json.loads((folder / 'resize.json').read_text()):
        image = synthetic_image(case)
        assert sha256(image.tobytes()).hexdigest() == case['input_sha256']
        size, name = case['target'], case['name']
        for kind, convention in _CONVENTIONS.items():
            pixels = (fit_image(image, size, convention).numpy() + 1.0) / 2.0
            _compare_image(
                comparison,
                f'resize_{kind}',
                pixels,
                references.get(f'{kind}.{name}'),
                case.get(kind),
                case,
            )
        resized = resize_with_pillow(image, size).transpose(2, 0, 1)
        _compare_image(
            comparison,
            'resize_openpi',
            resized,
            None if 'points_yx' in case else references[f'openpi_pil.{name}'].transpose(2, 0, 1),
            case.get('openpi_pil'),
            case,
        )


def _compare_image(
    comparison: Comparison,
    quantity: str,
    ours: NDArray[Any],
    whole: NDArray[Any] | None,
    part: Any,
    case: dict[str, Any],
) -> None:
    """Compare [3, height, width] with a whole image, or with some of its pixels."""
    if whole is None:
        rows, columns = np.transpose(case['points_yx'])
        ours, whole = ours[:, rows, columns].T, np.asarray(part['pixels_rgb'])
    comparison.add(
        quantity,
        torch.from_numpy(ours.astype(np.float64)),
        torch.from_numpy(whole.astype(np.float64)),
    )


def _check_normalise(folder: Path, comparison: Comparison) -> None:
    data = load_file(folder / 'normalise.safetensors')
    size = data['state'].shape[1]

    def load(feature: str, mode: NormMode, eps: float, always_add: bool = False) -> Normaliser:
        statistics = {key: data[f'stats.{feature}.{key}'] for key in needed_statistics(mode)}
        return Normaliser.load(feature, mode, statistics, size, eps, always_add)

    def add(quantity: str, ours: FloatArray, reference: FloatArray) -> None:
        unit = np.maximum(np.abs(reference), 1.0)
        comparison.add(quantity, torch.from_numpy(ours / unit), torch.from_numpy(reference / unit))

    for mode in NormMode:
        if mode is not NormMode.IDENTITY:
            state, action = load('observation.state', mode, 1e-8), load('action', mode, 1e-8)
            add(
                'normalise', state.normalise(data['state']), data[f'{mode.value}.state_normalised']
            )
            add(
                'unnormalise',
                action.unnormalise(data['model_action']),
                data[f'{mode.value}.action_unnormalised'],
            )
    openpi = load('observation.state', NormMode.QUANTILES, 1e-6, always_add=True)
    add('normalise', openpi.normalise(data['state']), data['openpi_quantiles.state_normalised'])


def _check_prompts(folder: Path, comparison: Comparison) -> None:
    """Count the prompts that differ."""
    data = json.loads((folder / 'prompts.json').read_text(encoding='utf-8'))
    wrong = 0
    for case in data['pi05']:
        if case['name'] != 'non_finite':  # such a state never reaches a model of ours
            state = np.array([float(value) for value in case['normalised_state']], np.float32)
            wrong += build_prompt(PromptStyle.STATE, case['task'], state) != case['prompt']
    for case in data['newline']:
        ours = build_prompt(PromptStyle.NEWLINE, case['task'], None)
        wrong += ours != case['pi0']
        wrong += ours != case['smolvla']
    comparison.add('prompts', torch.tensor([wrong]), torch.tensor([0]))


def _check_files(folder: Path, comparison: Comparison) -> None:
    data = load_file(folder / 'normalise.safetensors')
    for path in sorted(folder.glob('processors_*')):
        before, after = (Pipeline(path / name) for name in (PREPROCESSOR_NAME, POSTPROCESSOR_NAME))
        for step in (before.find('normalizer_processor'), after.find('unnormalizer_processor')):
            for feature, kind in (('observation.state', 'STATE'), ('action', 'ACTION')):
                statistics = step.statistics(feature)
                for key in needed_statistics(step.mode(kind)):
                    comparison.add(
                        'statistics',
                        torch.from_numpy(statistics[key]),
                        torch.from_numpy(data[f'stats.{feature}.{key}']),
                    )
