# SPDX-License-Identifier: Apache-2.0
"""Memory and roofline times of a model on a board, before anything runs; all of it estimated.

KV memory is that of the engine's own pool for these settings. Times are floors: arithmetic over
the peak rate, or weights and K/V read once over the bandwidth, whichever is longer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
import math

import torch

from ..engine.config import KVConfig
from ..engine.kv.manager import KVCacheManager
from ..engine.spec import ModelSpec
from .boards import Board, MEMORY_SHARE
from .tensor_shapes import group_of, tensor_shapes
from .vla_config import Family, VLAConfig

# Assumed for a CUDA context with its libraries and their workspaces; not measured on each board.
RUNTIME_BYTES = 0.7e9
_QUANT_GROUP = 128  # weights that share one 2-byte scale


class WeightKind(str, Enum):
    """How weights are stored; the integers for products of the experts alone."""

    FP32 = 'fp32'
    BF16 = 'bf16'
    INT8 = 'int8'
    INT4 = 'int4'


_WEIGHT_BYTES = {
    WeightKind.FP32: 4.0,
    WeightKind.BF16: 2.0,
    WeightKind.INT8: 1.0 + 2.0 / _QUANT_GROUP,
    WeightKind.INT4: 0.5 + 2.0 / _QUANT_GROUP,
}


@dataclass(frozen=True, slots=True)
class Workload:
    """What runs at one time.

    :raises ValueError: names the field, what was expected and what came.
    """

    num_cameras: int = 3
    prompt_tokens: int = 48  # in the prefix
    num_text_tasks: int = 2
    text_tokens: int = 128  # of each, prompt and answer
    live_prefixes: int = 4
    tick_s: float = 0.02
    action_dt_s: float = 0.02

    def __post_init__(self) -> None:
        for name, least in (
            ('num_cameras', 1),
            ('prompt_tokens', 0),
            ('num_text_tasks', 0),
            ('text_tokens', 1),
            ('live_prefixes', 2),
        ):
            if getattr(self, name) < least:
                raise ValueError(f'{name}: expected at least {least}, got {getattr(self, name)}')
        for name in ('tick_s', 'action_dt_s'):
            if not 0.0 < getattr(self, name) < float('inf'):
                raise ValueError(f'{name}: expected above 0, got {getattr(self, name)}')


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes by use."""

    weights: float
    kv_shared: float
    kv_isolated: float  # the same load with a prefix for each task
    workspace: float
    limit: float  # what may be used

    @property
    def total(self) -> float:
        """Sum with a shared prefix."""
        return self.weights + self.kv_shared + self.workspace

    @property
    def fits(self) -> bool:
        """Whether the sum is within the limit."""
        return self.total <= self.limit


@dataclass(frozen=True, slots=True)
class TimePlan:
    """Seconds by kind of work, at the least."""

    vision: float  # of all cameras
    prefill: float
    denoise_step: float
    action_pass: float
    text_step: float  # one token for all text tasks
    worst_wait: float  # of a due action, behind the longest slice

    def mode(self, workload: Workload, horizon: int) -> str:
        """Return the action mode that keeps up: per_tick, chunked, or that none does."""
        if self.action_pass + self.worst_wait <= workload.tick_s:
            return 'per_tick'
        frame = self.vision + self.prefill + self.action_pass
        return 'chunked' if frame <= horizon * workload.action_dt_s else 'too slow for its chunks'


