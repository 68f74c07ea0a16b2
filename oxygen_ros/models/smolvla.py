# SPDX-License-Identifier: Apache-2.0
"""SmolVLA: a state token of the language model, a causal expert that crosses to the prefix.

LeRobot `policies/smolvla/`. Sequence of an action pass: [cameras, prompt][state][action 0 ..
horizon - 1]. Cameras and prompt do not see the state, which runs through the language model once
a pass, privately; actions are causal.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from ..engine.model import ActionPass, Attend, PrefixKV
from .cross_expert import CrossExpert, CrossKV
from .flow_vla import FlowPass, FlowVLA
from .plain_expert import ActionTimeMLP
from .weights import WeightReader


class SmolVLAModel(FlowVLA):
    """A `VLAModel` of the family SmolVLA."""

    projector = 'connector.'
    has_unit_offset = False
    may_be_tied = False

    def _load_actions(self, reader: WeightReader) -> None:
        super()._load_actions(reader)
        config = self.config
        width = config.language.width
        self._embed = ActionTimeMLP(reader, config)
        self._expert = CrossExpert(
            reader.scope('action_expert.'), config.expert, config.num_layers
        )
        self._state_in = reader.take('state_proj.weight', width, config.padded_state_dim).t()
        self._state_bias = reader.take('state_proj.bias', width)
        self._rope_from_0 = self._rope.rows(
            torch.arange(config.action_horizon, device=self.device)
        )

    @torch.inference_mode()
    def prepare_prefix(self, prefix_kv: PrefixKV) -> object:
        """Project the prefix for the expert's odd layers."""
        return self._expert.project_prefix(prefix_kv)

    @torch.inference_mode()
    def prepare_action(self, action: ActionPass, shared: object, attend: Attend) -> None:
        """Run the state token through the language model, for its K/V alone."""
        assert isinstance(action, FlowPass) and action.state is not None
        action.shared = shared
        hidden = torch.addmm(self._state_bias, action.state, self._state_in)
        recorded = self._expert.recording(cast(CrossKV, shared), attend)
        positions = self._offsets[:1] + action.position
        for layer in range(self.config.num_layers):
            hidden = self._language.run_layer(layer, hidden, positions, recorded)

    def _expert_output(self, action: FlowPass, step: int, attend: Attend) -> Tensor:
        embedded = self._embed(action.actions.to(self.dtype), step)
        return self._expert(
            embedded, action.rope, self._rope_from_0, cast(CrossKV, action.shared), attend
        )
