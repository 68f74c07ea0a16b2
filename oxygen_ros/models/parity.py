# SPDX-License-Identifier: Apache-2.0
"""Parity of a model with the implementation that its checkpoint came from.

A folder holds a checkpoint and beside it `io.safetensors`: inputs in the model's own terms and
what the original made of them. Batch rows are run one by one, without absent cameras and padding,
through the engine's paged attention. The names of the tensors are in doc/models.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import math
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
import torch
from torch import Tensor

from .checkpoint import load_checkpoint
from .errors import CheckpointError
from .flow_vla import FlowVLA
from .layers import apply_rope, Rope
from .paged_sequence import PagedSequence
from .vla_config import Family

IO_NAME = 'io.safetensors'
MAX_IMAGES = 16
TOLERANCES = {
    'actions': 3e-5,
    'velocity': 1e-4,
    'prefix_kv': 5e-5,
    'image_embed': 5e-5,
    'text_logits': 5e-5,
    'text_tokens': 0.0,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference of one quantity over all rows."""

    quantity: str
    value: float
    tolerance: float
    scale: float  # largest magnitude of the reference

    @property
    def is_within(self) -> bool:
        """Whether it is at most the tolerance; NaN is not."""
        return self.value <= self.tolerance


class Comparison:
    """Collects the largest difference of each quantity."""

    def __init__(self, tolerances: Mapping[str, float] = TOLERANCES) -> None:
        self._tolerances = tolerances
        self._found: dict[str, tuple[float, float]] = {}

    def add(self, quantity: str, ours: Tensor, reference: Tensor) -> None:
        """Compare two tensors of one shape."""
        if ours.shape != reference.shape:
            raise CheckpointError(
                f'{quantity}: expected shape {list(ours.shape)} in {IO_NAME}, '
                f'got {list(reference.shape)}'
            )
        difference = (ours.double() - reference.double()).abs().max().item()
        scale = reference.double().abs().max().item()
        worst, largest = self._found.get(quantity, (0.0, 0.0))
        # max() would lose a NaN
        worst = difference if difference > worst or math.isnan(difference) else worst
        self._found[quantity] = (worst, max(scale, largest))

    def differences(self) -> list[Difference]:
        """Return the results, in the order of the tolerances."""
        return [
            Difference(quantity, *self._at(quantity))
            for quantity in self._tolerances
            if quantity in self._found
        ]

    def _at(self, quantity: str) -> tuple[float, float, float]:
        value, scale = self._found[quantity]
        return value, self._tolerances[quantity], scale


def load_io(folder: Path) -> dict[str, Tensor]:
    """Read a folder's inputs and outputs.

    :raises CheckpointError: there is no such file, or it is cut off.
    """
    try:
        return load_file(folder / IO_NAME)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f'{folder}: expected a whole {IO_NAME}, got: {error}') from error


def check_folder(
    folder: Path,
    backend: str = 'sdpa',
    device: torch.device | str = 'cpu',
    tolerances: Mapping[str, float] = TOLERANCES,
) -> list[Difference]:
    """Load a folder's checkpoint in float32 and compare all that its reference holds.

    :raises CheckpointError: the checkpoint or the reference cannot be used.
    """
    model = load_checkpoint(folder, device=device, with_processing=False)
    io = load_io(folder)
    comparison = Comparison(tolerances)
    try:
        if model.config.family is Family.PALIGEMMA:
            _check_paligemma(model, io, backend, comparison)
        else:
            for row in range(len(io['noise'])):
                _check_row(model, io, row, backend, comparison)
    except KeyError as error:
        raise CheckpointError(
            f'{folder / IO_NAME}: expected a tensor {error}, found none'
        ) from error
    return comparison.differences()


