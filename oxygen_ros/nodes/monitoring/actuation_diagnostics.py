# SPDX-License-Identifier: Apache-2.0
"""What /diagnostics shows of actuation, in the process that ticks and in one that does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from ...control import ChunkBuffer, hold_reasons
from ...robot.tick_settings import ActuationLimits
from ...runtime.tick_loop import TickLoop
from ..actuation.chunk_input import ChunkInput
from ..actuation.robot_link import RobotLink
from ..actuation.target_publisher import TargetPublisher
from ..middleware.endpoints import command_problems, num_publishers, publisher_problems
from .diagnostics import ERROR, Figures, Finding, Task, WARN


def actuation_task(
    node: Node,
    loop: TickLoop,
    targets: TargetPublisher,
    link: RobotLink,
    limits: Callable[[], ActuationLimits],
) -> Task:
    """Look at the tick of the last second."""
    window = max(1, round(1e9 / loop.tick.config.period_ns))

    def task() -> tuple[list[Finding], Figures]:
        view = loop.arming.view()
        figures = targets.statistics.window(window)
        ticks, held, overruns, _ = targets.statistics.counts()
        thread = loop.thread
        newest = targets.newest
        reason = newest.target.hold_reason if newest is not None else ''
        findings: list[Finding] = []
        if thread is not None and view.sending and newest is not None:
            ratio = figures.held / max(figures.ticks, 1)
            if ratio > limits().max_held_ratio:
                findings.append(
                    (
                        ERROR if ratio > 0.5 else WARN,
                        'holds: ' + hold_reasons.DESCRIPTIONS.get(reason, reason or 'on and off'),
                    )
                )
        if thread is not None and figures.lateness_p99_ms > limits().max_jitter_p99_ms:
            findings.append((WARN, f'ticks are {figures.lateness_p99_ms:.1f} ms late (p99)'))
        if thread is not None and figures.overruns:
            findings.append((WARN, f'{figures.overruns} ticks missed'))
        if thread is not None and thread.num_errors:
            findings.append((ERROR, f'{thread.num_errors} ticks failed'))
        for output in targets.outputs:
            rivals, unheard = command_problems(node, output.publisher)
            findings += [(ERROR if view.sending else WARN, problem) for problem in rivals]
            findings += [(WARN, problem) for problem in unheard if view.sending]
        findings += [(ERROR if view.sending else WARN, problem) for problem in link.problems()]
        if view.sending and not targets.outputs:
            findings.append((WARN, 'dry run: nothing is sent'))
        refused = ', '.join(item.name for item in loop.realtime_report.refused)
        if refused:
            findings.append((WARN, f'real-time settings refused: {refused}'))
        return findings, [
            ('state', view.state.value if thread is not None else 'inactive'),
            ('dry run', not targets.outputs),
            ('ticks', ticks),
            ('held', held),
            ('overruns', overruns),
            ('hold reason', reason),
            ('jitter sd (ms)', figures.lateness_sd_ms),
            ('jitter p99 (ms)', figures.lateness_p99_ms),
            ('jitter max (ms)', figures.lateness_max_ms),
            ('observation age p99 (ms)', figures.observation_age_p99_ms),
        ]

    return task


def elsewhere_task(node: Node) -> Task:
    """Look at whether a tick in another process gives targets out."""

    def task() -> tuple[list[Finding], Figures]:
        findings: list[Finding] = []
        if not node.count_publishers('~/target'):
            findings.append((WARN, 'the tick is separate, and no tick_node publishes ~/target'))
        return findings, [('state', 'separate')]

    return task


def chunks_task(
    node: Node, subscription: Subscription[Any], chunks: ChunkInput, buffer: ChunkBuffer
) -> Task:
    """Look at what comes from an engine in another process."""

    def task() -> tuple[list[Finding], Figures]:
        counts = chunks.counts
        num_engines = num_publishers(node, [subscription])
        findings: list[Finding] = []
        if not num_engines:
            findings.append((ERROR, f'nobody publishes {subscription.topic_name}'))
        elif num_engines > 1:
            findings.append((ERROR, f'{num_engines} engines publish {subscription.topic_name}'))
        findings += [(ERROR, problem) for problem in publisher_problems(node, subscription)]
        if counts.refused:
            findings.append((WARN, f'{counts.refused} refused, last: {counts.newest_problem}'))
        return findings, [
            ('received', counts.received),
            ('refused', counts.refused),
            ('engine restarts', counts.restarts),
            ('outlived', counts.outlived),
            *asdict(buffer.counts).items(),
        ]

    return task