class Plan:
    """One model, one workload, one board."""

    def __init__(
        self, config: VLAConfig, workload: Workload, board: Board, weights: WeightKind
    ) -> None:
        self.config, self.workload, self.board, self.kind = config, workload, board, weights
        self.numbers = _count(config)
        self.num_prefix = workload.num_cameras * config.vision.num_tokens + workload.prompt_tokens
        self.kv_element_bytes = 4 if weights is WeightKind.FP32 else 2
        self.memory = self._memory()
        self.times = self._times()

    @property
    def num_parameters(self) -> int:
        """Parameters of the model, modulations included."""
        return self.numbers.total()

    def _bytes(self, group: str) -> float:
        """Bytes that one part of the model is held in."""
        quantised = group in ('language', 'action')
        kind = self.kind if quantised or self.kind is WeightKind.FP32 else WeightKind.BF16
        return self.numbers[group] * _WEIGHT_BYTES[kind]

    def _spec(self) -> ModelSpec:
        spec = self.config.spec(self.workload.action_dt_s, ())
        # As for this workload: a slot holds its prefix and no more.
        return ModelSpec(
            **{
                **{name: getattr(spec, name) for name in ModelSpec.__dataclass_fields__},
                'num_cameras': self.workload.num_cameras,
                'max_prefix_prompt_tokens': self.workload.prompt_tokens,
            }
        )

    def _kv_bytes(self, num_slots: int) -> float:
        """Return the bytes of the engine's pool with so many prefix slots."""
        block_size = KVConfig().block_size
        text_blocks = self.workload.num_text_tasks * -(-self.workload.text_tokens // block_size)
        dtype = torch.float32 if self.kv_element_bytes == 4 else torch.bfloat16
        config = KVConfig(max_live_prefixes=num_slots, num_text_blocks=max(text_blocks, 1))
        manager = KVCacheManager(self._spec(), config, torch.device('meta'), dtype)
        return float(manager.cache.data.nbytes)

    def _memory(self) -> MemoryPlan:
        live, tasks = self.workload.live_prefixes, 1 + self.workload.num_text_tasks
        weights = sum(self._bytes(group) for group in self.numbers if group != 'modulation')
        weights += self._modulation_bytes()
        return MemoryPlan(
            weights,
            self._kv_bytes(live),
            self._kv_bytes(live * tasks),
            self._activations() + RUNTIME_BYTES,
            self.board.memory_gb * 1e9 * MEMORY_SHARE,
        )

    def _modulation_bytes(self) -> float:
        """Return the bytes of adaRMS vectors, kept for each step in place of their products."""
        if not self.numbers['modulation']:
            return 0.0
        config = self.config
        norms = 2 * config.num_layers + 1
        return config.num_denoising_steps * norms * 3.0 * config.expert.width * 4

    def _activations(self) -> float:
        """Return the bytes of the widest moment: the MLP of a prefill, or logits."""
        shape, vision = self.config.language, self.config.vision
        size = self.kv_element_bytes
        widths = 3 * shape.mlp_width + 4 * shape.width
        prefill = self.num_prefix * widths * size
        tower = vision.num_patches * (vision.mlp_width * 2 + 6 * vision.width) * size
        logits = max(self.workload.num_text_tasks, 1) * self.config.vocab_size * 4 * 2
        return float(max(prefill, tower, logits))

    def _times(self) -> TimePlan:
        config, work, board = self.config, self.workload, self.board
        shape, layers, prefix = config.language, config.num_layers, self.num_prefix
        query_width = shape.num_heads * shape.head_dim
        kv_bytes = config.spec(1.0, ()).kv_bytes_per_token(self.kv_element_bytes)
        patches, tower = config.vision.num_patches, config.vision
        per_camera = board.seconds(
            2.0 * self.numbers['vision'] * patches
            + 4.0 * patches**2 * tower.width * tower.num_layers,
            self._bytes('vision'),
        )
        prefill = board.seconds(
            2.0 * self.numbers['language'] * prefix + 4.0 * prefix**2 * query_width * layers,
            self._bytes('language'),
        )
        suffix = config.action_horizon + config.num_head_tokens
        denoise = board.seconds(
            2.0 * self.numbers['action'] * suffix
            + 4.0 * suffix * (prefix + suffix) * query_width * layers,
            self._bytes('action') + prefix * kv_bytes,
        )
        rows = max(work.num_text_tasks, 1)
        context = prefix + work.text_tokens
        layers_step = board.seconds(
            2.0 * self.numbers['language'] * rows + 4.0 * rows * context * query_width * layers,
            self._bytes('language') + (prefix + rows * work.text_tokens) * kv_bytes,
        )
        head = board.seconds(2.0 * self.numbers['words'] * rows, self._bytes('words'))
        wait = max(per_camera, prefill / layers, layers_step / layers, head)
        return TimePlan(
            per_camera * work.num_cameras,
            prefill,
            denoise,
            denoise * config.num_denoising_steps,
            layers_step + head,
            wait,
        )


def _count(config: VLAConfig) -> Counter[str]:
    """Count numbers by part; `modulation`: adaRMS products, needed at load alone."""
    counts: Counter[str] = Counter()
    is_tied = config.family is not Family.SMOLVLA
    for name, shape in tensor_shapes(config, is_tied).items():
        is_modulation = name.startswith('action_expert.') and '.dense.' in name
        counts['modulation' if is_modulation else group_of(name)] += math.prod(shape)
    return counts
