# SPDX-License-Identifier: Apache-2.0
"""Asks the running node how it uses its KV memory, and shows the answer."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from oxygen_ros.srv import GetMemoryReport

from ...errors import OxygenError
from .node_driver import NodeDriver, run_driver

_CLASSES = ('prefix', 'action', 'text', 'free')
_BLOCKS = ('free', 'owned', 'shared')


def show_memory(timeout_s: float) -> None:
    """Print the memory report of the node named `oxygen`.

    :raises OxygenError: no node answered in time, or it is not configured.
    """
    report = run_driver(
        lambda: NodeDriver('oxygen_inspect', lambda: None),
        lambda driver: driver.memory_report(timeout_s),
    )
    if not report.success:
        raise OxygenError(report.message)
    print_memory(report)


def print_memory(report: GetMemoryReport.Response) -> None:
    """Print bytes by class, what isolated caches would take, blocks, live prefixes and counts."""
    table = Table(title='KV memory', show_header=False)
    table.add_row('allocated', f'{report.bytes_total:,} B')
    for name in _CLASSES:
        table.add_row(name, f'{getattr(report, f"bytes_{name}"):,} B')
    table.add_row('isolated caches would take', f'{report.bytes_isolated:,} B')
    table.add_row(
        'at its fullest',
        f'{report.bytes_peak_shared:,} B, isolated {report.bytes_peak_isolated:,} B',
    )
    blocks = ', '.join(f'{getattr(report, f"blocks_{name}")} {name}' for name in _BLOCKS)
    table.add_row('blocks', f'{report.blocks_total}: {blocks}')
    for prefix in _prefixes(report):
        table.add_row(*prefix)
    table.add_row('preemptions', str(report.preemptions))
    table.add_row(
        'images',
        f'{report.images_encoded} encoded, {report.images_reused} reused, '
        f'{report.images_superseded} never read',
    )
    Console().print(table)


def _prefixes(report: Any) -> list[tuple[str, str]]:
    return [
        (f'prefix of observation {observation_id}', f'{age_s:.2f} s old, {readers} readers')
        for observation_id, age_s, readers in zip(
            report.prefix_observation_ids, report.prefix_age_s, report.prefix_readers
        )
    ]
