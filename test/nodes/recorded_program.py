# SPDX-License-Identifier: Apache-2.0
"""One of our programs, with time to end, which notes in a file what it gives to the middleware.

The last messages of a process that ends may get lost on their way, and how soon it ends depends on
the machine; what it has written does neither. As a program: its module and the file, then the
arguments of the module. Each line of the file is a topic and a message in hexadecimal, or `result`
and the status and the message of a goal's result.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
import sys
from typing import Any

from rclpy.action.server import ActionServer
from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message, serialize_message

from oxygen_ros.action import Dialogue
from oxygen_ros.nodes import managed_node, process
from oxygen_ros.robot import records

PATIENCE_S = 60.0
RESULT = 'result'
REQUEST = 'request of a result'


def command(module: str, path: Path) -> tuple[str, ...]:
    """Return what Python is to run."""
    return (str(Path(__file__)), module, str(path))


class Record:
    """What such a program has written so far."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _lines(self) -> list[list[str]]:
        if not self._path.exists():
            return []
        text = self._path.read_text()
        return [line.split('\t') for line in text.splitlines(keepends=True) if line[-1] == '\n']

    def of(self, kind: type, topic: str) -> list[Any]:
        """Return the messages of a topic in their order."""
        return [
            deserialize_message(bytes.fromhex(words[1]), kind)
            for words in self._lines()
            if words[0] == topic
        ]

    def has_request(self) -> bool:
        """Return whether the program knows who waits for the result of a goal."""
        return any(words[0].strip() == REQUEST for words in self._lines())

    def results(self) -> list[tuple[int, Any]]:
        """Return status and result of each goal whose client was answered."""
        return [
            (int(words[1]), deserialize_message(bytes.fromhex(words[2]), Dialogue.Result))
            for words in self._lines()
            if words[0] == RESULT
        ]


def _note(file: int, *words: str) -> None:
    os.write(file, ('\t'.join(words) + '\n').encode())  # at once: the process may be ended


def _watch(file: int) -> None:
    """Have everything noted after it was handed over."""
    publish, answer = Publisher.publish, ActionServer._send_result_response
    hear = ActionServer._execute_get_result_request

    def noted_publish(self: Any, message: Any) -> None:
        publish(self, message)
        data = message if isinstance(message, bytes) else serialize_message(message)
        _note(file, self.topic_name, data.hex())

    def noted_answer(self: Any, header: Any, future: Any) -> None:
        answer(self, header, future)
        response = future.result()
        _note(file, RESULT, str(response.status), serialize_message(response.result).hex())

    async def noted_request(self: Any, request: Any) -> None:
        await hear(self, request)
        _note(file, REQUEST)

    Publisher.publish = noted_publish  # type: ignore[method-assign]
    ActionServer._send_result_response = noted_answer  # type: ignore[method-assign]
    ActionServer._execute_get_result_request = noted_request  # type: ignore[method-assign]


def main() -> int:
    """Run the program; return its exit status."""
    _, module, path, *arguments = sys.argv
    sys.argv = [module, *arguments]
    _watch(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    # A busy machine ends it late, and that is no fault of the program.
    managed_node._SHUTDOWN_TIMEOUT_S = PATIENCE_S
    records._STOP_TIMEOUT_S = PATIENCE_S
    process.END_TIMEOUT_S = PATIENCE_S
    process._NUM_WAKES = round(PATIENCE_S / process._WAKE_S)
    return importlib.import_module(module).main()


if __name__ == '__main__':
    sys.exit(main())
