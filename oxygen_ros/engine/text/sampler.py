# SPDX-License-Identifier: Apache-2.0
"""Choosing the next token: greedy, or sampled by a number that depends on seed and step alone."""

from __future__ import annotations

import torch
from torch import Tensor

from ...types import SamplingParams
from ..keyed_random import keyed_uniform
from .constraint import TokenConstraint


def sample_token(
    logits: Tensor, params: SamplingParams, step: int, constraint: TokenConstraint | None
) -> int:
    """Choose one token.

    :param logits: [vocab_size] float32, of one request.
    :param step: tokens that the request has so far.
    """
    if constraint is not None:
        allowed = torch.from_numpy(constraint.allowed()).to(logits.device)
        logits = logits.masked_fill(~allowed, float('-inf'))
    if params.temperature == 0.0:
        return int(logits.argmax())
    probabilities = torch.softmax(logits.double() / params.temperature, dim=-1)
    values, order = probabilities.sort(descending=True, stable=True)
    cumulative = values.cumsum(0)
    # The smallest set whose mass reaches top_p; the first token is always in it.
    kept = int((cumulative - values < params.top_p).sum())
    point = keyed_uniform(params.seed, step) * float(cumulative[kept - 1])
    index = min(
        int(torch.searchsorted(cumulative[:kept].contiguous(), point, right=True)), kept - 1
    )
    return int(order[index])


def sample_tokens(
    logits: Tensor,
    params: list[SamplingParams],
    steps: list[int],
    constraints: list[TokenConstraint | None],
) -> list[int]:
    """Choose a token for each row of logits [num_rows, vocab_size]; one argmax for greedy ones."""
    plain = [p.temperature == 0.0 and c is None for p, c in zip(params, constraints)]
    greedy = logits.argmax(dim=-1).tolist() if any(plain) else []
    return [
        greedy[row]
        if plain[row]
        else sample_token(logits[row], params[row], steps[row], constraints[row])
        for row in range(len(params))
    ]
