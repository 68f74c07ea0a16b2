# SPDX-License-Identifier: Apache-2.0
"""What /diagnostics shows of actuation, in whichever process ticks; knows no engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from ...control import ChunkBuffer
from ...robot.actuation import Actuation
from ...robot.actuation_findings import actuation_status, realtime_findings
from ...robot.status import Figures, Finding, Level, Status
from ...robot.tick_settings import ActuationLimits
from ...runtime.tick_loop import TickLoop
from ..actuation.chunk_input import ChunkInput
from ..actuation.controller_watch import ControllerWatch
from ..actuation.target_publisher import TargetPublisher
from ..middleware.endpoints import command_problems, num_publishers
from .diagnostics import Task, with_graph


def actuation_task(
    node: Node,
    actuation: Actuation,
    loop: TickLoop | None,
    targets: TargetPublisher,
    controllers: ControllerWatch | None,
    limits: Callable[[], ActuationLimits],
) -> Task:
    """Look at the tick of the last second, and at who else commands and who listens.

    :param loop: None: the tick is a part of virtual time.
    """

    def task() -> Status:
        thread = None if loop is None else loop.thread
        status = actuation_status(
            actuation, thread is not None, 0 if thread is None else thread.num_errors, limits()
        )
        is_sending = actuation.arming.view().sending
        wrong = Level.ERROR if is_sending else Level.WARN
        more: list[Finding] = []
        for output in targets.outputs:
            rivals, unheard = command_problems(node, output.publisher)
            more += [Finding(wrong, problem) for problem in rivals]
            more += [Finding(Level.WARN, problem) for problem in unheard if is_sending]
        if controllers is not None:
            more += [Finding(wrong, problem) for problem in controllers.problems()]
        if loop is not None:
            more += realtime_findings(loop.realtime_report)
        return Status([*status.findings, *more], status.figures)

    return task


def elsewhere_task(node: Node) -> Task:
    """Look at whether a tick in another process publishes targets."""

    def task() -> Status:
        if node.count_publishers('~/target'):
            return Status([], [('state', 'separate')])
        text = 'the tick is separate, and no tick_node publishes ~/target'
        return Status([Finding(Level.WARN, text)], [('state', 'separate')])

    return task


def chunks_task(
    node: Node, subscription: Subscription[Any], chunks: ChunkInput, buffer: ChunkBuffer
) -> Task:
    """Look at what comes from an engine in another process."""

    def task() -> Status:
        counts = chunks.counts
        num_engines = num_publishers(node, [subscription])
        wrong: list[Finding] = []
        if not num_engines:
            wrong.append(Finding(Level.ERROR, f'nobody publishes {subscription.topic_name}'))
        elif num_engines > 1:
            text = f'{num_engines} engines publish {subscription.topic_name}'
            wrong.append(Finding(Level.ERROR, text))
        if counts.refused:
            text = f'{counts.refused} refused, last: {counts.newest_problem}'
            wrong.append(Finding(Level.WARN, text))
        figures: Figures = [
            ('received', counts.received),
            ('refused', counts.refused),
            ('engine restarts', counts.restarts),
            ('outlived', counts.outlived),
            *asdict(buffer.counts).items(),
        ]
        return with_graph(Status(wrong, figures), node, [subscription], Level.ERROR)

    return task
