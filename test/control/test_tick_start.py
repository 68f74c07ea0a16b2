# SPDX-License-Identifier: Apache-2.0
"""Who drives and from where: arming, ramps, changes of mode, and the last target."""

from control_rig import make_chunk, Rig
import numpy as np
import pytest

from oxygen_ros.control import ActuationMode, hold_reasons, JointLimits, TickConfig

VELOCITY = {'space': ('joint_velocity',)}


@pytest.mark.parametrize(
    'request_name, reason', [('stop', hold_reasons.STOPPED), ('hold', hold_reasons.HOLD_REQUESTED)]
)
def test_stop_and_hold_keep_sending_the_last_target(request_name, reason):
    rig = Rig()
    rig.add(np.arange(50.0))
    rig.step()
    getattr(rig.arming, request_name)()
    for _ in range(3):
        decision = rig.step()
        assert decision.target.hold_reason == reason
        assert decision.target.values.tolist() == [0.0]
        assert decision.armed


def test_takeover_sends_nothing_follows_the_joints_and_gives_back_from_where_they_are():
    rig = Rig(limits={'max_step': 0.1})
    rig.add(np.zeros(50))
    rig.step()
    rig.arming.takeover()
    rig.pose[:] = 2.0
    decision = rig.step()
    assert (decision.armed, decision.target.hold_reason) == (False, hold_reasons.TAKEOVER)
    assert decision.target.values.tolist() == [2.0]
    rig.arming.enable()
    decision = rig.step()
    assert decision.armed
    assert decision.target.values == pytest.approx([1.9])


def test_hold_after_a_takeover_holds_where_the_operator_left_the_robot():
    rig = Rig()
    rig.arming.takeover()
    rig.pose[:] = 2.0
    rig.step()
    rig.arming.hold()
    decision = rig.step()
    assert (decision.armed, decision.target.values.tolist()) == (True, [2.0])


def test_disarmed_shows_what_would_be_sent_and_does_not_wait_for_the_joints_to_follow():
    rig = Rig(armed=False, limits={'max_tracking_error': 0.1})
    rig.add(np.linspace(0.0, 4.9, 50))
    decisions = [rig.step() for _ in range(10)]
    assert not any(decision.armed for decision in decisions)
    assert not any(decision.target.held for decision in decisions)
    assert decisions[-1].target.values == pytest.approx([0.9])
    rig.arming.enable()
    decision = rig.step()
    assert decision.armed
    rig.arming.disarm()
    assert rig.tick.hold(99, rig.now_ns, hold_reasons.DEACTIVATED).armed is False


def test_armed_and_disarmed_again_between_two_ticks_still_starts_from_the_joints():
    rig = Rig(limits={'max_step': 0.1})
    rig.add(np.zeros(50))
    rig.step()
    rig.arming.disarm()
    rig.arming.enable()
    rig.pose[:] = -1.0
    assert rig.step().target.values == pytest.approx([-0.9])


def test_the_first_target_is_the_measured_pose_and_the_ramp_ends_on_the_chunk():
    rig = Rig(pose=(0.5,), activation_ramp_s=0.2)
    rig.add(np.full(50, 1.5))
    values = [rig.step().target.values[0] for _ in range(12)]
    assert values[0] == 0.5
    assert values[5] == pytest.approx(1.0)
    assert values[10:] == [1.5, 1.5]
    steps = np.diff(values)
    assert (steps >= 0.0).all()
    assert steps[0] < steps[4]


def test_the_ramp_waits_for_the_first_chunk():
    rig = Rig(pose=(0.5,), activation_ramp_s=0.1)
    for _ in range(20):
        assert rig.step().target.values[0] == 0.5
    rig.add(np.full(50, 1.5))
    assert rig.step().target.values[0] == 0.5
    assert 0.5 < rig.step().target.values[0] < 1.0


def test_after_a_hold_the_target_eases_from_the_held_one():
    rig = Rig(recovery_ramp_s=0.1)
    rig.add([0.0])
    rig.step()
    assert rig.step().target.hold_reason == hold_reasons.CHUNK_EXHAUSTED
    rig.follows = False
    rig.number += 50
    rig.add(np.ones(50), chunk_id=2)
    values = [rig.step().target.values[0] for _ in range(7)]
    assert values[0] == 0.0
    assert values[5:] == [1.0, 1.0]


def test_after_a_stall_the_target_is_the_one_of_its_time_within_one_step():
    rig = Rig()
    rig.add(np.arange(50.0))
    rig.step()
    assert rig.step(skip=5).target.values.tolist() == [6.0]
    rig = Rig(limits={'max_velocity': 50.0})
    rig.add(np.arange(50.0))
    rig.step()
    assert rig.step(skip=5).target.values.tolist() == [1.0]


def test_a_velocity_is_held_as_zero_and_takes_up_again_from_zero():
    rig = Rig(limits={'max_step': 0.1}, **VELOCITY)
    rig.follows = False
    rig.add([0.3] * 4)
    assert [round(rig.step().target.values[0], 6) for _ in range(4)] == [0.1, 0.2, 0.3, 0.3]
    held = rig.step().target
    assert (held.hold_reason, held.values.tolist()) == (hold_reasons.CHUNK_EXHAUSTED, [0.0])
    rig.add([0.3] * 4, chunk_id=2)
    assert rig.step().target.values == pytest.approx([0.1])


def test_activation_starts_from_the_joints_whatever_was_sent_before():
    rig = Rig()
    rig.add(np.zeros(50))
    rig.step()
    rig.buffer.reset()
    rig.tick.restart()
    rig.pose[:] = 4.0
    target = rig.step().target
    assert (target.values.tolist(), target.chunk_ids) == ([4.0], ())


def test_a_change_of_mode_starts_afresh_and_a_bad_one_changes_nothing():
    rig = Rig(pose=(1.0,))
    rig.add(np.ones(50))
    rig.step()
    with pytest.raises(ValueError, match='limits: expected 1 joints, got 2'):
        rig.tick.reconfigure(rig.config, JointLimits.create(2))
    assert rig.step().target.values.tolist() == [1.0]
    rig.tick.reconfigure(TickConfig(1, activation_ramp_s=0.1, **VELOCITY), rig.limits)
    assert rig.tick.config.mode is ActuationMode.VELOCITY
    assert rig.step().target.values.tolist() == [0.0]


@pytest.mark.parametrize(
    'reason', [hold_reasons.DEACTIVATED, hold_reasons.SHUTDOWN, hold_reasons.ERROR]
)
def test_the_last_target_before_the_end_is_a_hold(reason):
    rig = Rig()
    rig.add(np.ones(50))
    rig.step()
    decision = rig.tick.hold(1, rig.now_ns, reason)
    assert decision.armed
    assert (decision.target.hold_reason, decision.target.values.tolist()) == (reason, [1.0])
    rig = Rig(**VELOCITY)
    assert rig.tick.hold(0, rig.now_ns, reason).target.values.tolist() == [0.0]


def test_a_hold_right_after_enabling_does_not_send_a_target_the_robot_never_followed():
    rig = Rig(armed=False)
    rig.add(np.arange(50.0))
    for _ in range(5):
        rig.step()
    rig.arming.enable()
    assert not rig.tick.hold(5, rig.now_ns, hold_reasons.DEACTIVATED).armed


def test_targets_are_independent_of_what_comes_later():
    rig = Rig()
    rig.buffer.add(make_chunk(1, rig.now_ns, np.arange(50.0)))
    targets = [rig.step().target for _ in range(10)]
    assert [target.values[0] for target in targets] == list(range(10))
