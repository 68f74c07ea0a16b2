# SPDX-License-Identifier: Apache-2.0
"""A checkpoint's config.json, read into our terms.

LeRobot writes the policy's config, with `type`; openpi's converter writes sizes by variant and no
`type`. A `sizes` entry (ours, for small models) overrides the variants.
"""

from __future__ import annotations

from collections.abc import Mapping
import json
from pathlib import Path
from typing import Any

from .errors import CheckpointError
from .layers import LayerShape
from .presets import (
    GEMMA_LAYERS,
    GEMMA_VARIANTS,
    PALIGEMMA_VOCAB_SIZE,
    PI_CAMERAS,
    siglip_so400m,
    smolvla_expert,
    SMOLVLM2_500M,
    SMOLVLM2_500M_NAMES,
    SMOLVLM2_500M_VISION,
    SMOLVLM2_500M_VOCAB_SIZE,
)
from .vision import VisionShape
from .vla_config import Family, VLAConfig

CONFIG_NAME = 'config.json'
IMAGE_PREFIX = 'observation.images.'


class ConfigFile:
    """One config.json.

    :raises CheckpointError: it is missing or no JSON object.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / CONFIG_NAME
        self.values = read_object(self.path)

    @property
    def is_lerobot(self) -> bool:
        """Whether LeRobot wrote it; else openpi or transformers."""
        return 'type' in self.values

    def family(self, tensor_names: Mapping[str, object]) -> Family:
        """Return the family by the config's word, or by what only that family has.

        :param tensor_names: of the weights, in our naming.
        """
        name = self.values.get('type', self.values.get('model_type'))
        if name is None:
            is_pi05 = self.values.get('pi05', 'time_mlp_in.weight' in tensor_names)
            return Family.PI05 if is_pi05 else Family.PI0
        if name not in [family.value for family in Family]:
            raise self.error('type', 'pi05, pi0 or smolvla', name)
        return Family(name)

    def error(self, key: str, expected: str, got: object) -> CheckpointError:
        """Return an error about one entry."""
        return CheckpointError(f'{self.path}: {key}: expected {expected}, got {got!r}')

    def number(self, key: str, default: int | None = None) -> int:
        """Return a positive integer."""
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.error(key, 'a positive integer', value)
        return value


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    :raises CheckpointError: no such file, no JSON, or something else than an object.
    """
    try:
        values = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise CheckpointError(f'{path}: expected a readable JSON file, got: {error}') from error
    if not isinstance(values, dict):
        raise CheckpointError(f'{path}: expected a JSON object, got {type(values).__name__}')
    return values


def read_config(
    file: ConfigFile, tensor_names: Mapping[str, object], joints: tuple[int, int] | None = None
) -> VLAConfig:
    """Return the model's sizes.

    :param joints: (state_dim, action_dim) where the config does not say them (openpi).
    :raises CheckpointError: names the entry, what was expected and what came.
    """
    family = file.family(tensor_names)
    try:
        return _read(file, family, joints)
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        what = f'missing {error}' if isinstance(error, KeyError) else str(error)
        raise CheckpointError(f'{file.path}: {what}') from error


def _read(file: ConfigFile, family: Family, joints: tuple[int, int] | None) -> VLAConfig:
    values = file.values
    vision, language, expert, num_layers, vocab_size = _shapes(file, family)
    if family is Family.PALIGEMMA:
        return VLAConfig(
            family,
            vision,
            language,
            expert,
            num_layers,
            vocab_size,
            1,
            1,
            1,
            1,
            1,
            256,
            tuple(f'camera{i}' for i in range(values['sizes']['cameras'])),
        )
    if file.is_lerobot:
        cameras, state_dim, action_dim = _features(file)
        padded_action, padded_state = file.number('max_action_dim'), file.number('max_state_dim')
        horizon = file.number('chunk_size')
    else:
        cameras = PI_CAMERAS
        padded_action = padded_state = file.number('action_dim', 32)
        horizon = file.number('action_horizon', 50)
        state_dim, action_dim = joints or (padded_state, padded_action)
    steps = 'num_steps' if family is Family.SMOLVLA else 'num_inference_steps'
    prompt = 'tokenizer_max_length' if file.is_lerobot else 'max_token_len'
    return VLAConfig(
        family,
        vision,
        language,
        expert,
        num_layers,
        vocab_size,
        horizon,
        padded_action,
        action_dim,
        padded_state,
        state_dim,
        file.number(prompt, 200 if family is Family.PI05 else 48),
        cameras,
        file.number(steps, 10),
        float(values.get('min_period', 4e-3)),
        float(values.get('max_period', 4.0)),
    )


