# SPDX-License-Identifier: Apache-2.0
"""Finds the storage files of a recording, a folder or a file, and opens them by content."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
import re

import yaml
import zstandard

from .mcap_storage import MAGIC as MCAP_MAGIC
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
    try:
        container = _read_metadata(path / 'metadata.yaml')
    except FileNotFoundError:
        container = Container([], notes=['no metadata.yaml'])
    except (OSError, yaml.YAMLError, ValueError, KeyError, TypeError) as error:
        reason = ' '.join(str(error).split()) or type(error).__name__
        container = Container([], notes=[f'metadata.yaml cannot be read: {reason}'])
    missing = [file.name for file in container.files if not file.exists()]
    if missing:
        container.damage.append(f'missing: {", ".join(missing)}')
    present = (file for file in path.iterdir() if file.name.endswith(SUFFIXES))
    listed = [file for file in container.files if file.exists()]
    container.files = listed or sorted(present, key=_by_number)
    if not container.files:
        expected = f'a rosbag2 recording ({", ".join(SUFFIXES[:2])})'
        raise BagError(path, expected, 'a folder without storage files')
    return container


def open_storage(path: Path, scratch: Path) -> tuple[Storage, str]:
    """Open one storage file by its content.

    :param scratch: an existing folder for copies, decompressed or to be repaired.
    :return: the storage and what is wrong with the compressed file, if anything.
    :raises BagError: it holds nothing that can be read.
    """
    try:
        file, damage = path, ''
        if _head(path).startswith(ZSTD_MAGIC):
            file, damage = _decompress(path, scratch)
        head = _head(file)
        if head.startswith(MCAP_MAGIC):
            return McapStorage(file), damage
        if head.startswith(SQLITE_MAGIC):
            return SqliteStorage(file, scratch), damage
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
    with path.open('rb') as source, target.open('wb') as sink:
        reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
        try:
            while block := reader.read(1 << 20):
                sink.write(block)
        except zstandard.ZstdError as error:
            return target, f'{path.name}: {error}'
    return target, ''


def _read_metadata(path: Path) -> Container:
    """Read metadata.yaml; what the YAML and its fields raise is the caller's to catch."""
    information = yaml.safe_load(path.read_text(encoding='utf-8'))['rosbag2_bagfile_information']
    topics = [entry['topic_metadata'] for entry in information['topics_with_message_count']]
    return Container(
        [path.with_name(Path(str(name)).name) for name in information['relative_file_paths']],
        int(information['message_count']),
        {topic['name']: topic['serialization_format'] for topic in topics},
    )


def _by_number(path: Path) -> tuple[tuple[int, str], ...]:
    """Sort key under which bag_10 comes after bag_9."""
    return tuple(
        (int(part), '') if part.isdigit() else (0, part) for part in re.split(r'(\d+)', path.name)
    )
