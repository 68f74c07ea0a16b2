# SPDX-License-Identifier: Apache-2.0
"""Finds the storage files of a recording, a folder or a file, and opens them by content."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
import re
from typing import Any

import yaml
import zstandard

from .mcap_records import MAGIC as MCAP_MAGIC
from .mcap_storage import McapStorage
from .sqlite_storage import MAGIC as SQLITE_MAGIC
from .sqlite_storage import SqliteStorage
from .storage import BagError, Storage

SUFFIXES = ('.mcap', '.db3', '.mcap.zstd', '.db3.zstd', '.mcap.zst', '.db3.zst')
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'


@dataclass(slots=True)
class Container:
    """What was found before any file is opened."""

    files: list[Path]
    num_expected: int | None = None  # messages, by the metadata
    serialization: dict[str, str] = field(default_factory=dict)  # by topic, by the metadata
    notes: list[str] = field(default_factory=list)  # odd, but nothing is lost by it
    damage: list[str] = field(default_factory=list)  # what is missing or cannot be read


def find_files(path: Path) -> Container:
    """Find the storage files of a bag, in order.

    The metadata is a help, not a need: it gives the order of the files and the number of messages.

    :raises BagError: there is no storage file.
    """
    if not path.exists():
        raise BagError(path, 'a rosbag2 recording', 'nothing: no such file or folder')
    if path.is_file():
        return Container([path])
    present = sorted(
        (file for file in path.iterdir() if file.name.endswith(SUFFIXES)), key=_by_number
    )
    try:
        information = _read_metadata(path / 'metadata.yaml')
        listed = [path / Path(str(name)).name for name in information['relative_file_paths']]
        topics = [entry['topic_metadata'] for entry in information['topics_with_message_count']]
        container = Container(
            listed,
            int(information['message_count']),
            {topic['name']: topic['serialization_format'] for topic in topics},
        )
    except FileNotFoundError:
        container = Container([], notes=['no metadata.yaml'])
    except (OSError, yaml.YAMLError, ValueError, KeyError, TypeError) as error:
        container = Container([], notes=[f'metadata.yaml cannot be read: {_one_line(error)}'])
    missing = [file.name for file in container.files if not file.exists()]
    if missing:
        container.damage.append(f'missing: {", ".join(missing)}')
    container.files = [file for file in container.files if file.exists()] or present
    if not container.files:
        raise BagError(
            path,
            f'a rosbag2 recording ({", ".join(SUFFIXES[:2])})',
            'a folder without storage files',
        )
    return container


def open_storage(path: Path, scratch: Path) -> tuple[Storage, str]:
    """Open one storage file by its content.

    :param scratch: an existing folder for decompressed copies.
    :return: the storage and what is wrong with the compressed file, if anything.
    :raises BagError: it holds nothing that can be read.
    """
    try:
        damage = ''
        head = _head(path)
        if head.startswith(ZSTD_MAGIC):
            path, damage = _decompress(path, scratch)
            head = _head(path)
        if head.startswith(MCAP_MAGIC):
            return McapStorage(path), damage
        if head.startswith(SQLITE_MAGIC):
            return SqliteStorage(path), damage
    except OSError as error:
        raise BagError(path, 'a readable file', error.strerror or error) from None
    if head.startswith(b'#ROSBAG'):
        raise BagError(path, 'a rosbag2 recording', 'a ROS 1 bag (convert it: rosbags-convert)')
    what = f'one that begins with {head[:8].hex(" ")}' if head else 'an empty file'
    raise BagError(path, 'an MCAP or SQLite file', what)


def _head(path: Path) -> bytes:
    with path.open('rb') as file:
        return file.read(16)


def _decompress(path: Path, scratch: Path) -> tuple[Path, str]:
    target = scratch / path.stem
    damage = ''
    with path.open('rb') as source, target.open('wb') as sink:
        reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
        try:
            while block := reader.read(1 << 20):
                sink.write(block)
        except zstandard.ZstdError as error:
            damage = f'{path.name}: {error}'
    return target, damage


def _read_metadata(path: Path) -> dict[str, Any]:
    information = yaml.safe_load(path.read_text(encoding='utf-8'))['rosbag2_bagfile_information']
    if not isinstance(information, dict):
        raise ValueError('rosbag2_bagfile_information is not a mapping')
    return information


def _by_number(path: Path) -> tuple[tuple[int, str], ...]:
    """Sort key under which bag_10 comes after bag_9."""
    return tuple(
        (int(part), '') if part.isdigit() else (0, part) for part in re.split(r'(\d+)', path.name)
    )


def _one_line(error: BaseException) -> str:
    return ' '.join(str(error).split()) or type(error).__name__