def _features(file: ConfigFile) -> tuple[tuple[str, ...], int, int]:
    """Return cameras, joints of the state and of the action from LeRobot's features."""
    inputs = file.values.get('input_features') or {}
    outputs = file.values.get('output_features') or {}
    cameras = tuple(
        name.removeprefix(IMAGE_PREFIX)
        for name, feature in inputs.items()
        if feature['type'] == 'VISUAL'
    )
    dims = []
    for features, name in ((inputs, 'observation.state'), (outputs, 'action')):
        shape = features.get(name, {}).get('shape')
        if not isinstance(shape, list) or len(shape) != 1:
            raise file.error(f'features: {name}', 'a shape of one number', shape)
        dims.append(int(shape[0]))
    if not cameras:
        raise file.error('input_features', 'at least one camera', list(inputs))
    return cameras, dims[0], dims[1]


def _shapes(
    file: ConfigFile, family: Family
) -> tuple[VisionShape, LayerShape, LayerShape, int, int]:
    """Return vision, language and expert shapes, layers and vocabulary."""
    values = file.values
    sizes = values.get('sizes')
    if family is Family.SMOLVLA:
        _check_smolvla(file)
    if isinstance(sizes, dict):
        return _small_shapes(sizes, family)
    if family is Family.SMOLVLA:
        return _smolvla_shapes(file)
    if family is Family.PALIGEMMA:
        raise file.error('sizes', 'an object', sizes)
    language, expert = (
        _variant(file, key, default)
        for key, default in (
            ('paligemma_variant', 'gemma_2b'),
            ('action_expert_variant', 'gemma_300m'),
        )
    )
    resolution = values.get('image_resolution', [224, 224])
    if not isinstance(resolution, list) or len(set(resolution)) != 1:
        raise file.error('image_resolution', 'a square', resolution)
    return (
        siglip_so400m(resolution[0], language.width),
        language,
        expert,
        GEMMA_LAYERS,
        PALIGEMMA_VOCAB_SIZE,
    )


def _variant(file: ConfigFile, key: str, default: str) -> LayerShape:
    name = file.values.get(key, default)
    if name not in GEMMA_VARIANTS:
        raise file.error(key, f'one of {", ".join(GEMMA_VARIANTS)}', name)
    return GEMMA_VARIANTS[name]


def _smolvla_shapes(file: ConfigFile) -> tuple[VisionShape, LayerShape, LayerShape, int, int]:
    values = file.values
    if values.get('vlm_model_name') not in SMOLVLM2_500M_NAMES:
        raise file.error(
            'vlm_model_name',
            f'one of {", ".join(SMOLVLM2_500M_NAMES)}',
            values.get('vlm_model_name'),
        )
    if values.get('resize_imgs_with_padding') != [512, 512]:
        raise file.error(
            'resize_imgs_with_padding', '[512, 512]', values.get('resize_imgs_with_padding')
        )
    expert = smolvla_expert(SMOLVLM2_500M, float(values.get('expert_width_multiplier', 0.75)))
    return (
        SMOLVLM2_500M_VISION,
        SMOLVLM2_500M,
        expert,
        file.number('num_vlm_layers', 16),
        SMOLVLM2_500M_VOCAB_SIZE,
    )


def _check_smolvla(file: ConfigFile) -> None:
    """Refuse variants of SmolVLA whose maths is another."""
    values = file.values
    for key, allowed in (
        ('attention_mode', ('cross_attn',)),
        ('self_attn_every_n_layers', (2,)),
        ('add_image_special_tokens', (False, None)),
        ('num_expert_layers', (-1, 0, None, values.get('num_vlm_layers'))),
        ('adapt_to_pi_aloha', (False, None)),
    ):
        if key in values and values[key] not in allowed:
            raise file.error(key, f'{allowed[0]}', values[key])


def _small_shapes(
    sizes: Mapping[str, Any], family: Family
) -> tuple[VisionShape, LayerShape, LayerShape, int, int]:
    smol = family is Family.SMOLVLA
    activation = 'silu' if smol else 'gelu_tanh'
    joint = (sizes['heads'], sizes['kv_heads'], sizes['head_dim'], activation, sizes['rms_eps'])
    language = LayerShape(sizes['width'], sizes['mlp'], *joint)
    expert = (
        language
        if family is Family.PALIGEMMA
        else LayerShape(sizes['expert_width'], sizes['expert_mlp'], *joint)
    )
    vision = VisionShape(
        sizes['image_size'],
        sizes['patch'],
        sizes['vision_width'],
        sizes['vision_mlp'],
        sizes['vision_layers'],
        sizes['vision_heads'],
        sizes['width'],
        sizes['vision_eps'],
        sizes['connector_scale'] if smol else 0,
    )
    return vision, language, expert, sizes['layers'], sizes['vocab']
