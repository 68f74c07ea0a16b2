# SPDX-License-Identifier: Apache-2.0
"""The services: instruction, scene graph, what is remembered, how the KV cache is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

import oxygen_ros.srv as srv

from ...engine.kv.memory_report import MemoryReport
from ...memory.episodes.reader import MemoryPage
from ...robot.dialogue import NOT_ACTIVE
from ...robot.faults import FaultLog
from ...robot.messages import scene_message
from ...robot.robot import Robot
from ...runtime.store_reading import NO_STORE
from ...types import SceneUpdate
from ..messages import make_message
from ..robot_access import RobotAccess
from .query_conversions import entry_message, query_of

NOT_CONFIGURED = 'expected a configured node, got an unconfigured one'
_MAX_QUERIES = 'expected fewer queries at once, got one more'

# Fields that the report and the service's response have in common, under the same names.
_REPORT_FIELDS = (
    'bytes_total',
    'bytes_prefix',
    'bytes_action',
    'bytes_text',
    'bytes_free',
    'bytes_isolated',
    'blocks_total',
    'blocks_free',
    'blocks_owned',
    'blocks_shared',
    'prefix_age_s',
    'prefix_readers',
)


class Services:
    """Made with the node, since a caller is owed an answer in every state; executor's thread.

    :param access: returns the way to the robot, or None while the node is not configured.
    """

    def __init__(
        self, node: Node, access: Callable[[], RobotAccess | None], faults: FaultLog
    ) -> None:
        self._access = access
        self._faults = faults
        # Reentrant: a call waits for its answer, and must not keep the others from running.
        for name, service_type, answer in (
            ('set_instruction', srv.SetInstruction, self._set_instruction),
            ('update_scene_graph', srv.UpdateSceneGraph, self._update_scene_graph),
            ('query_memory', srv.QueryMemory, self._query_memory),
        ):
            node.create_service(
                service_type,
                f'~/{name}',
                self._waiting(name, answer),
                callback_group=ReentrantCallbackGroup(),
            )
        for name, service_type, callback in (
            ('get_scene_graph', srv.GetSceneGraph, self._get_scene_graph),
            ('get_memory_report', srv.GetMemoryReport, self._get_memory_report),
        ):
            node.create_service(service_type, f'~/{name}', faults.guard_service(name, callback))

    def _waiting(self, name: str, answer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Return a service callback that awaits an answer, and answers whatever happens."""

        async def callback(request: Any, response: Any) -> Any:
            response.success = False
            try:
                await answer(request, response)
            except ValueError as error:  # of the request
                response.message = f'{type(error).__name__}: {error}'
            except Exception as error:  # noqa: B902, BLE001 a service answers
                self._faults.note(name, error)
                response.message = f'{type(error).__name__}: {error}'
            return response

        return callback

    async def _set_instruction(self, request: Any, response: Any) -> None:
        access = self._access()
        if access is None:
            response.message = NOT_CONFIGURED
            return
        done: Future[str] = Future()

        def instruct(robot: Robot) -> None:
            problem = robot.take_instruction(request.instruction, 'service set_instruction')
            access.deliver(lambda: done.set_result(problem))

        access.submit(instruct)
        response.message = await done
        response.success = not response.message

    async def _update_scene_graph(self, request: Any, response: Any) -> None:
        del request
        access = self._access()
        if access is None:
            response.message = NOT_ACTIVE
            return
        done: Future[tuple[SceneUpdate | None, str, Mapping[int, str]]] = Future()

        def update(robot: Robot) -> None:
            robot.scene.update(
                lambda update, problem: access.deliver(
                    lambda: done.set_result((update, problem, robot.scene.verdicts))
                )
            )

        access.submit(update)
        outcome = await done
        assert outcome is not None
        graph, response.message, verdicts = outcome
        if graph is not None:
            response.success = True
            response.graph = scene_message(make_message, graph, verdicts)

    def _get_scene_graph(self, request: Any, response: Any) -> Any:
        del request
        access = self._access()
        graph = None if access is None else access.robot.scene.current
        if access is None or graph is None:
            response.message = 'expected at least one update so far, got none'
            return response
        response.success = True
        response.graph = scene_message(make_message, graph, access.robot.scene.verdicts)
        return response

    async def _query_memory(self, request: Any, response: Any) -> None:
        query = query_of(request)
        access = self._access()
        reader = None if access is None else access.robot.records.reader
        if access is None or reader is None:
            response.message = NO_STORE
            return
        if reader.is_busy:
            response.message = _MAX_QUERIES
            return
        done: Future[MemoryPage] = Future()
        access.submit(
            lambda robot: reader.ask(
                lambda store: store.find(query),
                lambda page: access.deliver(lambda: done.set_result(page)),
                lambda error: access.deliver(lambda: done.set_exception(error)),
            )
        )
        try:
            page = await done
        except Exception as error:  # noqa: B902, BLE001 a store in trouble is no fault of ours
            response.message = f'{type(error).__name__}: {error}'
            return
        assert page is not None
        response.entries = [entry_message(entry) for entry in page.entries]
        response.next_before = page.next_before or 0
        response.success = True

    def _get_memory_report(self, request: Any, response: Any) -> Any:
        del request
        access = self._access()
        if access is None:
            response.message = NOT_CONFIGURED
            return response
        engine = access.robot.engine
        _fill_memory_report(access.robot.memory_report(), response)
        peak = engine.peak
        if peak is not None:
            response.bytes_peak_shared = peak.bytes_referenced
            response.bytes_peak_isolated = peak.bytes_isolated
        response.preemptions = engine.counters.preemptions
        response.images_encoded = engine.counters.images_encoded
        response.images_superseded = engine.runner.ledger.num_superseded
        response.images_reused = engine.counters.images_reused
        response.success = True
        return response


def _fill_memory_report(report: MemoryReport, response: Any) -> None:
    for name in _REPORT_FIELDS:
        value = getattr(report, name)
        setattr(response, name, list(value) if isinstance(value, tuple) else value)
    response.prefix_observation_ids = [
        max(observation_id, 0) for observation_id in report.prefix_observation_ids
    ]
