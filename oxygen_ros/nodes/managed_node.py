# SPDX-License-Identifier: Apache-2.0
"""What both nodes are: a lifecycle, parameters that are checked as a whole, an end in a hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
import gc
from typing import Any, Generic, Protocol, TypeVar

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from ..control import hold_reasons, RealtimeReport
from ..errors import OxygenError
from ..robot.actuation import Actuation
from ..robot.faults import FaultLog
from ..setting import Setting, Value
from .actuation.arming_services import ArmingServices
from .middleware.destroyable_node import DestroyableNode
from .parameters import declare_all, merged, read_all, refusal

_STOP_TIMEOUT_S = 5.0
_SHUTDOWN_TIMEOUT_S = 1.5  # a process that is told to end has about 3 s in all

Settings = TypeVar('Settings')
NewSettings = TypeVar('NewSettings', contravariant=True)


class Plane(Protocol[NewSettings]):
    """All that exists while a node is configured; belongs to the executor's thread."""

    @property
    def actuation(self) -> Actuation:
        """The tick."""
        ...

    @property
    def realtime_report(self) -> RealtimeReport:
        """What came of the real-time settings."""
        ...

    def start(self) -> None:
        """Start, when the node is activated."""

    def stop(self, reason: str, timeout_s: float) -> bool:
        """Hold and stop; return False where something did not stop in time."""
        ...

    def destroy(self) -> None:
        """Destroy all entities; only when stopped."""

    def reconfigure(self, settings: NewSettings) -> None:
        """Use settings of which only live ones differ."""


AnyPlane = TypeVar('AnyPlane', bound=Plane[Any])


class ManagedNode(DestroyableNode, ABC, Generic[Settings, AnyPlane]):
    """A lifecycle node around a plane; two of them can live in one process.

    It never calls init or spin and keeps no globals.

    :param parameters: that it declares.
    :param make_settings: checks all parameter values together.
    :param kwargs: as of `LifecycleNode`: namespace, context, parameter_overrides, cli_args ...
    :raises SettingError: names the parameter, what was expected and what came.
    """

    def __init__(
        self,
        node_name: str,
        parameters: Mapping[str, Setting],
        make_settings: Callable[[Mapping[str, Value]], Settings],
        **kwargs: Any,
    ) -> None:
        super().__init__(node_name, **kwargs)
        self._plane: AnyPlane | None = None
        self._faults = FaultLog(self.get_logger())
        self._make_settings = make_settings
        self._arming_prefix = ''  # of the services' names; empty: another process has them
        declare_all(self, parameters)
        self._settings = make_settings(read_all(self))
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    @abstractmethod
    def _make_plane(self) -> AnyPlane:
        """Return what exists while the node is configured."""

    def _serve_arming(self, prefix: str) -> None:
        """Create the services that arm and hold; they answer in every state."""
        self._arming_prefix = prefix
        self._arming_services = ArmingServices(
            self,
            prefix,
            lambda: None if self._plane is None else self._plane.actuation.arming,
            self._faults,
        )

    @property
    def faults(self) -> FaultLog:
        """The faults of callbacks so far."""
        return self._faults

    # Lifecycle.

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Allocate, create topics and timers."""
        del state
        try:
            self._plane = self._make_plane()
        except (OxygenError, ValueError, OSError) as error:
            self.get_logger().error(f'configure: {error}')
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # noqa: B902, BLE001 rclpy would swallow it without a word
            self._faults.note('configure', error)
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start what runs."""
        assert self._plane is not None
        try:
            self._plane.start()
        except Exception as error:  # noqa: B902, BLE001 an error is answered with a hold
            self._faults.note('activate', error)
            return TransitionCallbackReturn.ERROR
        for item in self._plane.realtime_report.items:
            self.get_logger().info(str(item))
        if not self._arming_prefix:
            how = 'targets are published by the separate tick'
        elif self._plane.actuation.arming.view().sending:
            how = 'armed'
        else:
            how = f'disarmed: call {self._arming_prefix}/enable to move'
        self.get_logger().info(f'active, {how}')
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, then stop."""
        if not self._stop(hold_reasons.DEACTIVATED, _STOP_TIMEOUT_S):
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
        self._end(hold_reasons.SHUTDOWN)
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, stop and free; the node can be configured again."""
        self.get_logger().error(f'error in {state.label}: holding ({self._faults.newest})')
        self._end(hold_reasons.ERROR)
        return TransitionCallbackReturn.SUCCESS

    def destroy_node(self) -> None:
        """Hold, stop and free in any state: a tick must not outlive its node."""
        self._end(hold_reasons.SHUTDOWN)
        super().destroy_node()

    def _end(self, reason: str) -> None:
        self._stop(reason, _SHUTDOWN_TIMEOUT_S)
        self._destroy_plane()

    def _stop(self, reason: str, timeout_s: float) -> bool:
        if self._plane is None:
            return True
        try:
            stopped = self._plane.stop(reason, timeout_s)
        except Exception as error:  # noqa: B902, BLE001 the transition must say so, not vanish
            self._faults.note('deactivate', error)
            return False
        if not stopped:
            self.get_logger().error(f'expected to stop within {timeout_s:.1f} s, still running')
        return stopped

    def _destroy_plane(self) -> None:
        if self._plane is None:
            return
        try:
            self._plane.destroy()
        except Exception as error:  # noqa: B902, BLE001 the rest is freed all the same
            self._faults.note('cleanup', error)
        self._plane = None
        gc.collect()  # a KV cache is part of reference cycles, and should not wait for chance

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

    def _settings_with(self, changes: Iterable[Parameter[Any]]) -> Settings:
        return self._make_settings(merged(read_all(self), changes))

    def _on_parameters_set(self, changes: list[Parameter[Any]]) -> None:
        self._settings = self._settings_with(changes)
        if self._plane is not None:
            self._plane.reconfigure(self._settings)
