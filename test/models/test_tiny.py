# SPDX-License-Identifier: Apache-2.0
"""What the tiny model does with images, state, instruction, seeds and bad input."""

from __future__ import annotations

from dense_attend import camera_frame, DenseSequence, noise
import numpy as np
import pytest
import torch
from torch import Tensor

from oxygen_ros.engine.spec import StateIn
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig

STATE = np.linspace(-1.5, 1.5, 7, dtype=np.float32)


def test_one_changed_patch_moves_actions_and_text(model: TinyModel, images: list[Tensor]) -> None:
    changed = [image.clone() for image in images]
    changed[1][:, 28:42, 56:70] *= -1.0
    before, after = (DenseSequence(model).add_prefix(these) for these in (images, changed))
    prompt = model.text_prompt('what is on the table?')
    logits = [sequence.fork().add_tokens(prompt)[-1] for sequence in (before, after)]
    actions = [sequence.act(noise(model), STATE)[0].actions for sequence in (before, after)]
    assert (logits[0] - logits[1]).abs().max() > 0.05
    assert (actions[0] - actions[1]).abs().max() > 0.01


def test_every_image_patch_reaches_its_token_alone_at_the_input(model: TinyModel) -> None:
    base = model.encode_image(torch.zeros(3, 112, 112))
    assert base.shape == (model.spec.tokens_per_image, model.spec.width)
    marked = torch.zeros(3, 112, 112)
    marked[:, 14:28, 28:42] = 1.0
    moved = (model.encode_image(marked) - base).abs().mean(1)
    assert int(moved.argmax()) == 1 * 8 + 2


def test_state_and_instruction_move_actions(model: TinyModel, images: list[Tensor]) -> None:
    prefix = DenseSequence(model).add_prefix(images)
    chunks = []
    for instruction, state in (('pick', STATE), ('push', STATE), ('pick', STATE + 0.3)):
        sequence = prefix.fork()
        sequence.add_tokens(model.action_prompt(instruction))
        chunks.append(sequence.act(noise(model), state)[0].actions)
    assert (chunks[0] - chunks[1]).abs().max() > 1e-3
    assert (chunks[0] - chunks[2]).abs().max() > 1e-4


def test_targets_stay_near_the_measured_joints_and_are_smooth(
    model: TinyModel, images: list[Tensor]
) -> None:
    _, chunk = DenseSequence(model).add_prefix(images).act(noise(model), STATE)
    assert chunk.dtype == np.float32 and chunk.shape == (16, 7)
    assert np.abs(chunk - STATE).max() <= model.config.action_scale
    assert np.abs(np.diff(chunk, axis=0)).mean() < 0.02
    _, without = DenseSequence(model).add_prefix(images).act(noise(model), None)
    assert np.abs(without).max() <= model.config.action_scale


@pytest.mark.parametrize('question', ['what do you see?', 'Where is the cup?'])
def test_text_does_not_stick_to_one_token_and_is_printable(
    model: TinyModel, images: list[Tensor], question: str
) -> None:
    tokens, _ = DenseSequence(model).add_prefix(images).decode(model.text_prompt(question), 64)
    assert len(set(tokens)) >= 8
    assert model.detokenize(tokens).decode('ascii').isprintable()


def test_passes_and_layers_leave_their_inputs_alone(
    model: TinyModel, images: list[Tensor]
) -> None:
    sequence = DenseSequence(model).add_prefix(images)
    given, state = noise(model), STATE.copy()
    sequence.act(given, state)
    assert torch.equal(given, noise(model)) and np.array_equal(state, STATE)
    hidden = torch.ones(2, model.spec.width)
    model.run_layer(0, hidden, torch.tensor([5, 6]), sequence.transient)
    assert torch.equal(hidden, torch.ones(2, model.spec.width))


def test_interleaved_passes_equal_passes_alone(model: TinyModel, images: list[Tensor]) -> None:
    sequence = DenseSequence(model).add_prefix(images)
    alone = [sequence.act(noise(model, seed), STATE + seed)[1] for seed in (1, 2)]
    passes = [
        model.begin_action(noise(model, seed), STATE + seed, sequence.num_tokens)
        for seed in (1, 2)
    ]
    for step in range(passes[0].num_steps):
        for action in passes:
            model.denoise_step(action, step, sequence.transient)
    for action, expected in zip(passes, alone, strict=True):
        assert np.array_equal(model.finish_action(action), expected)


def test_the_seed_fixes_the_weights(model: TinyModel, images: list[Tensor]) -> None:
    same, other = TinyModel(TinyConfig()), TinyModel(TinyConfig(seed=1))
    assert same.checksum == model.checksum != other.checksum
    assert len(model.checksum) == 64
    results = [
        DenseSequence(m).add_prefix(images).act(noise(m), STATE)[1] for m in (model, same, other)
    ]
    assert np.array_equal(results[0], results[1])
    assert not np.allclose(results[0], results[2])


def test_spec_says_where_prompt_and_state_go(any_model: TinyModel) -> None:
    spec = any_model.spec
    assert spec.state_in is StateIn.SUFFIX and not spec.action_causal
    assert spec.action_suffix_tokens == 17 and spec.tokens_per_image == 64
    private, shared = any_model.action_prompt('go'), any_model.prefix_prompt('go', STATE)
    assert bool(private) != bool(shared)
    assert len(any_model.action_prompt('x' * 99)) == spec.max_action_prompt_tokens
    assert len(any_model.prefix_prompt('x' * 99, None)) == spec.max_prefix_prompt_tokens


def test_an_empty_instruction_still_has_a_first_token(model: TinyModel) -> None:
    assert len(model.action_prompt('')) == 1
    assert len(model.text_prompt('')) == 2


def test_bfloat16_stays_near_float32(images: list[Tensor]) -> None:
    model = TinyModel(TinyConfig(), dtype=torch.bfloat16)
    image = model.preprocess(camera_frame(0))
    assert image.dtype == torch.bfloat16
    sequence = DenseSequence(model).add_prefix([image])
    exact = DenseSequence(TinyModel(TinyConfig())).add_prefix(images[:1])
    assert (
        np.abs(sequence.act(noise(model), STATE)[1] - exact.act(noise(model), STATE)[1]).max()
        < 0.02
    )
    logits = sequence.add_tokens(model.text_prompt('hi'))
    assert logits.dtype == torch.float32
    assert (logits - exact.add_tokens(model.text_prompt('hi'))).abs().mean() < 0.2


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device')
def test_cuda_equals_cpu(model: TinyModel) -> None:
    device = TinyModel(TinyConfig(), device='cuda')
    assert device.checksum == model.checksum
    frame = camera_frame(0)
    on_cpu = model.encode_image(model.preprocess(frame))
    on_device = device.encode_image(device.preprocess(frame))
    torch.testing.assert_close(on_device.cpu(), on_cpu, rtol=0.0, atol=1e-3)


def test_wrong_shapes_are_refused_by_name(model: TinyModel) -> None:
    with pytest.raises(ValueError, match=r'noise: expected shape \[16, 7\], got \[16, 6\]'):
        model.begin_action(torch.zeros(16, 6), None, 0)
    with pytest.raises(ValueError, match=r'state: expected shape \[7\], got \[6\]'):
        model.begin_action(torch.zeros(16, 7), np.zeros(6, np.float32), 0)
