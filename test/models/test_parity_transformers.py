# SPDX-License-Identifier: Apache-2.0
"""Equality with transformers itself, where it is installed, on random small models."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxygen_ros.models.parity import check_folder, TOLERANCES

pytest.importorskip('transformers', reason='needs transformers (the extra `test`), absent here')


@pytest.mark.parametrize('seed', [1, 2])
def test_pi0_actions(tmp_path: Path, seed: int) -> None:
    from originals import write_pi0

    write_pi0(tmp_path, seed, layers=3, exact_time=False)
    # transformers embeds the flow time in float32, which alone moves a velocity by 1e-4
    tolerances = {**TOLERANCES, 'actions': 1e-4, 'velocity': 3e-4}
    assert [
        item for item in check_folder(tmp_path, tolerances=tolerances) if not item.is_within
    ] == []
    write_pi0(tmp_path, seed, layers=3)
    assert [item for item in check_folder(tmp_path) if item.value > 1e-5] == []


@pytest.mark.parametrize('seed', [1, 2])
def test_pi05_actions_around_transformers_modules(tmp_path: Path, seed: int) -> None:
    from originals import write_pi05

    write_pi05(tmp_path, seed, layers=3)
    assert [item for item in check_folder(tmp_path) if item.value > 1e-5] == []


@pytest.mark.parametrize('seed', [1, 2])
def test_paligemma_logits(tmp_path: Path, seed: int) -> None:
    from originals import write_paligemma

    write_paligemma(tmp_path, seed)
    differences = {item.quantity: item.value for item in check_folder(tmp_path)}
    assert differences['text_logits'] <= 1e-5
    assert differences['text_tokens'] == 0.0
