# SPDX-License-Identifier: Apache-2.0
"""pi0: a state token before the actions, the flow time joined to the actions.

openpi `models/pi0.py` (pi05=False); LeRobot `policies/pi0/modeling_pi0.py`. Sequence of an action
pass: [cameras, prompt][state][action 0 .. horizon - 1]. No block sees a later one, so the state
token is the same in all steps and runs once a pass.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..engine.model import ActionPass, Attend
from .flow_vla import FlowPass, FlowVLA
from .plain_expert import ActionTimeMLP, PlainExpert
from .weights import WeightReader


class Pi0Model(FlowVLA):
    """A `VLAModel` of the family pi0."""

    def _load_actions(self, reader: WeightReader) -> None:
        super()._load_actions(reader)
        config = self.config
        width = config.expert.width
        self._embed = ActionTimeMLP(reader, config)
        self._expert = PlainExpert(
            reader.scope('action_expert.'), config.expert, config.num_layers
        )
        self._state_in = reader.take('state_proj.weight', width, config.padded_state_dim).t()
        self._state_bias = reader.take('state_proj.bias', width)

    @torch.inference_mode()
    def prepare_action(self, action: ActionPass, shared: object, attend: Attend) -> None:
        """Run the state token through the expert, for its K/V alone."""
        assert isinstance(action, FlowPass) and action.state is not None
        token = torch.addmm(self._state_bias, action.state, self._state_in)
        self._expert(token, self._rope.rows(self._offsets[:1] + action.position), attend)

    def _expert_output(self, action: FlowPass, step: int, attend: Attend) -> Tensor:
        return self._expert(self._embed(action.actions.to(self.dtype), step), action.rope, attend)
