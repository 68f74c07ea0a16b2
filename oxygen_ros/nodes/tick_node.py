# SPDX-License-Identifier: Apache-2.0
"""The tick as a process of its own: it plays the engine's chunks, and holds when they end.

It loads neither a model nor torch, and no fault of the engine's process reaches it: a crash, a
long pass, or a library that keeps the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
import sys
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from ..control import hold_reasons
from ..errors import OxygenError
from .actuation.arming_services import ArmingServices
from .faults import FaultLog
from .lifecycle_process import run_lifecycle_node
from .middleware.destroyable_node import DestroyableNode
from .parameters.declare import declare_all, merged, read_all, refusal
from .parameters.tick_settings import make_tick_settings, TICK_PARAMETERS
from .tick_plane import TickPlane


class TickNode(DestroyableNode):
    """A lifecycle node that gives targets out in the name of the engine's node.

    Topics and services keep the names that they have when the engine's process ticks itself.

    :param kwargs: as of `LifecycleNode`: namespace, context, parameter_overrides, cli_args ...
    :raises ParameterError: names the parameter, what was expected and what came.
    """

    def __init__(self, node_name: str = 'oxygen_tick', **kwargs: Any) -> None:
        super().__init__(node_name, **kwargs)
        self._plane: TickPlane | None = None
        self._faults = FaultLog(self.get_logger())
        declare_all(self, TICK_PARAMETERS)
        self._settings = make_tick_settings(read_all(self))
        self._engine = str(self.get_parameter('engine_node').value)
        self._arming_services = ArmingServices(
            self,
            self._engine,
            lambda: None if self._plane is None else self._plane.loop.arming,
            self._faults,
        )
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    @property
    def plane(self) -> TickPlane | None:
        """What exists while configured."""
        return self._plane

    @property
    def faults(self) -> FaultLog:
        """The faults of callbacks so far."""
        return self._faults

    # Lifecycle.

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Create topics and timers."""
        del state
        try:
            self._plane = TickPlane(self, self._engine, self._settings, self._faults)
        except Exception as error:  # noqa: B902, BLE001 rclpy would swallow it without a word
            self._faults.note('configure', error)
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the tick; it holds until the engine's chunks come."""
        assert self._plane is not None
        try:
            self._plane.start()
        except Exception as error:  # noqa: B902, BLE001 an error is answered with a hold
            self._faults.note('activate', error)
            return TransitionCallbackReturn.ERROR
        for item in self._plane.loop.realtime_report.items:
            self.get_logger().info(str(item))
        armed = self._plane.loop.arming.view().sending
        self.get_logger().info(
            f'active for {self._engine}, '
            f'{"armed" if armed else "disarmed: call its ~/enable to move"}'
        )
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, then stop."""
        self._stop(hold_reasons.DEACTIVATED)
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free everything."""
        del state
        self._destroy_plane()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, stop and free, from any state."""
        del state
        self._stop(hold_reasons.SHUTDOWN)
        self._destroy_plane()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, stop and free; the node can be configured again."""
        self.get_logger().error(f'error in {state.label}: holding ({self._faults.newest})')
        self._stop(hold_reasons.ERROR)
        self._destroy_plane()
        return TransitionCallbackReturn.SUCCESS

    def _stop(self, reason: str) -> None:
        if self._plane is not None:
            self._plane.stop(reason)

    def _destroy_plane(self) -> None:
        if self._plane is not None:
            self._plane.destroy()
            self._plane = None

    def destroy_node(self) -> None:
        """Hold, stop and free in any state: a tick must not outlive its node."""
        self._stop(hold_reasons.SHUTDOWN)
        self._destroy_plane()
        super().destroy_node()

    # Parameters.

    def _on_set_parameters(self, changes: list[Parameter[Any]]) -> SetParametersResult:
        """Check a set of changes as a whole; nothing is applied here."""
        reason = refusal(changes, self._plane is not None)
        if not reason:
            try:
                make_tick_settings(merged(read_all(self), changes))
            except OxygenError as error:
                reason = str(error)
        return SetParametersResult(successful=not reason, reason=reason)

    def _on_parameters_set(self, changes: list[Parameter[Any]]) -> None:
        self._settings = make_tick_settings(merged(read_all(self), changes))
        if self._plane is not None:
            self._plane.reconfigure(self._settings)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until the process is told to end; return the exit status."""
    return run_lifecycle_node('tick_node', TickNode, args)


if __name__ == '__main__':
    sys.exit(main())
