# SPDX-License-Identifier: Apache-2.0
"""Any choice of allowed tokens ends in a scene graph that can be read, within the token limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
import time

import numpy as np
from numpy.typing import NDArray
import pytest

from oxygen_ros.memory.scene.scene_format import SceneFormat
from oxygen_ros.memory.scene.scene_grammar import SceneGrammar
from oxygen_ros.memory.scene.scene_text import parse_scene
from oxygen_ros.memory.scene.token_constraint import ConstrainedVocabulary, Grammar
from oxygen_ros.memory.scene.vocabulary import load_vocabulary, SceneVocabulary

EOS = 257


def decode(grammar: SceneGrammar, choose: Callable[[NDArray[np.bool_]], int]) -> bytes:
    """Decode one text by a choice among the allowed tokens, with the limit asserted."""
    constraint, tokens = grammar.constraint(), list[int]()
    while not constraint.is_complete:
        assert len(tokens) < grammar.max_tokens
        tokens.append(choose(constraint.allowed()))
        constraint.advance(tokens[-1])
    assert list(np.flatnonzero(constraint.allowed())) == [EOS]
    return bytes(tokens)


def test_a_thousand_random_models_end_in_valid_graphs(
    byte_vocabulary: ConstrainedVocabulary,
) -> None:
    scene_format = SceneFormat(('front', 'left'), 4, 4)
    grammar = SceneGrammar(scene_format, byte_vocabulary, scene_format.max_tokens)
    rng = np.random.default_rng(1)
    num_objects = num_relations = 0
    for _ in range(1_000):
        # Each model has its own taste, so that long and short texts and all words come up.
        logits = rng.normal(size=264) * rng.uniform(0.0, 4.0)
        noise = rng.gumbel(size=(grammar.max_tokens, 264)) + logits
        steps = iter(noise)

        def sample(allowed: NDArray[np.bool_], steps: Iterator[np.ndarray] = steps) -> int:
            return int(np.where(allowed, next(steps), -np.inf).argmax())

        scene = parse_scene(decode(grammar, sample).decode(), scene_format)
        num_objects += len(scene.objects)
        num_relations += len(scene.relations)
    assert num_objects > 1_000
    assert num_relations > 500


def test_the_longest_text_has_exactly_the_stated_length(
    byte_vocabulary: ConstrainedVocabulary,
) -> None:
    words = SceneVocabulary(
        ('cup', 'longest_label'), {'a': ('x', 'long'), 'b': ('longer',)}, ('on', 'left_of')
    )
    for num_objects, num_relations, num_attributes in (
        (1, 3, 0),
        (2, 0, 1),
        (11, 3, 2),
        (3, 2, 8),
    ):
        scene_format = SceneFormat(('front',), num_objects, num_relations, num_attributes, words)
        grammar = SceneGrammar(scene_format, byte_vocabulary, scene_format.max_tokens)
        attributes = {0: '', 1: ' longer', 2: ' long longer'}[min(num_attributes, 2)]
        ids = f'{num_objects - 1} left_of {max(num_objects - 2, 0)}\n'
        text = (
            f'longest_label{attributes} 0 0vgv\n' * num_objects
            + ids * (num_relations if num_objects > 1 else 0)
            + '.'
        )
        assert len(text) == scene_format.max_tokens
        left = iter(text.encode())

        def dictate(allowed: NDArray[np.bool_], left: Iterator[int] = left) -> int:
            return next(left)

        assert decode(grammar, dictate).decode() == text


@pytest.mark.parametrize(
    'text',
    [
        'CUP 0 0000\n.',
        'cup  0 0000\n.',
        'cup red blue 0 0000\n.',
        'cup wooden red 0 0000\n.',
        'cup 3 0000\n.',
        'cup 0 1000\n.',
        'cup 0 0010\n.',
        'cup 0 00w0\n.',
        'cup 0 000\n.',
        'cup 0 0000\n0 on 0\n.',
        'cup 0 0000\n0 on 1\n.',
        'cup 0 0000\ncup 0 0000\n0 at 1\n.',
        'cup 0 0000\ncup 0 0000\n0 on 1\ncup 0 0000\n.',
        'cup 0 0000\n..',
        'cup 0 0000 .',
        'cup 0 0000\n' * 9 + '.',
        'cup 0 0000\n' * 2 + '0 on 1\n' * 9 + '.',
    ],
)
def test_what_cannot_be_read_cannot_be_written(
    text: str, scene_grammar: SceneGrammar, scene_format: SceneFormat
) -> None:
    with pytest.raises(ValueError, match=r'line|expected'):
        parse_scene(text, scene_format)
    constraint = scene_grammar.constraint()
    with pytest.raises(ValueError, match='token: expected'):
        for token in text.encode():
            constraint.advance(token)


def test_a_text_is_not_complete_before_its_end(scene_grammar: SceneGrammar) -> None:
    constraint = scene_grammar.constraint()
    for token in b'cup red 0 0vgv\n.':
        assert not constraint.is_complete
        assert not constraint.allowed()[EOS]
        constraint.advance(token)
    assert constraint.is_complete


def test_constraints_of_one_grammar_do_not_touch_each_other(scene_grammar: SceneGrammar) -> None:
    one, other = scene_grammar.constraint(), scene_grammar.constraint()
    before = other.allowed()
    one.advance(ord('.'))
    assert one.is_complete
    assert np.array_equal(other.allowed(), before)


def test_longer_tokens_are_allowed_where_their_bytes_are(scene_format: SceneFormat) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b'<begin>', None, b'cup ', b'cup x', b'up']
    vocabulary = ConstrainedVocabulary(tokens, EOS)
    constraint = SceneGrammar(scene_format, vocabulary, 512).constraint()
    assert constraint.allowed()[[256, 257, 258, 259, 260]].tolist() == [
        False,
        False,
        True,
        False,
        False,
    ]
    constraint.advance(ord('c'))
    assert constraint.allowed()[260]


def test_a_step_takes_a_fraction_of_a_millisecond(scene_grammar: SceneGrammar) -> None:
    rng, steps_ns = np.random.default_rng(2), list[int]()
    for _ in range(100):
        constraint = scene_grammar.constraint()
        while not constraint.is_complete:
            started_ns = time.thread_time_ns()  # other programs take none of it
            allowed = constraint.allowed()
            steps_ns.append(time.thread_time_ns() - started_ns)
            constraint.advance(int(rng.choice(np.flatnonzero(allowed))))
    assert np.median(steps_ns) < 200_000  # measured: 16 us in the middle, 80 us at p99


def test_a_limit_below_the_longest_text_is_refused_with_both_numbers(
    scene_format: SceneFormat, byte_vocabulary: ConstrainedVocabulary
) -> None:
    needed = scene_format.max_tokens
    with pytest.raises(ValueError, match=f'at least {needed}.*got {needed - 1}'):
        SceneGrammar(scene_format, byte_vocabulary, needed - 1)


@pytest.mark.parametrize(
    ('kwargs', 'field'),
    [
        ({'cameras': ()}, 'cameras'),
        ({'cameras': ('a', 'a')}, 'cameras'),
        ({'max_objects': 0}, 'memory.max_new_objects'),
        ({'max_objects': 65}, 'memory.max_new_objects'),
        ({'max_relations': -1}, 'memory.max_new_relations'),
        ({'max_attributes': 9}, 'max_attributes'),
    ],
)
def test_a_wrong_format_names_its_field(kwargs: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=f'{field}: expected'):
        SceneFormat(**{'cameras': ('front',), **kwargs})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    'words',
    [('Cup',), ('cup ',), ('a|b',), ('a' * 25,), ('cup', 'cup'), (), ('0cup',), ('c\n',), 'cup'],
)
def test_a_word_that_could_break_the_grammar_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match='labels: expected'):
        SceneVocabulary(labels=words)
    with pytest.raises(ValueError, match=r'attributes\.colour: expected'):
        SceneVocabulary(attributes={'colour': words})


def test_an_attribute_belongs_to_one_group() -> None:
    with pytest.raises(ValueError, match="attributes: expected each word once, got 'red' twice"):
        SceneVocabulary(attributes={'colour': ('red',), 'mood': ('red',)})


def test_a_vocabulary_is_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / 'words.yaml'
    path.write_text('labels: [cup]\nattributes: {colour: [red]}\n')
    vocabulary = load_vocabulary(path)
    assert vocabulary.labels == ('cup',)
    assert vocabulary.group_of('red') == 'colour'
    assert vocabulary.predicates == SceneVocabulary().predicates
    for wrong in ('label: [cup]', 'labels: [CUP]', '[', 'labels: 3', '', 'attributes: [red]'):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=r'words\.yaml'):
            load_vocabulary(path)
    with pytest.raises(ValueError, match=r'none\.yaml'):
        load_vocabulary(tmp_path / 'none.yaml')


@pytest.mark.parametrize(
    ('tokens', 'eos', 'size', 'message'),
    [
        ([b'a', None], 1, None, 'token for each byte'),
        ([bytes([byte]) for byte in range(256)], 0, None, 'eos_token'),
        ([*[bytes([byte]) for byte in range(256)], None], 256, 10, 'vocab_size'),
    ],
)
def test_a_wrong_vocabulary_is_refused(
    tokens: list[bytes | None], eos: int, size: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ConstrainedVocabulary(tokens, eos, size)


def test_a_grammar_that_does_not_compile_says_so(byte_vocabulary: ConstrainedVocabulary) -> None:
    with pytest.raises(ValueError, match='grammar:'):
        Grammar('start: missing', byte_vocabulary)
