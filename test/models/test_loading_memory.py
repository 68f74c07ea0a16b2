# SPDX-License-Identifier: Apache-2.0
"""How much memory loading takes: the tensors once, and little more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
import subprocess
import sys

import pytest
import torch

from oxygen_ros.models.layers import LayerShape
from oxygen_ros.models.make_checkpoint import small_config, write_checkpoint
from oxygen_ros.models.tensor_shapes import num_parameters
from oxygen_ros.models.vla_config import Family

# Anonymous pages only: the mapped file's own pages belong to the system's cache.
_MEASURE = """
import sys, threading, time
from pathlib import Path
import torch
from oxygen_ros.models.checkpoint import load_checkpoint

def anonymous():
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith('RssAnon:'):
            return int(line.split()[1]) * 1024

torch.set_num_threads(1)
torch.ones(8, 8) @ torch.ones(8, 8)
before, peak, done = anonymous(), 0, False

def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.002)

thread = threading.Thread(target=watch)
thread.start()
model = load_checkpoint(sys.argv[1], dtype=getattr(torch, sys.argv[2]))
done = True
thread.join()
print(max(peak, anonymous()) - before)
"""


def _load(folder: Path, dtype: str) -> int:
    """Load in a process of its own; return the peak of its anonymous memory in bytes."""
    out = subprocess.run(
        [sys.executable, '-c', _MEASURE, str(folder), dtype],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(out.stdout)


def _write(folder: Path, width: int, layers: int, vocab: int) -> int:
    """Write a pi0.5 of about this width; return its number of parameters, all tables counted."""
    config = small_config(Family.PI05, ('a', 'b'), 7)
    heads = config.language.num_heads, config.language.num_kv_heads, config.language.head_dim
    config = replace(
        config,
        language=LayerShape(width, 4 * width, *heads),
        num_layers=layers,
        vocab_size=vocab,
        vision=replace(config.vision, output_width=width),
    )
    write_checkpoint(folder, config)
    return num_parameters(config) + vocab * width  # its two tables differ


@pytest.mark.slow
@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
def test_loading_a_gigabyte_takes_its_size_once(tmp_path: Path, dtype: str) -> None:
    num_bytes = 4 * _write(tmp_path / 'c', 1024, 16, 32_768)
    assert num_bytes > 1e9
    peak = _load(tmp_path / 'c', dtype)
    print(f'{dtype}: {peak / 1e6:.0f} MB for {num_bytes / 1e6:.0f} MB of float32')
    assert peak <= 1.15 * num_bytes * getattr(torch, dtype).itemsize / 4
