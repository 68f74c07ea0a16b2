# SPDX-License-Identifier: Apache-2.0
"""Sizes of the real models, by name.

openpi `models/gemma.py`, `models/siglip.py`; LeRobot `policies/smolvla/configuration_smolvla.py`
and the config of SmolVLM2-500M.
"""

from __future__ import annotations

from .layers import LayerShape
from .vision import VisionShape
from .vla_config import Family, VLAConfig

GEMMA_VARIANTS = {
    'gemma_300m': LayerShape(1024, 4096, 8, 1, 256),
    'gemma_2b': LayerShape(2048, 16384, 8, 1, 256),
}
GEMMA_LAYERS = 18
PALIGEMMA_VOCAB_SIZE = 257_152
PI_CAMERAS = ('base_0_rgb', 'left_wrist_0_rgb', 'right_wrist_0_rgb')

SMOLVLM2_500M = LayerShape(960, 2560, 15, 5, 64, 'silu', 1e-5)
SMOLVLM2_500M_VISION = VisionShape(512, 16, 768, 3072, 12, 12, output_width=960, shuffle=4)
SMOLVLM2_500M_VOCAB_SIZE = 49_280
SMOLVLM2_500M_NAMES = (
    'HuggingFaceTB/SmolVLM2-500M-Video-Instruct',
    'HuggingFaceTB/SmolVLM2-500M-Instruct',
)


def siglip_so400m(image_px: int, output_width: int) -> VisionShape:
    """Return the tower of PaliGemma."""
    return VisionShape(image_px, 14, 1152, 4304, 27, 16, output_width)


def smolvla_expert(
    language: LayerShape, width_multiplier: float, mlp_multiple: int = 256
) -> LayerShape:
    """Return SmolVLA's expert for a language model, LeRobot's `get_intermediate_size` within."""
    width = int(language.width * width_multiplier)
    mlp_width = 4 * int(2 * width / 3)
    mlp_width = -(-mlp_width // mlp_multiple) * mlp_multiple
    return LayerShape(
        width,
        mlp_width,
        language.num_heads,
        language.num_kv_heads,
        language.head_dim,
        language.activation,
        language.eps,
    )


def preset(name: str) -> VLAConfig:
    """Return a real model's config with three cameras and 32 joints.

    :raises ValueError: unknown name; lists what is known.
    """
    if name in (Family.PI05.value, Family.PI0.value):
        language = GEMMA_VARIANTS['gemma_2b']
        return VLAConfig(
            Family(name),
            siglip_so400m(224, language.width),
            language,
            GEMMA_VARIANTS['gemma_300m'],
            GEMMA_LAYERS,
            PALIGEMMA_VOCAB_SIZE,
            50,
            32,
            32,
            32,
            32,
            200 if name == Family.PI05.value else 48,
            PI_CAMERAS,
        )
    if name == Family.SMOLVLA.value:
        return VLAConfig(
            Family.SMOLVLA,
            SMOLVLM2_500M_VISION,
            SMOLVLM2_500M,
            smolvla_expert(SMOLVLM2_500M, 0.75),
            16,
            SMOLVLM2_500M_VOCAB_SIZE,
            50,
            32,
            32,
            32,
            32,
            48,
            ('camera1', 'camera2', 'camera3'),
        )
    if name == MOT_14B:
        return VLAConfig(
            Family.PI0,
            siglip_so400m(224, _QWEN_7B.width),
            _QWEN_7B,
            _QWEN_7B,
            28,
            152_064,
            50,
            32,
            32,
            32,
            32,
            200,
            PI_CAMERAS,
        )
    raise ValueError(f'preset: expected one of {", ".join(PRESET_NAMES)}, got {name}')


# To plan with, no checkpoint: two experts of Qwen2.5-7B's size, as BAGEL has, and flow matching.
MOT_14B = 'mot-14b'
_QWEN_7B = LayerShape(3584, 18944, 28, 4, 128, 'silu')
PRESET_NAMES = (Family.PI05.value, Family.PI0.value, Family.SMOLVLA.value, MOT_14B)
