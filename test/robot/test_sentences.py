# SPDX-License-Identifier: Apache-2.0
"""Streamed text is cut into sentences that can be spoken, and none of it is lost."""

from oxygen_ros.robot.dialogue import SentenceStream


def test_a_sentence_is_given_out_as_soon_as_it_is_whole():
    stream = SentenceStream()
    assert stream.push('I see a cup. It ') == ['I see a cup.']
    assert stream.push('is red') == []
    assert stream.push('! And') == ['It is red!']
    assert stream.finish() == ['And']
    assert stream.finish() == []


def test_text_without_an_end_is_cut_at_some_length():
    stream = SentenceStream()
    pieces = stream.push('x' * 1000) + stream.finish()
    assert ''.join(pieces) == 'x' * 1000
    assert max(map(len, pieces)) <= 240


def test_blank_lines_are_not_spoken():
    assert SentenceStream().push('\n\n ..\n') == ['.', '.']
