# SPDX-License-Identifier: Apache-2.0
"""pi0.5: the state is text in the prompt, the flow time modulates every norm of the expert.

openpi `models/pi0.py` (pi05=True); LeRobot `policies/pi05/modeling_pi05.py`. Sequence of an action
pass: [cameras, prompt with state][action 0 .. horizon - 1], each one bidirectional block.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..engine.model import Attend
from .action_expert import ActionExpert
from .flow_vla import FlowPass, FlowVLA
from .weights import WeightReader


class Pi05Model(FlowVLA):
    """A `VLAModel` of the family pi0.5."""

    def _load_actions(self, reader: WeightReader) -> None:
        super()._load_actions(reader)
        config = self.config
        width = config.expert.width
        self._expert = ActionExpert(
            reader.scope('action_expert.'),
            reader,
            config.expert,
            config.num_layers,
            config.num_denoising_steps,
            config.min_period,
            config.max_period,
        )
        self._action_in = reader.take('action_in_proj.weight', width, config.padded_action_dim).t()
        self._action_in_bias = reader.take('action_in_proj.bias', width)

    def _expert_output(self, action: FlowPass, step: int, attend: Attend) -> Tensor:
        embedded = torch.addmm(
            self._action_in_bias, action.actions.to(self.dtype), self._action_in
        )
        return self._expert(embedded, step, action.rope, attend)
