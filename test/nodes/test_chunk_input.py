# SPDX-License-Identifier: Apache-2.0
"""Chunks from another process: what a message holds, what is refused, and a restarted engine."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='chunks come in ROS messages')

from oxygen_ros.control import ChunkBuffer
from oxygen_ros.nodes.actuation.chunk_input import chunk_of, ChunkInput, ChunkMessageError
from oxygen_ros.nodes.messages import make_message
from oxygen_ros.robot.messages import chunk_message
from oxygen_ros.types import ActionChunk, Provenance

JOINTS = ['shoulder', 'elbow']
MS = 1_000_000
ROS_OFFSET_NS = 1_700_000_000_123_456_789


def make_chunk(chunk_id=1, epoch=1, started_ns=None, position=0.5):
    """A chunk of 10 steps whose pass began 5 ms after its state and took 4 ms."""
    if started_ns is None:
        started_ns = time.monotonic_ns() - 10 * MS
    start_ns = started_ns - 5 * MS
    observation_ns = start_ns - 33 * MS
    return ActionChunk(
        chunk_id,
        epoch,
        np.full((10, 2), position, np.float32),
        start_ns,
        start_ns + ROS_OFFSET_NS,
        20 * MS,
        observation_ns,
        started_ns,
        started_ns + 4 * MS,
        Provenance(
            7,
            observation_ns + ROS_OFFSET_NS,
            ('front',),
            (observation_ns + ROS_OFFSET_NS,),
            start_ns + ROS_OFFSET_NS,
            'sum',
        ),
    )


def make_msg(**chunk):
    return chunk_message(make_message, make_chunk(**chunk), JOINTS)


class Feed:
    """An input, its buffer, and ticks as far as the buffer sees them."""

    def __init__(self):
        self.buffer = ChunkBuffer(2)
        self.input = ChunkInput(JOINTS, self.buffer)
        self.now_ns = time.monotonic_ns() - 1000 * MS

    def offer(self, **chunk):
        """Offer a chunk whose pass has just ended; return the chunks of the next tick."""
        self.now_ns += 20 * MS
        self.input.offer(make_msg(started_ns=self.now_ns - 5 * MS, **chunk))
        return self.tick()

    def tick(self):
        sample = self.buffer.sample(self.now_ns)
        return None if sample is None else sample.chunk_ids


def test_a_chunk_survives_its_message():
    chunk = make_chunk()
    again = chunk_of(chunk_message(make_message, chunk, JOINTS), JOINTS)
    assert np.array_equal(again.values, chunk.values)
    for name in ActionChunk.__dataclass_fields__:
        if name != 'values':
            assert getattr(again, name) == getattr(chunk, name), name


@pytest.mark.parametrize(
    ('field', 'value', 'named'),
    [
        ('action_horizon', 11, 'values: expected 11 times 2'),
        ('action_horizon', 0, 'at least one step'),
        ('action_dim', 3, 'action_dim: expected 2, got 3'),
        ('values', [0.0] * 19, 'values: expected 10 times 2'),
        ('joint_names', ['elbow', 'shoulder'], 'joint_names: expected'),
        ('joint_names', [], 'joint_names: expected'),
        ('action_dt_s', 0.0, 'action_dt_s: expected 1e-06 to 60 s, got 0'),
        ('action_dt_s', float('nan'), 'action_dt_s'),
        ('pass_s', -0.1, 'pass_s'),
        ('inference_delay_s', float('inf'), 'inference_delay_s'),
    ],
)
def test_a_message_that_contradicts_itself_is_refused_and_counted(field, value, named):
    message = make_msg()
    setattr(message, field, value)
    with pytest.raises(ChunkMessageError, match=named):
        chunk_of(message, JOINTS)
    feed = Feed()
    feed.input.offer(message)
    assert feed.tick() is None
    assert feed.input.counts.refused == 1 and named in feed.input.counts.newest_problem


def test_another_machines_clock_is_refused_and_spoils_nothing():
    feed = Feed()
    feed.input.offer(make_msg(started_ns=time.monotonic_ns() + 3600 * 1000 * MS))
    assert 'steady clock' in feed.input.counts.newest_problem
    assert feed.offer() == (1,)


def test_broken_values_reach_the_buffer_which_holds_for_them():
    feed = Feed()
    feed.input.offer(make_msg(started_ns=feed.now_ns - 5 * MS, position=float('nan')))
    sample = feed.buffer.sample(feed.now_ns)
    assert sample is not None and sample.fault == 'refused_nonfinite'


@pytest.mark.parametrize('epoch', [1, 2, 5], ids=['older epoch', 'same epoch', 'newer epoch'])
def test_a_restarted_engine_is_noticed_and_played_from_its_second_chunk_on(epoch):
    feed = Feed()
    assert feed.offer(chunk_id=40, epoch=2) == (40,)
    assert feed.offer(chunk_id=41, epoch=2)[0] == 41
    assert feed.offer(chunk_id=1, epoch=epoch) is None  # a hold, then
    assert feed.offer(chunk_id=2, epoch=epoch) == (2,)  # nothing of the former engine
    assert feed.input.counts.restarts == 1


def test_the_last_word_of_a_former_engine_is_dropped():
    feed = Feed()
    feed.offer(chunk_id=40, epoch=2)
    feed.offer(chunk_id=1, epoch=1)
    feed.offer(chunk_id=2, epoch=1)
    feed.input.offer(make_msg(chunk_id=41, epoch=2, started_ns=feed.now_ns - 15 * MS))
    assert feed.tick() == (2,)
    assert (feed.input.counts.outlived, feed.input.counts.restarts) == (1, 1)


def test_an_activation_takes_any_run_of_the_engine():
    feed = Feed()
    feed.offer(chunk_id=40, epoch=2)
    feed.buffer.reset()
    feed.input.restart()
    assert feed.offer(chunk_id=1, epoch=1) == (1,)
    assert feed.input.counts.restarts == 0
