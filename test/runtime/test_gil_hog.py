# SPDX-License-Identifier: Apache-2.0
"""A library that keeps the interpreter for 100 ms, in the tick's own process."""

import ctypes
import sys
import time

import numpy as np
import pytest

from oxygen_ros.control import JointLimits, RealtimeSettings, TickConfig
from oxygen_ros.robot.actuation import Actuation
from oxygen_ros.robot.faults import FaultLog, ListLogger
from oxygen_ros.runtime.tick_loop import TickLoop
from oxygen_ros.types import ActionChunk, Provenance, RobotState

MS = 1_000_000
PERIOD_NS = 20 * MS
HOG_NS = 100 * MS
SPEED = 0.005  # rad/s: 400 periods of it are one step's limit
TIMEOUT_S = 60.0
HORIZON = 6000  # 120 s: longer than the test, whatever the machine does besides


class Robot:
    """A tick that plays one long chunk of constant speed; what it gave out and when."""

    def __init__(self):
        self.targets = []  # (target, time, overruns so far)
        config = TickConfig(
            1,
            max_observation_age_ms=60_000.0,
            state_max_age_s=1000.0,
            activation_ramp_s=0.0,
            recovery_ramp_s=0.0,
        )
        log = ListLogger()
        self.actuation = Actuation(
            ('joint',),
            config,
            JointLimits.create(1, max_velocity=2.0),
            0.1,
            lambda: self.state,
            self,
            self,
            lambda state, stamp_ns, request: None,
            log,
            FaultLog(log),
        )
        self.loop = TickLoop(self.actuation, RealtimeSettings(freeze_gc=False))
        self.start_ns = time.monotonic_ns() + PERIOD_NS
        self.state = RobotState(self.start_ns, self.start_ns, np.zeros(1, np.float32))
        epoch = self.actuation.restart()
        self.loop.prepare()
        steps = SPEED * 0.02 * np.arange(HORIZON, dtype=np.float32)[:, None]
        self.actuation.buffer.add(
            ActionChunk(
                1,
                epoch,
                steps,
                self.start_ns,
                self.start_ns,
                PERIOD_NS,
                self.start_ns,
                self.start_ns,
                self.start_ns,
                Provenance(1, 0, ('front',), (0,), 0, 'sum'),
            )
        )
        self.actuation.arming.enable()
        self.loop.start(self.start_ns)

    def now_ns(self):
        return time.monotonic_ns()

    def offset_ns(self):
        return 0

    def command(self, values):
        pass

    def target(self, decision, lateness_ns, stamp_ns):
        thread = self.loop.thread
        self.targets.append(
            (
                decision.target,
                time.monotonic_ns(),
                thread.num_overruns if thread is not None else 0,
            )
        )

    def wanted(self, deadline_ns):
        return SPEED * (deadline_ns - self.start_ns) * 1e-9


@pytest.fixture
def robot():
    """Return a robot whose tick runs."""
    before_s = sys.getswitchinterval()
    robot = Robot()
    # Nobody asks this thread for the interpreter: a hog lasts from the time read before it to the
    # one read after it.
    sys.setswitchinterval(10.0)
    yield robot
    robot.loop.stop('shutdown')
    sys.setswitchinterval(before_s)


class Hogs:
    """Keeps the interpreter for 100 ms, again and again; when it began and ended to."""

    def __init__(self, robot):
        self.times_ns = []
        self._robot = robot
        self._libc = ctypes.PyDLL(None)  # unlike CDLL it does not let the interpreter go

    def hog(self):
        """Keep it once, and wait until the tick has come through."""
        self._wait_for_ticks()
        began_ns = time.monotonic_ns()
        self._libc.usleep(HOG_NS // 1000)
        self.times_ns.append((began_ns, time.monotonic_ns()))
        self._wait_for_ticks()

    def _wait_for_ticks(self):
        targets, before = self._robot.targets, len(self._robot.targets)
        end_s = time.monotonic() + TIMEOUT_S
        while len(targets) < before + 5:
            assert time.monotonic() < end_s, 'the tick has ended'
            time.sleep(0.01)

    def delay_ns(self):
        """Return how long after the last one the next target came."""
        ended_ns = self.times_ns[-1][1]
        return (
            next(at_ns for _, at_ns, _ in self._robot.targets if at_ns > ended_ns - MS) - ended_ns
        )


def test_the_ticks_inside_are_missed_and_counted_and_the_next_is_on_schedule(robot):
    hogs = Hogs(robot)
    for _ in range(3):
        hogs.hog()
    end_s = time.monotonic() + TIMEOUT_S
    while hogs.delay_ns() >= 2 * PERIOD_NS:  # a busy machine may delay it further, but not always
        assert time.monotonic() < end_s, 'no target right after a hog'
        hogs.hog()
    num_errors = robot.loop.thread.num_errors
    robot.loop.stop('shutdown')
    targets = [(target, at_ns) for target, at_ns, _ in robot.targets if not target.held]
    numbers = np.array([target.tick for target, _ in targets])
    deadlines_ns = robot.start_ns + numbers * PERIOD_NS
    assert [target.deadline_ns for target, _ in targets] == deadlines_ns.tolist()  # on the grid
    for began_ns, ended_ns in hogs.times_ns:
        inside = (deadlines_ns > began_ns + MS) & (deadlines_ns < ended_ns - PERIOD_NS // 2 - MS)
        assert not inside.any()  # missed, and not made up for
    # So there is no burst either: what comes after a hog is due after it, and nothing comes early.
    assert (np.diff(numbers) > 0).all()
    assert (np.array([at_ns for _, at_ns in targets]) >= deadlines_ns).all()
    overruns = [num for target, _, num in robot.targets if not target.held]
    missed = (np.diff(numbers, prepend=-1) - 1).cumsum()
    assert missed.tolist() == overruns
    assert overruns[-1] >= len(hogs.times_ns) * (HOG_NS // PERIOD_NS - 2)
    assert num_errors == 0
    # Each is the target of its own time, the first after a hog included.
    values = np.array([target.values[0] for target, _ in targets])
    assert np.allclose(
        values, [robot.wanted(deadline_ns) for deadline_ns in deadlines_ns], atol=1e-6
    )
