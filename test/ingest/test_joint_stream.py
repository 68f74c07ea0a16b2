# SPDX-License-Identifier: Apache-2.0
"""Joint states as they come: stamps, order, and a flood of them."""

import math

import pytest

from oxygen_ros.ingest import IngestRules, JointStream, Receipt

SECOND = 1_000_000_000
MS = 1_000_000
NAMES = ['b', 'a']
NOW_NS = 50 * SECOND
OFFSET_NS = 1_700_000_000 * SECOND


@pytest.fixture
def robot():
    """Return a stream that keeps its states."""
    states = []
    stream = JointStream(('a', 'b'), IngestRules(), states.append)
    stream.states = states
    return stream


def send(robot, age_ns=0, position=(2.0, 1.0), names=NAMES, now_ns=NOW_NS):
    return robot.take(names, position, now_ns + OFFSET_NS - age_ns, Receipt(now_ns, OFFSET_NS))


def test_the_newest_state_wins_whatever_the_order_of_arrival(robot):
    assert send(robot, age_ns=10 * MS)
    assert not send(robot, age_ns=30 * MS)  # overtaken on the way
    assert send(robot, age_ns=10 * MS)  # a driver that stamps coarsely
    assert robot.counts.backward == 1 and len(robot.states) == 2


def test_stamps_that_go_far_back_are_followed(robot):
    send(robot)
    assert send(robot, age_ns=30 * SECOND)
    assert robot.states[-1].steady_ns == NOW_NS - 30 * SECOND


def test_a_stamp_ahead_gives_no_negative_latency(robot):
    send(robot, age_ns=-40 * MS)
    send(robot, age_ns=-400 * SECOND)
    assert [state.steady_ns for state in robot.states] == [NOW_NS, NOW_NS]
    assert robot.counts.replaced_stamps == 1


@pytest.mark.parametrize('bad', [math.nan, math.inf, 1e300])
def test_a_position_that_is_no_number_of_a_state_is_refused_and_the_next_is_taken(robot, bad):
    assert not send(robot, position=(bad, 1.0))
    assert robot.counts.refused == 1 and 'position: expected finite values, got b' in (
        robot.counts.newest_problem
    )
    assert send(robot)


def test_a_flood_of_states_leaves_the_newest_and_no_queue(robot):
    for number in range(3000):
        assert send(robot, position=(float(number), 0.0), now_ns=NOW_NS + number * MS)
    assert robot.states[-1].positions.tolist() == [0.0, 2999.0]
    assert robot.counts.refused == robot.counts.backward == 0
