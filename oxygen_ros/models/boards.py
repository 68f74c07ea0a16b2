# SPDX-License-Identifier: Apache-2.0
"""What boards can do, by their makers' data sheets: dense bfloat16, no sparsity."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY_SHARE = 0.9  # of the memory; the rest is left to the system


@dataclass(frozen=True, slots=True)
class Board:
    """One board.

    :raises ValueError: names the field, what was expected and what came.
    """

    name: str
    memory_gb: float  # 10^9 bytes
    bandwidth_gb_s: float  # 10^9 bytes a second
    tflop_s: float  # 10^12 bfloat16 operations a second

    def __post_init__(self) -> None:
        for name in ('memory_gb', 'bandwidth_gb_s', 'tflop_s'):
            if not 0.0 < getattr(self, name) < float('inf'):
                raise ValueError(f'{name}: expected above 0, got {getattr(self, name)}')

    def seconds(self, flop: float, num_bytes: float) -> float:
        """Return the roofline's time: arithmetic or traffic, whichever takes longer."""
        return max(flop / (self.tflop_s * 1e12), num_bytes / (self.bandwidth_gb_s * 1e9))


BOARDS = {
    board.name: board
    for board in (
        Board('orin', 64.0, 204.8, 42.5),  # Jetson AGX Orin 64 GB
        Board('thor', 128.0, 273.0, 258.0),  # Jetson AGX Thor
        Board('rtx4090', 24.0, 1008.0, 165.0),
        Board('h200', 141.0, 4800.0, 989.0),
    )
}
