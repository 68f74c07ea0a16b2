# SPDX-License-Identifier: Apache-2.0
"""Mistakes on purpose: each must move the actions, or a comparison would prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from oxygen_ros.models.checkpoint import CLASSES, read_folder
from oxygen_ros.models.flow_vla import FlowVLA
from oxygen_ros.models.paged_sequence import PagedSequence
from oxygen_ros.models.parity import load_io, MAX_IMAGES, row_inputs, row_state


def build(folder: Path, **changes: object) -> FlowVLA:
    """Load a folder's model with some of its config changed."""
    _, weights, config = read_folder(folder)
    config = replace(config, **changes)  # type: ignore[arg-type]
    return CLASSES[config.family](config, weights, '', torch.device('cpu'), torch.float32, 0.02)


def _run(
    model: FlowVLA,
    io: Mapping[str, Tensor],
    row: int,
    masked: bool = True,
    zeroed: bool = False,
    shift: int = 0,
) -> Tensor:
    if masked:
        images, tokens = row_inputs(io, row)
    else:
        images = [io[f'image.{i}'][row] for i in range(MAX_IMAGES) if f'image.{i}' in io]
        tokens = io['tokens'][row]
    num_tokens = len(images) * model.spec.tokens_per_image + len(tokens)
    sequence = PagedSequence(model, 'sdpa', num_tokens, model.spec.action_suffix_tokens)
    sequence.prefill(images, tokens)
    if zeroed:
        for layer in range(model.spec.num_layers):
            for part in sequence.prefix_kv(layer):
                part.zero_()
    return sequence.act(io['noise'][row], row_state(io, row), shift)[1].actions


def _unscaled(folder: Path) -> FlowVLA:
    model = build(folder)
    model._language._scale = 1.0
    return model


CONTROLS: dict[str, Callable[[Path, Mapping[str, Tensor], int], Tensor]] = {
    'prefix zeroed': lambda folder, io, row: _run(build(folder), io, row, zeroed=True),
    'pad mask ignored': lambda folder, io, row: _run(build(folder), io, row, masked=False),
    'embedding unscaled': lambda folder, io, row: _run(_unscaled(folder), io, row),
    'suffix shifted by one': lambda folder, io, row: _run(build(folder), io, row, shift=1),
    'theta changed': lambda folder, io, row: _run(build(folder, rope_base=1e5), io, row),
}


def largest_effect(folder: Path, control: str) -> float:
    """Return how far a mistake moves the actions, over all rows."""
    io = load_io(folder)
    moved = [
        (CONTROLS[control](folder, io, row) - io['actions'][row]).abs().max().item()
        for row in range(len(io['noise']))
    ]
    return max(moved)
