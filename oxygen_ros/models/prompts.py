# SPDX-License-Identifier: Apache-2.0
"""The text that a family's prompt is made of.

pi0.5: LeRobot `policies/pi05/processor_pi05.py`, openpi `models/tokenizer.py`. The state must be
normalised and unpadded; nothing is clipped, so that what lies below -1 becomes -1 and what lies
above 1 becomes 255.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from ..types import FloatArray

_EDGES = np.linspace(-1.0, 1.0, 257)[:-1]  # left edges of 256 bins


class PromptStyle(str, Enum):
    """How an instruction, and a state where it is text, become a prompt."""

    STATE = 'state'  # pi0.5: 'Task: {text}, State: {bins};\nAction: '
    NEWLINE = 'newline'  # pi0, SmolVLA: the text, ended by a newline
    CLEAN_NEWLINE = 'clean_newline'  # openpi's pi0: the same with the text cleaned


def state_bins(state: FloatArray) -> list[int]:
    """Return the bin of each normalised value [num_joints], -1 to 255."""
    return [int(index) - 1 for index in np.digitize(state, _EDGES)]


def clean(instruction: str) -> str:
    """Return the text without outer white space; underscores and newlines become spaces."""
    return instruction.strip().replace('_', ' ').replace('\n', ' ')


def build_prompt(style: PromptStyle, instruction: str, state: FloatArray | None) -> str:
    """Return the text of a prompt.

    :param state: normalised and unpadded [num_joints]; for STATE alone.
    :raises ValueError: STATE without a state.
    """
    if style is PromptStyle.STATE:
        if state is None:
            raise ValueError(
                'prompt: expected the state, which this model reads in its prompt, got none'
            )
        bins = ' '.join(map(str, state_bins(state)))
        return f'Task: {clean(instruction)}, State: {bins};\nAction: '
    if style is PromptStyle.CLEAN_NEWLINE:
        return clean(instruction) + '\n'
    return instruction if instruction.endswith('\n') else instruction + '\n'
