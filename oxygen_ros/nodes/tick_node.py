# SPDX-License-Identifier: Apache-2.0
"""The tick as a process of its own: it plays the engine's chunks, and holds when they end.

It loads neither a model nor torch, and no fault of the engine's process reaches it: a crash, a
long pass, or a library that keeps the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
import sys
from typing import Any

from ..robot.tick_settings import make_tick_settings, TICK_SETTINGS, TickSettings
from .managed_node import ManagedNode
from .process import run_node
from .tick_plane import TickPlane


class TickNode(ManagedNode[TickSettings, TickPlane]):
    """A lifecycle node that publishes targets in the name of the engine's node.

    Topics and services keep the names that they have when the engine's process ticks itself.

    :param kwargs: as of `LifecycleNode`: namespace, context, parameter_overrides, cli_args ...
    :raises SettingError: names the parameter, what was expected and what came.
    """

    def __init__(self, node_name: str = 'oxygen_tick', **kwargs: Any) -> None:
        super().__init__(node_name, TICK_SETTINGS, make_tick_settings, **kwargs)
        self._engine = self._settings.engine_node
        self._serve_arming(self._engine)

    @property
    def plane(self) -> TickPlane | None:
        """What exists while configured."""
        return self._plane

    def _make_plane(self) -> TickPlane:
        return TickPlane(self, self._engine, self._settings, self._faults)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until the process is told to end; return the exit status."""
    return run_node('tick_node', TickNode, args)


if __name__ == '__main__':
    sys.exit(main())
