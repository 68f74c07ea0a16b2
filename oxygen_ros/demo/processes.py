# SPDX-License-Identifier: Apache-2.0
"""Child processes of the demo: started together, watched, and ended cleanly."""

from __future__ import annotations

from collections.abc import Sequence
import os
import signal
import subprocess
import sys
import time

from ..errors import OxygenError

_GRACE_S = 5.0


class Children:
    """Processes that end when the `with` block does, whatever happened in it.

    Each runs in a session of its own, so that Ctrl-C in the terminal reaches the demo alone, which
    then ends them in order: the node first (it publishes a hold), then its sources.
    """

    def __init__(self) -> None:
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(
        self, name: str, module: str, arguments: Sequence[str], cpu: int | None = None
    ) -> None:
        """Start `python -m module arguments`.

        :param cpu: the one core it may use; None: all.
        """
        process = subprocess.Popen(
            [sys.executable, '-m', module, *arguments], start_new_session=True
        )
        if cpu is not None:
            os.sched_setaffinity(process.pid, {cpu})
        self._processes.append((name, process))

    def check(self) -> None:
        """Raise if one has ended; its own line on stderr says why."""
        for name, process in self._processes:
            status = process.poll()
            if status is not None:
                raise OxygenError(
                    f'{name}: expected to run until the end, ended with status {status}'
                )

    def status(self, name: str) -> int | None:
        """Return the exit status of the one started under a name; None: it runs."""
        return dict(self._processes)[name].poll()

    def stop(self) -> None:
        """End all, the last started first."""
        for _, process in reversed(self._processes):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            _wait(process)
        self._processes.clear()


def _wait(process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + _GRACE_S
    while process.poll() is None and time.monotonic() < deadline_s:
        time.sleep(0.02)
    if process.poll() is None:
        process.kill()
    process.wait()
