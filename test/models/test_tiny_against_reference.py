# SPDX-License-Identifier: Apache-2.0
"""The fused model with cached K/V against the plain recompute in float64."""

from __future__ import annotations

from collections.abc import Sequence

from dense_attend import DenseSequence, noise
import numpy as np
import pytest
from reference_tiny import ReferenceTiny
import torch
from torch import Tensor

from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig

TOLERANCE = 1e-5
INSTRUCTION = 'put the red block into the bowl'
STATE = np.linspace(-1.5, 1.5, 7, dtype=np.float32)


def assert_close(got: Tensor, expected: Tensor) -> None:
    """Compare within the tolerance, in absolute terms; values are of the order of one."""
    torch.testing.assert_close(got, expected, rtol=0.0, atol=TOLERANCE)


def prefix_of(model: TinyModel, images: Sequence[Tensor]) -> DenseSequence:
    """Prefill what the scope puts into the prefix."""
    return DenseSequence(model).add_prefix(images, model.prefix_prompt(INSTRUCTION, STATE))


def instruction_tokens(model: TinyModel) -> list[int]:
    """Return the instruction's tokens, wherever they go."""
    return [*model.prefix_prompt(INSTRUCTION, STATE), *model.action_prompt(INSTRUCTION)]


def test_vision_equals_the_unfused_tower(model: TinyModel, images: list[Tensor]) -> None:
    expected = ReferenceTiny(model.config).encode_image(images[0])
    assert_close(model.encode_image(images[0]), expected.to(torch.float32))


def test_cached_decoding_equals_full_recompute(any_model: TinyModel, images: list[Tensor]) -> None:
    prompt = any_model.text_prompt('what do you see?')
    tokens, logits = prefix_of(any_model, images).decode(prompt, 24)
    expected = ReferenceTiny(any_model.config).text_logits(
        images, prompt, tokens, any_model.prefix_prompt(INSTRUCTION, STATE)
    )
    assert_close(logits, expected)


@pytest.mark.parametrize('state', [STATE, None], ids=['state', 'no state'])
def test_action_pass_equals_full_recompute(
    any_model: TinyModel, images: list[Tensor], state: np.ndarray | None
) -> None:
    sequence = prefix_of(any_model, images)
    if prompt := any_model.action_prompt(INSTRUCTION):
        sequence.add_tokens(prompt)
    action, chunk = sequence.act(noise(any_model), state)
    reference = ReferenceTiny(any_model.config)
    joints = None if state is None else state.tolist()
    expected = reference.actions(images, instruction_tokens(any_model), joints, noise(any_model))
    assert_close(action.actions, expected)
    assert_close(torch.from_numpy(chunk), reference.chunk(expected, joints))


def test_one_camera_and_another_number_of_joints_and_steps(images: list[Tensor]) -> None:
    config = TinyConfig(num_cameras=1, action_dim=14, num_denoising_steps=3)
    model = TinyModel(config)
    action, _ = DenseSequence(model).add_prefix(images[:1]).act(noise(model), None)
    assert_close(action.actions, ReferenceTiny(config).actions(images[:1], (), None, noise(model)))


def test_a_wrong_suffix_position_would_be_seen(model: TinyModel, images: list[Tensor]) -> None:
    sequence = prefix_of(model, images)
    right, _ = sequence.act(noise(model), STATE)
    sequence.num_tokens += 1
    wrong, _ = sequence.act(noise(model), STATE)
    assert (right.actions - wrong.actions).abs().max() > 100 * TOLERANCE
