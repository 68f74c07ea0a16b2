# SPDX-License-Identifier: Apache-2.0
"""Between a robot and a model: images, prompt, state and actions in the model's terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..types import FloatArray
from .images import fit_image, ImageConvention
from .normalise import Normaliser
from .prompts import build_prompt, PromptStyle
from .text_tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True)
class Processing:
    """A checkpoint's own pre- and post-processing."""

    images: ImageConvention
    prompt: PromptStyle
    max_prompt_tokens: int
    state: Normaliser
    action: Normaliser
    tokenizer: TextTokenizer
    renames: Mapping[str, str] = field(default_factory=dict)  # a dataset's keys to the model's

    def image(self, image: np.typing.NDArray[np.uint8], size_px: int) -> Tensor:
        """[height, width, 3] uint8 -> [3, size_px, size_px] float32 in [-1, 1]."""
        return fit_image(image, size_px, self.images)

    def prompt_tokens(self, instruction: str, state: FloatArray | None) -> list[int]:
        """Tokens of a prompt, unpadded; what exceeds the model's limit is cut off.

        :param state: measured joints [state_dim] in SI units.
        """
        normalised = None if state is None else self.state_values(state)
        text = build_prompt(self.prompt, instruction, normalised)
        return self.tokenizer.encode(text)[: self.max_prompt_tokens]

    def state_values(self, state: FloatArray) -> FloatArray:
        """Normalise measured joints [state_dim].

        :raises ValueError: another number of joints.
        """
        values = np.asarray(state, np.float32)
        if values.shape != self.state.low.shape:
            raise ValueError(
                f'state: expected shape {list(self.state.low.shape)}, got {list(values.shape)}'
            )
        return self.state.normalise(values)

    def state_row(self, state: FloatArray, padded_dim: int) -> Tensor:
        """Normalise and pad with zeros: [state_dim] -> [1, padded_dim] float32."""
        row = torch.zeros(1, padded_dim)
        values = self.state_values(state)
        row[0, : len(values)] = torch.from_numpy(values)
        return row

    def actions(self, actions: FloatArray) -> FloatArray:
        """Cut off the padding and un-normalise: [horizon, padded] -> [horizon, action_dim]."""
        return self.action.unnormalise(actions[:, : self.action.low.shape[0]]).astype(np.float32)