def row_inputs(io: Mapping[str, Tensor], row: int) -> tuple[list[Tensor], Tensor]:
    """Return the images that are there [3, px, px] and the valid tokens of a row."""
    images = [
        io[f'image.{i}'][row]
        for i in range(MAX_IMAGES)
        if f'image.{i}' in io and bool(io[f'image_mask.{i}'][row])
    ]
    return images, io['tokens'][row][io['token_mask'][row]]


def row_state(io: Mapping[str, Tensor], row: int) -> Tensor | None:
    """Return the normalised, padded state of a row [1, padded_state_dim], or None."""
    return io['state'][row][None] if 'state' in io else None


def _check_row(
    model: FlowVLA, io: Mapping[str, Tensor], row: int, backend: str, comparison: Comparison
) -> None:
    images, tokens = row_inputs(io, row)
    num_text = io['check.text.tokens'].shape[1] if 'check.text.tokens' in io else 0
    room = max(model.spec.action_suffix_tokens, num_text)
    num_prefix = len(images) * model.spec.tokens_per_image + len(tokens)
    sequence = PagedSequence(model, backend, num_prefix, room)
    hidden = sequence.prefill(images, tokens)
    if 'check.image_embed.0' in io and bool(io['image_mask.0'][row]):
        embedded = model.encode_image(images[0].to(model.device)).cpu()
        if model.config.family is Family.SMOLVLA:  # its original scales them afterwards
            embedded = embedded / math.sqrt(model.spec.width)
        comparison.add('image_embed', embedded, io['check.image_embed.0'][row])
    valid = io['check.prefix_pad'][row]
    for layer, name in ((0, 'first'), (model.spec.num_layers - 1, 'last')):
        for kind, ours in zip('kv', sequence.prefix_kv(layer), strict=True):
            reference = io[f'check.prefix_{kind}.{name}'][row].transpose(0, 1)[valid]
            # The original may count the state token as the prefix's last; ours is private.
            comparison.add('prefix_kv', ours.cpu(), reference[:num_prefix])
    velocity, action = sequence.act(io['noise'][row], row_state(io, row))
    comparison.add('velocity', velocity.cpu(), io['check.velocity.first'][row])
    comparison.add('actions', action.actions.cpu(), io['actions'][row])
    if num_text:
        _check_text(
            sequence,
            hidden,
            io['check.text.tokens'][row],
            io['check.text.logits'][row],
            comparison,
        )


def _check_text(
    sequence: PagedSequence, hidden: Tensor, tokens: Tensor, logits: Tensor, comparison: Comparison
) -> None:
    """Decode greedily from the prefix's last token, own tokens from the first row on."""
    ours = [sequence.model.logits(hidden[-1:])[0]]
    ours.extend(sequence.step(token) for token in tokens[:-1].tolist())
    comparison.add('text_logits', torch.stack(ours).cpu(), logits)
    comparison.add('text_tokens', torch.stack(ours).argmax(-1).cpu(), tokens)


def _check_paligemma(
    model: FlowVLA, io: Mapping[str, Tensor], backend: str, comparison: Comparison
) -> None:
    images, tokens = list(io['pixel_values']), io['prompt_ids'][0]
    num_prefix = len(images) * model.spec.tokens_per_image + len(tokens)
    sequence = PagedSequence(model, backend, num_prefix, io['tokens'].shape[1])
    hidden = sequence.prefill(images, tokens)
    one = Rope(model.spec.head_dim, 2, model.device).rows(
        torch.ones(1, dtype=torch.int64, device=model.device)
    )
    for layer, name in ((0, 'first'), (model.spec.num_layers - 1, 'last')):
        keys, values = sequence.prefix_kv(layer)
        keys = apply_rope(keys, one)  # transformers counts PaliGemma's positions from 1
        for kind, ours in (('k', keys), ('v', values)):
            comparison.add(
                'prefix_kv', ours.cpu(), io[f'check.prefix_{kind}.{name}'][0].transpose(0, 1)
            )
    _check_text(sequence, hidden, io['tokens'][0], io['logits'][0], comparison)
