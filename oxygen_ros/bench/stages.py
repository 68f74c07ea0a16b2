# SPDX-License-Identifier: Apache-2.0
"""One action chunk of a checkpoint, stage by stage, beside its arithmetic floor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import statistics
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import OxygenError
from ..models.checkpoint import load_checkpoint
from ..models.flow_vla import FlowVLA
from ..models.paged_sequence import PagedSequence
from ..types import CameraFrame
from .machine import count_flop, machine_rates

_ROUNDS = 15


class _Chunk:
    """Images to actions on paged attention; each stage leaves what the next one needs."""

    def __init__(self, model: FlowVLA) -> None:
        self.model = model
        spec = model.spec
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (spec.num_cameras, 480, 640, 3), dtype=np.uint8)
        self.frames = [
            CameraFrame(camera, 1, 1, image)
            for camera, image in zip(model.config.cameras, images, strict=True)
        ]
        state = np.zeros(model.config.state_dim, np.float32)
        self.tokens = torch.tensor(model.prefix_prompt('pick up the red cup', state))
        processing = model.processing
        self.state = (
            processing.state_row(state, model.config.padded_state_dim)
            if processing is not None and spec.action_head_tokens
            else None
        )
        self.noise = torch.randn(model.noise_shape(), generator=torch.Generator().manual_seed(0))
        self.sequence = PagedSequence(
            model, 'sdpa', spec.max_prefix_tokens, spec.action_suffix_tokens
        )
        self.images: list[Tensor] = []
        self.features: list[Tensor] = []

    def ingest(self) -> None:
        """Camera images to the tower's input."""
        self.images = [self.model.preprocess(frame) for frame in self.frames]

    def vision(self) -> None:
        """All cameras through the tower."""
        self.features = [self.model.encode_image(image) for image in self.images]

    def prefill(self) -> None:
        """Features and prompt to the K/V of the prefix."""
        self.sequence.prefill_features(self.features, self.tokens)

    def denoise(self) -> None:
        """All steps of a pass."""
        self.sequence.act(self.noise, self.state)


def run(checkpoint: Path | None = None) -> dict[str, Any]:
    """Measure and return the figures of a checkpoint.

    :raises OxygenError: none is given.
    """
    if checkpoint is None:
        raise OxygenError('stages: expected --checkpoint DIR, got none')
    return measure(checkpoint)


def measure(folder: Path) -> dict[str, Any]:
    """Measure on one thread, print, and return the figures."""
    from rich.console import Console
    from rich.table import Table

    torch.set_num_threads(1)
    model = load_checkpoint(folder)
    chunk = _Chunk(model)
    gflop_s = machine_rates()['gemm_gflops']
    stages = {}
    for name in ('ingest', 'vision', 'prefill', 'denoise'):
        stage = getattr(chunk, name)
        flop = count_flop(stage)
        stages[name] = {'flop': flop, 'floor_ms': flop / gflop_s * 1e-6, 'ms': _median_ms(stage)}
    total = {
        key: sum(stage[key] for stage in stages.values()) for key in ('flop', 'floor_ms', 'ms')
    }
    steps = model.spec.num_denoising_steps
    table = Table(title=f'{folder.name}: one chunk from images, one thread, median of {_ROUNDS}')
    for column in ('stage', 'ms', 'MFLOP', 'floor ms', 'times the floor'):
        table.add_column(column, justify='left' if column == 'stage' else 'right')
    names = {
        'ingest': f'ingest, {model.spec.num_cameras} cameras of 640x480',
        'vision': 'vision',
        'prefill': f'prefill, {chunk.sequence.num_prefix} tokens',
        'denoise': f'{steps} denoising steps',
    }
    for name, stage in [*stages.items(), ('sum', total)]:
        ratio = f'{stage["ms"] / stage["floor_ms"]:.1f}' if stage['flop'] else ''
        table.add_row(
            names.get(name, name),
            f'{stage["ms"]:.2f}',
            f'{stage["flop"] * 1e-6:.1f}',
            f'{stage["floor_ms"]:.2f}',
            ratio,
        )
    Console().print(table)
    print(f'floor: FLOP over {gflop_s:.0f} GFLOP/s, this machine in a large product, one thread')
    return {
        'checkpoint': str(folder),
        'checksum': model.checksum,
        'gemm_gflops': gflop_s,
        'stages': stages,
        'sum': total,
        'steps': steps,
    }


def _median_ms(stage: Callable[[], None]) -> float:
    times = []
    with torch.inference_mode():
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            stage()
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3
