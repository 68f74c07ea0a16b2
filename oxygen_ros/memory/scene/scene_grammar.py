# SPDX-License-Identifier: Apache-2.0
"""The scene format as a grammar over a model's tokens."""

from __future__ import annotations

from .scene_format import SceneFormat
from .token_constraint import ConstrainedVocabulary, Grammar, TokenConstraint


class SceneGrammar:
    """The scene format compiled for a model's tokens: one constraint for each request.

    Compile once, at configure; `constraint` may be called from any one thread at a time.

    :param token_limit: the most tokens that a request may decode.
    :raises ValueError: the longest text does not fit the token limit.
    """

    def __init__(
        self, scene_format: SceneFormat, vocabulary: ConstrainedVocabulary, token_limit: int
    ) -> None:
        if scene_format.max_tokens > token_limit:
            raise ValueError(
                f'token_limit: expected at least {scene_format.max_tokens}, the longest scene '
                f'graph of {scene_format.max_objects} objects and {scene_format.max_relations} '
                f'relations, got {token_limit}'
            )
        self.format = scene_format
        self.max_tokens = scene_format.max_tokens
        self._grammar = Grammar(scene_format.lark(), vocabulary)

    def constraint(self) -> TokenConstraint:
        """Return a constraint at the start of a scene graph."""
        return self._grammar.constraint()
