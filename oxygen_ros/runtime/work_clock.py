# SPDX-License-Identifier: Apache-2.0
"""The steady clock as the engine takes it, on a CPU and on a GPU."""

from __future__ import annotations

import time

import torch

from ..engine.clock import WorkClock


class SteadyWorkClock:
    """The steady clock of this machine."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def charge(self, cost_ns: int) -> None:
        """Real time passes by itself."""


class SynchronisedWorkClock(SteadyWorkClock):
    """The steady clock, read when the device has done what it was given.

    So a unit's cost is that of its kernels, not of their launch, and never more than one unit is
    in flight: current CUDA does not preempt running kernels, so that bound is what a due action
    waits for.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def now_ns(self) -> int:
        torch.cuda.synchronize(self._device)
        return time.monotonic_ns()


def work_clock(device: torch.device) -> WorkClock:
    """Return the clock for an engine on this device."""
    return SynchronisedWorkClock(device) if device.type == 'cuda' else SteadyWorkClock()
