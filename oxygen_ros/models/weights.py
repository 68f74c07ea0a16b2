# SPDX-License-Identifier: Apache-2.0
"""Named weight tensors: strict reading, and the checksum that provenance carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import torch
from torch import Tensor


@dataclass(slots=True)
class _Ledger:
    taken: set[str] = field(default_factory=set)
    misfits: list[str] = field(default_factory=list)


class WeightReader:
    """Hand out each tensor of a checkpoint once, its shape checked.

    A misfit is noted and replaced by zeros, so that `finish` can list all of them in one error.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], device: torch.device, dtype: torch.dtype
    ) -> None:
        self.device = device
        self.dtype = dtype
        self._tensors = tensors
        self._prefix = ''
        self._ledger = _Ledger()

    def scope(self, prefix: str) -> WeightReader:
        """Return a reader of the names below `prefix`, with the same bookkeeping."""
        inner = WeightReader(self._tensors, self.device, self.dtype)
        inner._prefix = self._prefix + prefix
        inner._ledger = self._ledger
        return inner

    def take(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return the tensor `name` of this scope on the device, in `dtype` or the model's."""
        # A copy even where type and device fit: a model must not live in a file that may change.
        out = torch.empty(shape, device=self.device, dtype=dtype or self.dtype)
        self._copy(name, out)
        return out

    def fuse(self, names: Sequence[str], heights: Sequence[int], width: int) -> Tensor:
        """Return matrices [height, width] under one another, each copied straight to its rows."""
        out = torch.empty(sum(heights), width, device=self.device, dtype=self.dtype)
        for name, rows in zip(names, out.split_with_sizes(list(heights)), strict=True):
            self._copy(name, rows)
        return out

    def has(self, name: str) -> bool:
        """Return whether the checkpoint holds `name` of this scope."""
        return self._prefix + name in self._tensors

    def is_equal(self, name: str, other: WeightReader, other_name: str) -> bool:
        """Return whether two tensors that are there hold the same numbers."""
        return torch.equal(
            self._tensors[self._prefix + name], self._tensors[other._prefix + other_name]
        )

    def skip(self, name: str) -> None:
        """Count a tensor as known that the model does not need."""
        self._ledger.taken.add(self._prefix + name)

    def _copy(self, name: str, out: Tensor) -> None:
        """Copy one tensor to its place, or note why it does not fit and write zeros."""
        full_name = self._prefix + name
        self._ledger.taken.add(full_name)
        tensor = self._tensors.get(full_name)
        misfit = _misfit(tensor, out)
        if misfit is None:
            assert tensor is not None
            out.copy_(tensor)
        else:
            self._ledger.misfits.append(
                f'{full_name}: {misfit}'
                if tensor is not None
                else f'missing {full_name} {list(out.shape)}'
            )
            out.zero_()

    def finish(self) -> None:
        """Check that every tensor fitted and none was left over.

        :raises ValueError: lists every missing, mis-shaped and unexpected tensor.
        """
        unexpected = sorted(set(self._tensors) - self._ledger.taken)
        misfits = self._ledger.misfits + [f'unexpected {name}' for name in unexpected]
        if misfits:
            raise ValueError(
                f'weights do not fit the model, {len(misfits)} misfits: ' + '; '.join(misfits)
            )


def _misfit(tensor: Tensor | None, out: Tensor) -> str | None:
    """Return what is wrong with a tensor for its place."""
    if tensor is None:
        return 'missing'
    if tensor.shape != out.shape:
        return f'expected shape {list(out.shape)}, got {list(tensor.shape)}'
    if not tensor.is_floating_point():
        return f'expected floating-point numbers, got {tensor.dtype}'
    if tensor.device.type != 'meta' and tensor.numel():
        low, high = tensor.aminmax()  # NaN passes through; no mask as large as the tensor
        if not (low.isfinite() and high.isfinite()):
            return 'expected finite numbers, got NaN or infinity'
    return None


def weights_checksum(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over name, dtype, shape and bytes of all tensors in key order, as hex."""
    digest = sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f'{name} {tensor.dtype} {list(tensor.shape)}\n'.encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
