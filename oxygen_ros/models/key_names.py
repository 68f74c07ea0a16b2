# SPDX-License-Identifier: Apache-2.0
"""One naming of a checkpoint's tensors, whoever wrote it.

LeRobot prefixes every name with `model.`, openpi does not. transformers moved `vision_model` and
the inner `model` of the language model between versions, and its own PI0 calls the experts `vlm`
and `dit`. Ours: `vision_tower.`, `multi_modal_projector.` or `connector.`, `language_model.`,
`lm_head.`, `action_expert.` and the projections at the top.
"""

from __future__ import annotations

from collections.abc import Iterable
import re

from .errors import CheckpointError

# In order; each is applied once.
_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r'^model\.vlm\.', 'paligemma.'),
        (r'^model\.dit\.', 'gemma_expert.'),
        (r'^embed_action_time\.', ''),
        (r'^(?:model\.)?(?:paligemma|vlm)_with_expert\.', ''),
        (r'^(?:paligemma|vlm)\.', ''),
        (r'^model\.', ''),
        (r'^vision_tower\.vision_model\.|^vision_model\.', 'vision_tower.'),
        (r'^language_model\.lm_head\.', 'lm_head.'),
        (r'^language_model\.model\.|^text_model\.', 'language_model.'),
        (r'^connector\.modality_projection\.proj\.', 'connector.'),
        (r'^(?:gemma_expert|lm_expert)\.(?:model\.)?', 'action_expert.'),
    )
)
# The action expert has no use for words; its copies of the tables hold 263 million numbers.
_UNUSED = frozenset(('action_expert.lm_head.weight', 'action_expert.embed_tokens.weight'))


def canonical_name(name: str) -> str:
    """Return our name of a tensor."""
    for pattern, replacement in _RULES:
        name = pattern.sub(replacement, name, count=1)
    return name


def canonical_names(names: Iterable[str]) -> dict[str, str]:
    """Return the file's name of each tensor by our name, the unused left out.

    :raises CheckpointError: two tensors of the file have one meaning.
    """
    found: dict[str, str] = {}
    for name in names:
        ours = canonical_name(name)
        if ours in _UNUSED:
            continue
        if ours in found:
            raise CheckpointError(f'tensors: expected one {ours}, got {found[ours]} and {name}')
        found[ours] = name
    return found
