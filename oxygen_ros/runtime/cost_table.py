# SPDX-License-Identifier: Apache-2.0
"""What each unit of work costs on virtual time, so that a replay's schedule is the same anywhere.

Costs of the model `tiny` on one CPU core, rounded; size 0 stands for any size. With another model
or machine the schedule is that of a robot as fast as this table says.
"""

from __future__ import annotations

from ..engine.scheduling.work import UnitKey, UnitKind

COST_NS = {
    UnitKey(UnitKind.HASH, 0): 550_000,
    UnitKey(UnitKind.INGEST, 0): 150_000,
    UnitKey(UnitKind.VISION, 0): 750_000,
    UnitKey(UnitKind.PREFILL, 0): 1_350_000,
    UnitKey(UnitKind.WRITE_KV, 0): 200_000,
    UnitKey(UnitKind.ACTION_PROMPT, 0): 300_000,
    UnitKey(UnitKind.TEXT_PREFILL, 0): 300_000,
    UnitKey(UnitKind.DENSE_READ, 0): 300_000,
    UnitKey(UnitKind.DECODE, 0): 250_000,
    UnitKey(UnitKind.HEAD, 0): 100_000,
    UnitKey(UnitKind.DENOISE, 0): 800_000,
}
