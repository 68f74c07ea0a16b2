# SPDX-License-Identifier: Apache-2.0
"""Equality with LeRobot and transformers on their own outputs, kept beside the checkout."""

from __future__ import annotations

from pathlib import Path

from parity_controls import CONTROLS, largest_effect
import pytest

from oxygen_ros.models.parity import check_folder
from oxygen_ros.models.parity_processing import check_processing

ACTING = ('pi05_L2_c3_h10', 'pi05_L3_c2_h50_absent', 'pi0_L2', 'smolvla_L4')


@pytest.mark.parametrize('backend', ['reference', 'sdpa'])
@pytest.mark.parametrize('name', [*ACTING, 'paligemma_text'])
def test_model_equals_its_original(shared: Path, name: str, backend: str) -> None:
    differences = check_folder(shared / 'data/golden' / name, backend)
    quantities = {item.quantity for item in differences}
    assert 'prefix_kv' in quantities
    assert {'actions', 'velocity', 'image_embed'} <= quantities or name == 'paligemma_text'
    assert {'text_logits', 'text_tokens'} <= quantities or name == 'smolvla_L4'
    assert [item for item in differences if not item.is_within] == []


@pytest.mark.parametrize('control', CONTROLS)
@pytest.mark.parametrize('name', ACTING)
def test_a_mistake_on_purpose_is_seen(shared: Path, name: str, control: str) -> None:
    assert largest_effect(shared / 'data/golden' / name, control) > 0.1


def test_processing_equals_its_originals(shared: Path) -> None:
    differences = check_processing(shared / 'data/golden/preprocessing')
    assert len(differences) == 7
    assert [item for item in differences if not item.is_within] == []
    assert {item.value for item in differences if item.quantity == 'resize_openpi'} == {0.0}
