# SPDX-License-Identifier: Apache-2.0
"""PaliGemma: images and text without actions, to prove the text head against transformers."""

from __future__ import annotations

from torch import Tensor

from ..engine.model import Attend
from .flow_vla import FlowPass, FlowVLA
from .weights import WeightReader


class PaliGemmaModel(FlowVLA):
    """The prefix and text half of pi0 and pi0.5."""

    def _load_actions(self, reader: WeightReader) -> None:
        """Load nothing: there is no expert."""

    def _expert_output(self, action: FlowPass, step: int, attend: Attend) -> Tensor:
        raise AssertionError('PaliGemma has no actions')
