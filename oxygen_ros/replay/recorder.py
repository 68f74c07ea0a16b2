# SPDX-License-Identifier: Apache-2.0
"""Outputs written as an MCAP bag that holds the definitions of its types."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from rosbags.rosbag2 import StoragePlugin, Writer, WriterError

from ..errors import OxygenError
from .golden import START_TOPIC
from .output_types import output_types
from .outputs import Output

_TIME = 'builtin_interfaces/msg/Time'


class OutputRecorder:
    """Writes a bag; use it in a `with` statement, which ends the bag.

    :param path: a folder that does not exist yet.
    :raises OxygenError: the folder is there already, or cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
        self._connections: dict[str, Any] = {}
        try:
            self._writer.open()
        except (WriterError, OSError) as error:
            raise OxygenError(
                f'{path}: expected a new folder to record into, got: {error}'
            ) from None

    def begin(self, start_ns: int) -> None:
        """Note when the replay begins (ROS time of the recording)."""
        message = output_types().types[_TIME](*divmod(start_ns, 1_000_000_000))
        self.write_message(start_ns, START_TOPIC, message)

    def write(self, output: Output) -> None:
        """Write one output at its time in the recording."""
        self.write_message(output.stamp_ns, output.topic, output.message)

    def write_message(self, stamp_ns: int, topic: str, message: Any) -> None:
        """Write a rosbags message."""
        msgtype = message.__msgtype__
        data = output_types().serialize_cdr(message, msgtype)
        self.write_bytes(stamp_ns, topic, msgtype, data)

    def write_bytes(
        self, stamp_ns: int, topic: str, msgtype: str, data: bytes | memoryview
    ) -> None:
        """Write a message that is serialised already."""
        connection = self._connections.get(topic)
        if connection is None:
            connection = self._connections[topic] = self._writer.add_connection(
                topic, msgtype, typestore=output_types()
            )
        self._writer.write(connection, stamp_ns, data)

    def __enter__(self) -> OutputRecorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.close()
