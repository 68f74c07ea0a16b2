# SPDX-License-Identifier: Apache-2.0
"""The tensors of a checkpoint folder, memory-mapped: read only as far as they are taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import json
from pathlib import Path
from typing import Any

from safetensors import safe_open, SafetensorError
from torch import Tensor

from .errors import CheckpointError
from .key_names import canonical_names

INDEX_NAME = 'model.safetensors.index.json'
WEIGHTS_NAME = 'model.safetensors'


class WeightFile(Mapping[str, Tensor]):
    """Tensors under our names.

    A tensor that is looked up lies in the mapped file: it costs no memory of its own, and is to be
    copied before the file may change.

    :param folder: holds model.safetensors, or its shards and their index.
    :raises CheckpointError: there is none, or a file is cut off or not of this format.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = [_open(path) for path in _paths(folder)]
        holder = {name: file for file in files for name in file.keys()}  # noqa: SIM118 (no mapping)
        if not holder:
            raise CheckpointError(f'{folder}: expected weights, found no tensor')
        self._names = canonical_names(sorted(holder))
        self._holder = {ours: holder[name] for ours, name in self._names.items()}

    def __getitem__(self, name: str) -> Tensor:
        tensor: Tensor = self._holder[name].get_tensor(self._names[name])
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape from the file's header alone."""
        return tuple(self._holder[name].get_slice(self._names[name]).get_shape())

    def dtype(self, name: str) -> str:
        """Return a tensor's type from the file's header alone, as safetensors spells it."""
        return str(self._holder[name].get_slice(self._names[name]).get_dtype())


def _paths(folder: Path) -> list[Path]:
    """Return the files that hold the tensors."""
    if not folder.is_dir():
        raise CheckpointError(f'checkpoint: expected a folder, got {folder}')
    index = folder / INDEX_NAME
    if not index.is_file():
        path = folder / WEIGHTS_NAME
        if not path.is_file():
            raise CheckpointError(f'{folder}: expected {WEIGHTS_NAME} or {INDEX_NAME}, found none')
        return [path]
    try:
        names = sorted(set(json.loads(index.read_text())['weight_map'].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise CheckpointError(
            f'{index}: expected a JSON object with weight_map, got: {error!r}'
        ) from error
    missing = [
        name
        for name in names
        if not isinstance(name, str) or Path(name).name != name or not (folder / name).is_file()
    ]
    if missing:
        raise CheckpointError(
            f'{index}: expected these files beside it, found none: ' + ', '.join(map(str, missing))
        )
    return [folder / name for name in names]


def _open(path: Path) -> Any:  # safetensors is untyped
    try:
        return safe_open(str(path), framework='pt', device='cpu')
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f'{path}: expected a whole safetensors file, got: {error}; copy or download it again'
        ) from error
