# SPDX-License-Identifier: Apache-2.0
"""A recording on its own clock, and one that is paused, heard over DDS."""

from itertools import pairwise
from pathlib import Path
import signal
import sys

import pytest

pytest.importorskip('rclpy', reason='the player is a ROS node')
from listener import Listener, Source, stamp_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

sys.path.append(str(Path(__file__).resolve().parents[1] / 'replay'))
from made_bags import make_bag, Plan, START_NS

SECOND = 1_000_000_000
OTHER_CLOCK_NS = 1_600_000_000 * SECOND  # of stamps that begin at a simulator's start


@pytest.fixture
def play(tmp_path):
    """Play a made recording; return the source and a listener that was there before."""
    opened = []

    def start(plan, **parameters):
        listener = Listener({'joint_states': JointState, 'clock': Clock})
        opened.append(listener.close)
        source = Source('bag_player', {'bag': make_bag(tmp_path / 'bag', plan), **parameters})
        opened.append(source.kill)
        return source, listener

    yield start
    for close in reversed(opened):
        close()


def clock_ns(received):
    return [message.clock.sec * SECOND + message.clock.nanosec for _, message in received['clock']]


@pytest.mark.slow
@pytest.mark.parametrize('other_ns', [0, OTHER_CLOCK_NS])
def test_the_clock_is_that_of_the_stamps_at_the_rate_asked_for_and_never_goes_back(play, other_ns):
    plan = Plan(num_frames=60, clock_ns=other_ns)
    source, listener = play(plan, loop='true', rate=2, clock_hz=100)
    # Long enough that a pause of the machine at either end does not look like another rate.
    listener.wait_for(
        lambda received: len(received['joint_states']) > 160 and len(received['clock']) > 500
    )
    status, output, _ = source.end(signal.SIGTERM)
    assert status == 0, output
    times_ns = clock_ns(listener.received)
    assert times_ns == sorted(times_ns)
    assert START_NS <= times_ns[0] < times_ns[-1] < START_NS + 60 * SECOND
    arrived_ns = [arrived for arrived, _ in listener.received['clock']]
    pace = (times_ns[-1] - times_ns[0]) / (arrived_ns[-1] - arrived_ns[0])
    assert 1.5 < pace < 2.6
    stamps = [stamp_ns(message) for _, message in listener.received['joint_states']]
    first_run = [stamp for stamp in stamps if stamp < START_NS + 60 * plan.period_ns]
    assert first_run and all((stamp - START_NS) % plan.period_ns == 0 for stamp in first_run)
    # the loops run on: between two, the skew of the cameras and a period
    gaps_ns = [b - a for a, b in pairwise(stamps)]
    assert min(gaps_ns) == plan.period_ns
    assert any(plan.period_ns < gap_ns < 1.2 * plan.period_ns for gap_ns in gaps_ns)
    # and none is far from the clock at its arrival
    now = dict(zip(arrived_ns, times_ns))
    for arrived, message in listener.received['joint_states']:
        nearest = min(now, key=lambda other: abs(other - arrived))
        assert abs(now[nearest] - stamp_ns(message)) < SECOND


@pytest.mark.slow
@pytest.mark.parametrize('clock_hz', [0, 100])
def test_paused_nothing_comes_and_what_follows_is_fresh(play, clock_hz):
    source, listener = play(Plan(num_frames=400), clock_hz=clock_hz)
    states, clocks = listener.received['joint_states'], listener.received['clock']
    listener.wait_for(lambda received: len(states) > 5)
    pause = listener.client(SetBool, 'bag_player/pause')
    assert pause(SetBool.Request(data=True)).message == 'paused'
    listener.spin_for(0.3)
    before, clock_before = len(states), len(clocks)
    listener.spin_for(1.0)
    assert len(states) == before
    stood = {message.clock.nanosec for _, message in clocks[clock_before:]}
    assert len(stood) == (1 if clock_hz else 0)
    assert pause(SetBool.Request(data=False)).message == 'playing'
    listener.wait_for(lambda received: len(states) > before + 10)
    assert source.process.poll() is None
    gap_ns = stamp_ns(states[before][1]) - stamp_ns(states[before - 1][1])
    if clock_hz:
        assert gap_ns == Plan().period_ns
    else:
        assert SECOND < gap_ns < 30 * SECOND  # the time of the pause
        for arrived_ns, message in states[before:]:
            assert -50_000_000 < arrived_ns - stamp_ns(message) < SECOND
