# SPDX-License-Identifier: Apache-2.0
"""A KV cache manager without a model: sizes alone, and prefixes as short as can be."""

import torch

from oxygen_ros.engine.config import KVConfig
from oxygen_ros.engine.kv.manager import KVCacheManager
from oxygen_ros.engine.spec import ModelSpec, PrefixScope, StateIn
from oxygen_ros.types import Provenance

PREFIX_TOKENS = 100  # of the 128 that a slot has room for

SPEC = ModelSpec(
    name='bare',
    num_layers=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=4,
    width=8,
    vocab_size=32,
    tokens_per_image=64,
    num_cameras=2,
    action_horizon=16,
    action_dim=7,
    action_dt_s=0.02,
    action_suffix_tokens=17,
    action_causal=False,
    num_denoising_steps=2,
    max_action_prompt_tokens=31,
    max_prefix_prompt_tokens=0,
    prefix_scope=PrefixScope.OBSERVATION,
    state_in=StateIn.SUFFIX,
    eos_token_ids=(1,),
)


def make_manager(**config) -> KVCacheManager:
    """Return a manager on the CPU: slots of 8 blocks and runs of 3, of 16 tokens each."""
    return KVCacheManager(
        SPEC, KVConfig(**{'block_size': 16, **config}), torch.device('cpu'), torch.float32
    )


def provenance(observation_id):
    return Provenance(observation_id, 0, ('a',), (0,), 0, '')


def begin(manager, observation_id=1, now_ns=0, num_tokens=PREFIX_TOKENS):
    return manager.begin_prefix(
        num_tokens,
        num_visual_tokens=num_tokens,
        steady_ns=now_ns,
        provenance=provenance(observation_id),
    )


def build(manager, observation_id=1, now_ns=0):
    return manager.register_immutable_prefix(begin(manager, observation_id, now_ns))
