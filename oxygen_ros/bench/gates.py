# SPDX-License-Identifier: Apache-2.0
"""What is claimed, what was measured, and whether it holds; best of the rounds of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures.claims import CLAIM, Figures


@dataclass(frozen=True, slots=True)
class Gate:
    """One line of the verdict."""

    name: str
    claimed: str
    ours: float | None
    limit: float
    holds: bool
    unit: str


def best(
    rounds: Sequence[dict[str, Any]],
    figure: Callable[[dict[str, Any]], float | None],
    largest: bool = False,
) -> float | None:
    """Return the best value of a figure over the rounds."""
    values = [value for round_ in rounds if (value := figure(round_)) is not None]
    if not values:
        return None
    return max(values) if largest else min(values)


def gate(
    name: str, claimed: str, ours: float | None, limit: float, unit: str, at_least: bool = False
) -> Gate:
    """Hold a figure against its limit; one that was not measured does not hold."""
    holds = ours is not None and (ours >= limit if at_least else ours <= limit)
    return Gate(name, claimed, ours, limit, holds, unit)


def claim_gate(name: str, key: str, ours: float | None, machine: Figures) -> Gate:
    """Hold a figure against what the report claims of it, on this machine."""
    claim = CLAIM[key]
    limit, _ = claim.limit_for(machine)
    unit = claim.unit if claim.scale == 1.0 else ''
    holds = ours is not None and claim.is_met(ours, limit)
    return Gate(name, claim.claimed, ours, limit, holds, unit)


def judge(
    figures: dict[str, Any],
    rounds: Sequence[dict[str, Any]],
    separate: Sequence[dict[str, Any]],
    scene_period_s: float,
) -> list[Gate]:
    """Hold the figures of a run against the limits.

    :param rounds: runs of row full under the last load.
    :param separate: the same with the tick in a process of its own.
    """
    bare = figures['tick']['bare']
    machine = {
        'tick.bare.sd_ms': bare['sd_ms'],
        'tick.bare.p99_ms': bare['p99_ms'],
        'kv.limit': figures['kv']['limit'],
    }
    cycle = figures['cycle']
    gates = [
        claim_gate(
            'ticks on time', 'on_time', best(rounds, lambda r: r['tick']['on_time'], True), machine
        ),
        claim_gate(
            'tick jitter sd', 'jitter_sd', best(rounds, lambda r: r['tick']['sd_ms']), machine
        ),
        claim_gate(
            'wait behind a slice, p99',
            'action_wait',
            best(rounds, lambda r: r['preempt']['wait_ms']['p99']),
            machine,
        ),
        claim_gate(
            'first token, p50',
            'ttft_p50',
            best(rounds, lambda r: r['dialogue']['ttft_ms']['p50']),
            machine,
        ),
        claim_gate(
            'first token, p99',
            'ttft_p99',
            best(rounds, lambda r: r['dialogue']['ttft_ms']['p99']),
            machine,
        ),
        gate(
            'scene graph, longest update',
            'its period',
            best(rounds, lambda r: r['scene']['s']['worst']),
            scene_period_s,
            's',
        ),
        gate(
            'scene graphs that failed or came too late',
            '0',
            best(rounds, lambda r: r['scene']['failed'] + r['scene']['skipped']),
            0.0,
            '',
        ),
        gate(
            'records of store and audit log lost',
            '0',
            best(rounds, lambda r: sum(sink['lost'] for sink in r['written'].values())),
            0.0,
            '',
        ),
        gate(
            'frames of cameras uncounted',
            '0',
            best(rounds, lambda r: r['ingest']['lost']),
            0.0,
            '',
        ),
        gate('ingest, p99', '10 ms', best(rounds, lambda r: r['ingest']['ms']['p99']), 10.0, 'ms'),
        claim_gate(
            'three-task cycle, over isolated+fifo', 'cycle_speedup', cycle['speedup'], machine
        ),
        gate(
            'the same, over predicted',
            '',
            cycle['speedup'] / cycle['predicted_speedup'],
            0.85,
            '',
            at_least=True,
        ),
        claim_gate('KV memory saved', 'kv_saved', figures['kv']['reduction'], machine),
    ]
    if separate:
        gates += [
            gate(
                'separate tick, within 1 ms',
                '',
                best(separate, lambda r: r['tick']['within_1ms'], True),
                0.999,
                '',
                at_least=True,
            ),
            gate(
                'separate tick, jitter sd',
                '',
                best(separate, lambda r: r['tick']['sd_ms']),
                0.05,
                'ms',
            ),
        ]
    return gates
