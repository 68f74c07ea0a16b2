"""Named weight tensors: strict reading, and the checksum that provenance carries."""
from __future__ import annotations

from collections.abc import Mapping
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

    def __init__(self, tensors: Mapping[str, Tensor], device: torch.device,
                 dtype: torch.dtype) -> None:
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
        full_name = self._prefix + name
        self._ledger.taken.add(full_name)
        tensor = self._tensors.get(full_name)
        if tensor is None:
            self._ledger.misfits.append(f'missing {full_name} {list(shape)}')
        elif tuple(tensor.shape) != shape:
            self._ledger.misfits.append(
                f'{full_name}: expected shape {list(shape)}, got {list(tensor.shape)}')
        else:
            return tensor.to(self.device, self.dtype if dtype is None else dtype)
        return torch.zeros(shape, device=self.device, dtype=dtype or self.dtype)

    def finish(self) -> None:
        """Check that every tensor fitted and none was left over.

        :raises ValueError: lists every missing, mis-shaped and unexpected tensor.
        """
        unexpected = sorted(set(self._tensors) - self._ledger.taken)
        misfits = self._ledger.misfits + [f'unexpected {name}' for name in unexpected]
        if misfits:
            raise ValueError(f'weights do not fit the model, {len(misfits)} misfits: '
                             + '; '.join(misfits))


def weights_checksum(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over name, dtype, shape and bytes of all tensors in key order, as hex."""
    digest = sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f'{name} {tensor.dtype} {list(tensor.shape)}\n'.encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
