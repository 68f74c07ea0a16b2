# SPDX-License-Identifier: Apache-2.0
"""What is wrong with actuation, in words; knows no engine."""

from __future__ import annotations

from ..control import hold_reasons, RealtimeReport
from .actuation import Actuation
from .status import Finding, Level, Status
from .tick_settings import ActuationLimits


def actuation_status(
    actuation: Actuation, is_running: bool, num_errors: int, limits: ActuationLimits
) -> Status:
    """Look at the tick of the last second.

    :param is_running: whether it ticks.
    :param num_errors: ticks that failed.
    """
    view = actuation.arming.view()
    period_ns = actuation.tick.config.period_ns
    figures = actuation.statistics.window(max(1, round(1e9 / period_ns)))
    ticks, held, overruns, _ = actuation.statistics.counts()
    newest = actuation.newest
    reason = newest.target.hold_reason if newest is not None else ''
    findings: list[Finding] = []
    if is_running and view.sending and newest is not None:
        ratio = figures.held / max(figures.ticks, 1)
        if ratio > limits.max_held_ratio:
            level = Level.ERROR if ratio > 0.5 else Level.WARN
            why = hold_reasons.DESCRIPTIONS.get(reason, reason or 'on and off')
            findings.append(Finding(level, f'holds: {why}'))
    if is_running and figures.lateness_p99_ms > limits.max_jitter_p99_ms:
        late = f'ticks are {figures.lateness_p99_ms:.1f} ms late (p99)'
        findings.append(Finding(Level.WARN, late))
    if is_running and figures.overruns:
        findings.append(Finding(Level.WARN, f'{figures.overruns} ticks missed'))
    if is_running and num_errors:
        failed = f'{num_errors} ticks failed, last: {actuation.failure}'
        findings.append(Finding(Level.ERROR, failed))
    if actuation.problem:
        findings.append(Finding(Level.ERROR if view.sending else Level.WARN, actuation.problem))
    dry_run = actuation.tick.config.dry_run
    if view.sending and dry_run:
        findings.append(Finding(Level.WARN, 'dry run: nothing is sent'))
    return Status(
        findings,
        [
            ('state', view.state.value if is_running else 'inactive'),
            ('dry run', dry_run),
            ('ticks', ticks),
            ('held', held),
            ('overruns', overruns),
            ('hold reason', reason),
            ('jitter sd (ms)', figures.lateness_sd_ms),
            ('jitter p99 (ms)', figures.lateness_p99_ms),
            ('jitter max (ms)', figures.lateness_max_ms),
            ('observation age p99 (ms)', figures.observation_age_p99_ms),
        ],
    )


def realtime_findings(report: RealtimeReport) -> list[Finding]:
    """Return what the operating system has refused."""
    refused = ', '.join(item.name for item in report.refused)
    return [Finding(Level.WARN, f'real-time settings refused: {refused}')] if refused else []
