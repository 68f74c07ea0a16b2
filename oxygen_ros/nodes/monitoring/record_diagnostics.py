# SPDX-License-Identifier: Apache-2.0
"""What /diagnostics shows of the store and the audit log."""

from __future__ import annotations

from ...runtime.memory_sinks import SinkStatus
from ...runtime.memory_writer import WriterStatus
from .diagnostics import Figures, Finding, WARN


def writer_findings(status: WriterStatus | None) -> tuple[list[Finding], Figures]:
    """Return what is wrong with writing, and its figures; neither where nothing is written."""
    findings: list[Finding] = []
    figures: Figures = []
    if status is not None:
        for name, sink in (('store', status.store), ('audit log', status.audit)):
            if sink is not None:
                findings += [(WARN, f'{name}: {problem}') for problem in _problems(sink)]
                figures += [
                    (f'{name} written', sink.num_written),
                    (f'{name} waiting', sink.num_waiting),
                    (f'{name} dropped', sum(sink.num_dropped.values())),
                    (f'{name} rejected', sink.num_rejected),
                ]
        # Kept by whoever records diagnostics, it proves the log up to it.
        if status.audit_head is not None:
            head = status.audit_head
            figures.append(('audit head', f'{head.seq}:{head.digest}'))
    return findings, figures


def _problems(sink: SinkStatus) -> list[str]:
    problems = [] if sink.is_ok else [sink.fault]
    if sink.num_dropped:
        dropped = ', '.join(f'{num} {kind}' for kind, num in sorted(sink.num_dropped.items()))
        problems.append(f'dropped for want of room: {dropped}')
    if sink.num_rejected:
        problems.append(f'{sink.num_rejected} could not be written, last: {sink.rejection}')
    return problems
