# SPDX-License-Identifier: Apache-2.0
"""Prompts, statistics and images as the makers of the models have them, by hand."""

from __future__ import annotations

from pathlib import Path

from checkpoints import small_model
import numpy as np
from PIL import Image
import pytest

from oxygen_ros.models.errors import CheckpointError
from oxygen_ros.models.images import fit_image, ImageConvention, resize_with_pillow
from oxygen_ros.models.normalise import Normaliser, NormMode
from oxygen_ros.models.pipeline_file import Pipeline
from oxygen_ros.models.prompts import build_prompt, PromptStyle
from oxygen_ros.types import FloatArray

LOW, HIGH = np.float32([-1.0, 0.0, 2.0]), np.float32([1.0, 4.0, 2.0])  # the last one constant
STATISTICS = {'q01': LOW, 'q99': HIGH, 'mean': LOW, 'std': HIGH}


@pytest.mark.parametrize(
    'style, text, prompt',
    [
        (
            PromptStyle.STATE,
            ' pick_up\nthe cup ',
            'Task: pick up the cup, State: -1 0 128 255 255;\nAction: ',
        ),
        (PromptStyle.NEWLINE, ' pick_up', ' pick_up\n'),
        (PromptStyle.NEWLINE, 'pick\n', 'pick\n'),
        (PromptStyle.CLEAN_NEWLINE, ' pick_up ', 'pick up\n'),
    ],
)
def test_prompts(style: PromptStyle, text: str, prompt: str) -> None:
    state = np.float32([-1.0001, -1.0, 0.0, 1.0, 7.5])
    assert build_prompt(style, text, state) == prompt


def test_a_state_in_the_prompt_is_needed() -> None:
    with pytest.raises(ValueError, match='expected the state'):
        build_prompt(PromptStyle.STATE, 'pick', None)


@pytest.mark.parametrize(
    'mode, always_add, expected',
    [
        (NormMode.QUANTILES, False, [0.0, 0.0, -1.0]),
        (NormMode.QUANTILES, True, [0.0, 0.0, -1.0]),
        (NormMode.MEAN_STD, False, [1.0, 0.5, 0.0]),
        (NormMode.IDENTITY, False, [0.0, 2.0, 2.0]),
    ],
)
def test_normalising_and_back(mode: NormMode, always_add: bool, expected: list[float]) -> None:
    normaliser = Normaliser.load('x', mode, STATISTICS, 3, 1e-6, always_add)
    values: FloatArray = np.float32([0.0, 2.0, 2.0])
    normal = normaliser.normalise(values)
    np.testing.assert_allclose(normal, expected, atol=1e-5)
    np.testing.assert_allclose(normaliser.unnormalise(normal), values, atol=1e-5)
    assert normal.dtype == np.float32


def test_nothing_is_clipped() -> None:
    normaliser = Normaliser.load('x', NormMode.QUANTILES, STATISTICS, 3, 1e-8)
    assert normaliser.normalise(np.float32([3.0, 0.0, 0.0]))[0] == 3.0


@pytest.mark.parametrize(
    'convention, top, left',
    [
        (ImageConvention.LEROBOT_CENTRED, 8, 0),
        (ImageConvention.LEROBOT_TOP_LEFT, 17, 0),
        (ImageConvention.OPENPI, 8, 0),
    ],
)
def test_padding_lies_where_the_makers_put_it(
    convention: ImageConvention, top: int, left: int
) -> None:
    image = np.full((48, 64, 3), 255, np.uint8)
    square = fit_image(image[:-1], 64, convention)
    rows = np.flatnonzero((square[0] == 1.0).all(1).numpy())
    assert square.shape == (3, 64, 64) and (rows[0], rows[-1]) == (top, top + 46)
    assert set(np.unique(square)) == {-1.0, 1.0}


def test_pillow_makes_openpis_pixels() -> None:
    image = np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    ours = resize_with_pillow(image, 40)[5:35]
    theirs = Image.fromarray(image).resize((40, 30), Image.Resampling.BILINEAR)
    assert np.array_equal(ours, np.asarray(theirs))


def test_a_processed_state_must_have_all_joints() -> None:
    processing = small_model('pi05').processing
    assert processing is not None
    with pytest.raises(ValueError, match=r'state: expected shape \[7\], got \[6\]'):
        processing.state_values(np.zeros(6, np.float32))
    row = processing.state_row(np.full(7, 3.2, np.float32), 32)
    assert row[0, :7].tolist() == [1.0] * 7 and not row[0, 7:].any()
    assert np.allclose(processing.actions(np.ones((16, 32), np.float32)), 0.2)


def test_a_long_instruction_is_cut_and_never_padded() -> None:
    processing = small_model('pi0').processing
    assert processing is not None
    assert len(processing.prompt_tokens('x' * 500, None)) == 48
    assert processing.prompt_tokens('x', None) == [258, ord('x'), ord('\n')]


def test_a_pipeline_needs_steps(tmp_path: Path) -> None:
    path = tmp_path / 'policy_preprocessor.json'
    path.write_text('{"steps": 3}')
    with pytest.raises(CheckpointError, match='steps: expected a list, got 3'):
        Pipeline(path)
    path.write_text('{"steps": []}')
    with pytest.raises(CheckpointError, match='expected one of normalizer_processor, got 0'):
        Pipeline(path).find('normalizer_processor')
