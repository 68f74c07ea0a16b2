"""The tick with its thread: what comes of a tick that fails."""
import time

import numpy as np

from oxygen_ros.control import ActuationMode, JointLimits, TickConfig
from oxygen_ros.runtime.tick_loop import TickLoop, TickLoopConfig
from oxygen_ros.types import RobotState

TIMEOUT_S = 10.0


def test_a_tick_that_fails_holds_and_the_next_ones_come():
    decisions = []
    now_ns = time.monotonic_ns()
    state = RobotState(now_ns, now_ns, np.zeros(1, np.float32))
    failing = True

    def newest_state():
        if failing:
            raise RuntimeError('broken on purpose')
        return state

    loop = TickLoop(
        TickLoopConfig(TickConfig(1, ActuationMode.VELOCITY, max_state_age_ns=10**12),
                       JointLimits.create(1)),
        lambda decision, lateness_ns: decisions.append(decision.target), newest_state)
    loop.arming.enable()
    loop.prepare()
    loop.start(time.monotonic_ns())
    try:
        wait_for(lambda: len(decisions) >= 3)
        failing = False
        wait_for(lambda: decisions[-1].hold_reason != 'error')
        num_errors = loop.thread.num_errors
    finally:
        loop.stop('shutdown')
    failed = [target for target in decisions if target.hold_reason == 'error']
    assert len(failed) == num_errors >= 3
    assert all(target.values.tolist() == [0.0] for target in failed)  # what stops a velocity


def wait_for(condition):
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
