# SPDX-License-Identifier: Apache-2.0
"""The node: one VLA model that moves, talks and remembers, as a managed ROS 2 node."""

from __future__ import annotations

from collections.abc import Sequence
import gc
import sys
import time
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from ..control import hold_reasons
from ..errors import OxygenError
from ..runtime.runtime import Publish, Runtime
from .actuation.arming_services import ArmingServices
from .data_plane import DataPlane
from .faults import FaultLog
from .lifecycle_process import run_lifecycle_node
from .middleware.destroyable_node import DestroyableNode
from .middleware.wake_up import WakeUp
from .parameters.declare import declare_all, merged, read_all, refusal
from .parameters.settings import make_settings, NodeSettings
from .records.memory_queries import MemoryQueries
from .requests.dialogue_server import DialogueServer
from .requests.scene_graph_server import SceneGraphServer
from .requests.services import Services

_SHUTDOWN_TIMEOUT_S = 1.5  # of the engine; a process that is told to end has about 3 s in all


class OxygenNode(DestroyableNode):
    """A lifecycle node; two of them can live in one process.

    It never calls init or spin and keeps no globals. Action and services exist as long as the node
    and answer in every state; topics and timers exist while it is configured.

    :param kwargs: as of `LifecycleNode`: namespace, context, parameter_overrides, cli_args ...
    :raises ParameterError: names the parameter, what was expected and what came.
    """

    def __init__(self, node_name: str = 'oxygen', **kwargs: Any) -> None:
        super().__init__(node_name, **kwargs)
        self._plane: DataPlane | None = None
        self._faults = FaultLog(self.get_logger())
        declare_all(self)
        self._settings = make_settings(read_all(self))
        self._queries = MemoryQueries(self, self._faults)
        self._dialogue = DialogueServer(
            self,
            int(self.get_parameter('dialogue.result_timeout_s').value),
            self._faults,
            self._queries,
        )
        self.end_with_node(self._dialogue.destroy)
        self._scene = SceneGraphServer(self, self._faults)
        self._quick_services = Services(  # not `_services`: rclpy keeps its own under that name
            self, lambda: self.runtime, self._set_instruction, self._faults
        )
        if not self._has_separate_tick:
            self._arming_services = ArmingServices(
                self,
                '~',
                lambda: None if self.runtime is None else self.runtime.arming,
                self._faults,
            )
        # Lives as long as the node: the engine's thread may trigger it until its very end.
        self._wake = WakeUp(self, self._faults.guard('outbox', self._drain))
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    @property
    def runtime(self) -> Runtime | None:
        """The runtime while configured."""
        return None if self._plane is None else self._plane.runtime

    @property
    def _has_separate_tick(self) -> bool:
        return self._settings.runtime.publish is Publish.ELSEWHERE

    @property
    def faults(self) -> FaultLog:
        """The faults of callbacks so far."""
        return self._faults

    # Lifecycle.

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the model, allocate, warm up, create topics and timers."""
        del state
        logger = self.get_logger()
        start_s = time.monotonic()
        try:
            self._plane = DataPlane(
                self,
                self._settings,
                self._dialogue,
                self._scene,
                self._queries,
                self._faults,
                self._wake,
            )
        except (OxygenError, ValueError, OSError) as error:
            logger.error(f'configure: {error}')
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # noqa: B902, BLE001 rclpy would swallow it without a word
            self._faults.note('configure', error)
            return TransitionCallbackReturn.FAILURE
        runtime = self._plane.runtime
        logger.info(
            f'configured in {time.monotonic() - start_s:.1f} s (warm-up '
            f'{runtime.warm_up_s:.1f} s): model {runtime.model.spec.name} on '
            f'{runtime.model.device}, cameras {", ".join(runtime.config.sensors.cameras)}'
        )
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start engine and tick."""
        assert self._plane is not None
        try:
            self._plane.start()
        except Exception as error:  # noqa: B902, BLE001 an error is answered with a hold
            self._faults.note('activate', error)
            return TransitionCallbackReturn.ERROR
        for item in self._plane.runtime.realtime_report.items:
            self.get_logger().info(str(item))
        armed = self._plane.runtime.arming.view().sending
        how = 'armed' if armed else 'disarmed: call ~/enable to move'
        if self._has_separate_tick:
            how = 'targets are given out by the separate tick'
        self.get_logger().info(f'active, {how}')
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, then stop."""
        if not self._stop(hold_reasons.DEACTIVATED):
            return TransitionCallbackReturn.ERROR
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free everything."""
        del state
        self._destroy_plane()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, stop and free, from any state."""
        del state
        self._stop(hold_reasons.SHUTDOWN, _SHUTDOWN_TIMEOUT_S)
        self._destroy_plane()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, stop and free; the node can be configured again."""
        self.get_logger().error(f'error in {state.label}: holding ({self._faults.newest})')
        self._stop(hold_reasons.ERROR, _SHUTDOWN_TIMEOUT_S)
        self._destroy_plane()
        return TransitionCallbackReturn.SUCCESS

    def _stop(self, reason: str, timeout_s: float = 5.0) -> bool:
        if self._plane is None:
            return True
        try:
            stopped = self._plane.stop(reason, timeout_s)
        except Exception as error:  # noqa: B902, BLE001 the transition must say so, not vanish
            self._faults.note('deactivate', error)
            return False
        if not stopped:
            self.get_logger().error(f'the engine did not stop within {timeout_s:.1f} s')
        return stopped

    def _destroy_plane(self) -> None:
        if self._plane is None:
            return
        try:
            self._plane.destroy()
        except Exception as error:  # noqa: B902, BLE001 the rest is freed all the same
            self._faults.note('cleanup', error)
        self._plane = None
        gc.collect()  # the KV cache is part of reference cycles, and should not wait for chance

    def destroy_node(self) -> None:
        """Hold, stop and free in any state: a tick must not outlive its node."""
        self._stop(hold_reasons.SHUTDOWN, _SHUTDOWN_TIMEOUT_S)
        self._destroy_plane()
        super().destroy_node()

    # Events.

    def _drain(self) -> None:
        if self._plane is not None:
            self._plane.drain()

    def _set_instruction(self, instruction: str) -> str:
        if self._plane is None:
            return 'expected a configured node, got an unconfigured one'
        return self._plane.set_instruction(instruction, 'service set_instruction')

    # Parameters.

    def _on_set_parameters(self, changes: list[Parameter[Any]]) -> SetParametersResult:
        """Check a set of changes as a whole; nothing is applied here."""
        reason = refusal(changes, self._plane is not None)
        if not reason:
            try:
                self._settings_with(changes)
            except OxygenError as error:
                reason = str(error)
        return SetParametersResult(successful=not reason, reason=reason)

    def _settings_with(self, changes: Sequence[Parameter[Any]]) -> NodeSettings:
        return make_settings(merged(read_all(self), changes))

    def _on_parameters_set(self, changes: list[Parameter[Any]]) -> None:
        self._settings = self._settings_with(changes)
        if self._plane is not None:
            self._plane.reconfigure(self._settings)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until the process is told to end; return the exit status."""
    return run_lifecycle_node('oxygen_node', OxygenNode, args)


if __name__ == '__main__':
    sys.exit(main())
