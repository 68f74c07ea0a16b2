# SPDX-License-Identifier: Apache-2.0
"""The stages of one chunk, as `oxygen bench stages` measures and writes them."""

from __future__ import annotations

import json
from pathlib import Path

from checkpoints import small_folder, small_model
import pytest

from oxygen_ros.cli import main


def test_each_stage_has_its_time_and_its_floor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / 'figures.json'
    assert (
        main(['bench', 'stages', '--checkpoint', str(small_folder('pi05')), '--json', str(path)])
        == 0
    )
    figures = json.loads(path.read_text())
    model = small_model('pi05')
    assert figures['checksum'] == model.checksum
    assert figures['steps'] == model.spec.num_denoising_steps == 10
    stages = figures['stages']
    assert list(stages) == ['ingest', 'vision', 'prefill', 'denoise']
    for name, stage in stages.items():
        assert stage['ms'] > stage['floor_ms'] >= 0.0
        assert stage['floor_ms'] == pytest.approx(stage['flop'] / figures['gemm_gflops'] * 1e-6)
        assert (stage['flop'] > 0) is (name != 'ingest')
    assert figures['sum']['ms'] == pytest.approx(sum(stage['ms'] for stage in stages.values()))
    assert '10 denoising steps' in capsys.readouterr().out
