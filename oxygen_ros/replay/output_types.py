# SPDX-License-Identifier: Apache-2.0
"""The types of a replay's outputs for rosbags: ROS 2's own, and ours from their definitions."""

from __future__ import annotations

from array import array
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from rosbags.typesys.store import Typestore

import oxygen_ros

from ..errors import OxygenError

INT64S = 'std_msgs/msg/Int64MultiArray'
STRING = 'std_msgs/msg/String'
_HEADER_BYTES = 4  # of a serialised message: how the rest is encoded


@lru_cache(maxsize=1)
def output_types() -> Typestore:
    """Return a store that knows ROS 2's types and those of this package.

    :raises OxygenError: the definitions of this package are not installed.
    """
    store = get_typestore(Stores.ROS2_KILTED)
    for path in sorted(_definitions().glob('*.msg')):
        store.register(
            get_types_from_msg(path.read_text(encoding='utf-8'), f'oxygen_ros/msg/{path.stem}')
        )
    return store


def make_message(msgtype: str, **fields: Any) -> Any:
    """Return a rosbags message; see `robot.messages`. Arrays become numpy's."""
    values = {
        name: np.frombuffer(value, value.typecode) if isinstance(value, array) else value
        for name, value in fields.items()
    }
    return output_types().types[msgtype](**values)


def exact_bytes(data: bytes, msgtype: str) -> bytes:
    """Return a serialised message without what a middleware left in its gaps and behind its end.

    Its buffers may be longer than the message (an empty list at the end has room for its first
    item), at which strict readers stop.
    """
    types = output_types()
    definition = types.get_msgdef(msgtype)
    little_endian = data[1] & 1
    read = definition.deserialize_cdr_le if little_endian else definition.deserialize_cdr_be
    message, _ = read(memoryview(data)[_HEADER_BYTES:], 0, definition.cls, types)
    return bytes(types.serialize_cdr(message, msgtype))


def _definitions() -> Path:
    """Find the folder of the definitions: of the checkout, else of the installation."""
    for package in map(Path, oxygen_ros.__path__):
        for root in package.parents:
            for folder in (root / 'msg', root / 'share' / 'oxygen_ros' / 'msg'):
                if (folder / 'ActionChunk.msg').is_file():
                    return folder
    raise OxygenError(
        'expected the message definitions of oxygen_ros in share/oxygen_ros/msg of '
        f'its installation, found none near {list(oxygen_ros.__path__)}'
    )
