"""The types of a replay's outputs for rosbags: ROS 2's own, and ours from their definitions."""
from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from rosbags.typesys.store import Typestore

import oxygen_ros

from ..errors import OxygenError

INT64S = 'std_msgs/msg/Int64MultiArray'
STRING = 'std_msgs/msg/String'


@lru_cache(maxsize=1)
def output_types() -> Typestore:
    """Return a store that knows ROS 2's types and those of this package.

    :raises OxygenError: the definitions of this package are not installed.
    """
    store = get_typestore(Stores.ROS2_KILTED)
    for path in sorted(_definitions().glob('*.msg')):
        store.register(get_types_from_msg(
            path.read_text(encoding='utf-8'), f'oxygen_ros/msg/{path.stem}'))
    return store


def _definitions() -> Path:
    """Find the folder of the definitions: of the checkout, else of the installation."""
    for package in map(Path, oxygen_ros.__path__):
        for root in package.parents:
            for folder in (root / 'msg', root / 'share' / 'oxygen_ros' / 'msg'):
                if (folder / 'ActionChunk.msg').is_file():
                    return folder
    raise OxygenError('expected the message definitions of oxygen_ros in share/oxygen_ros/msg of '
                      f'its installation, found none near {list(oxygen_ros.__path__)}')
