# SPDX-License-Identifier: Apache-2.0
"""Lost sensors: each ends in a hold within its bound that says why, and in recovery by itself."""

from __future__ import annotations

import signal
import threading
import time

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from armed_rig import armed_rig
from builtin_interfaces.msg import Time
from own_domain import DOMAIN
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rig import CAMERAS, JOINTS, NodeProcess
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState

SECOND = 1_000_000_000
CAMERA_AGE_S, OBSERVATION_AGE_S = 1.0, 1.0
LIMITS = {
    'sensors__camera_max_age_s': [CAMERA_AGE_S],
    'sensors__frozen_after_s': 1.0,
    'max_observation_age_ms': OBSERVATION_AGE_S * 1e3,
    # A pause of the machine is not to look like a loss of the joint states too.
    'sensors__state_max_age_s': 20.0,
}
JOINTS_SOON = pytest.mark.parametrize(
    'rig', [{'sensors__state_max_age_s': 0.5}], indirect=True, ids=['joints']
)
NO_VIEW = ('stale_observation', 'chunk_exhausted')


@pytest.fixture
def rig(request):
    """Return a rig whose node takes cameras for lost soon, or what the test asks for."""
    with armed_rig(**{**LIMITS, **getattr(request, 'param', {})}) as rig:
        yield rig


def check_hold(rig, since_ns, within_s, *reasons):
    """Wait until well after a bound; all targets from there on are one held target.

    :param since_ns: of the last sound message (ROS time).
    """
    bound_ns = since_ns + round(within_s * SECOND)
    rig.wait_until_due(bound_ns + SECOND // 2)
    late = rig.targets_due(bound_ns)
    assert {target.hold_reason for target in late} <= set(reasons)
    assert len({tuple(target.positions) for target in late}) == 1
    rig.wait_for(lambda: rig.sent[-1].points[0].positions == late[-1].positions, 'the held pose')


@pytest.mark.parametrize('camera', CAMERAS)
def test_each_lost_camera_ends_in_a_hold_of_the_last_target_and_recovers(rig, camera):
    rig.robot.paused.add(camera)
    # Its last image, for as long as it may be used, then the observation made of it.
    check_hold(rig, rig.robot.newest_ns[camera], CAMERA_AGE_S + OBSERVATION_AGE_S, *NO_VIEW)
    rig.wait_for_status(f'camera {camera}', lambda status: 's old' in status.message)
    rig.robot.paused.clear()
    rig.wait_for_fresh()


@JOINTS_SOON
def test_lost_joint_states_end_in_a_hold_and_recover(rig):
    rig.robot.paused.add('joint_states')
    check_hold(rig, rig.robot.newest_ns['joint_states'], 0.5, 'stale_state')
    rig.wait_for_status('joint states', lambda status: 'newest joint state is' in status.message)
    rig.robot.paused.clear()
    rig.wait_for_fresh()


@pytest.mark.parametrize('camera', CAMERAS)
def test_each_camera_whose_pixels_stand_still_ends_in_a_hold_and_recovers(rig, camera):
    before_ns = rig.robot.newest_ns[camera]
    rig.robot.frozen.add(camera)
    # The last picture that moved, the first that did not, the limit, its observation; and a
    # second for images that the transport may lose.
    check_hold(rig, before_ns, 0.1 + 1.0 + OBSERVATION_AGE_S + 1.0, *NO_VIEW)
    rig.wait_for_status(f'camera {camera}', lambda status: 'frozen' in status.message)
    rig.robot.frozen.clear()
    rig.wait_for_fresh()


def test_a_camera_too_far_behind_the_others_ends_in_a_hold_names_it_and_recovers():
    with armed_rig(sensors__max_skew_s=0.15, **LIMITS) as rig:
        rig.robot.lag_ns[CAMERAS[1]] = 300_000_000
        rig.wait_for_hold(*NO_VIEW)
        rig.wait_for_status(
            'engine',
            lambda status: (
                f'{CAMERAS[1]} is 0.3' in status.message
                and f'behind {CAMERAS[0]}' in status.message
            ),
        )
        rig.robot.lag_ns.clear()
        rig.wait_for_fresh()


def test_a_stopped_camera_process_ends_in_a_hold_and_recovers_when_it_goes_on():
    cameras = ['left', 'right']
    source = NodeProcess(
        '-m',
        'oxygen_ros.nodes.sources.camera_source',
        '--ros-args',
        '-r',
        'joint_states:=unused',
        cameras=f'[{",".join(cameras)}]',
        width='64',
        height='48',
        joints=None,
        autostart=None,
    )
    try:
        with armed_rig(cameras=cameras, **LIMITS) as rig:
            source.signal(signal.SIGSTOP)
            stopped_ns = rig.robot.get_clock().now().nanoseconds
            check_hold(rig, stopped_ns, CAMERA_AGE_S + OBSERVATION_AGE_S, *NO_VIEW)
            source.signal(signal.SIGCONT)
            rig.wait_for_fresh()
            assert not rig.node.faults.counts
    finally:
        source.close()


class SimulatedClock:
    """Publishes /clock from a thread, as a simulator does."""

    def __init__(self):
        self.offset_ns = 1000 * SECOND - time.monotonic_ns()  # from steady time
        self._context = Context()
        rclpy.init(context=self._context, domain_id=DOMAIN)
        self._node = Node('simulator', context=self._context)
        self._publisher = self._node.create_publisher(ClockMessage, '/clock', 1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(0.02):
            now_s, now_ns = divmod(time.monotonic_ns() + self.offset_ns, SECOND)
            self._publisher.publish(ClockMessage(clock=Time(sec=now_s, nanosec=now_ns)))

    def close(self):
        self._stop.set()
        self._thread.join()
        self._node.destroy_node()
        self._context.try_shutdown()


@pytest.fixture
def simulation():
    """Return a clock that runs during a test."""
    clock = SimulatedClock()
    yield clock
    clock.close()


def test_a_jump_of_the_clock_either_way_ends_in_a_hold_and_in_recovery(simulation):
    with armed_rig(use_sim_time=True, **LIMITS) as rig:
        rig.robot.set_parameters([Parameter('use_sim_time', value=True)])
        rig.wait_for(
            lambda: rig.robot.newest_ns['joint_states'] < 1e6 * SECOND, 'a robot on simulated time'
        )
        for jump_s in (-500, 300):
            rig.wait_for_fresh()
            epoch, before = rig.node.robot.actuation.buffer.epoch, len(rig.targets)
            simulation.offset_ns += jump_s * SECOND
            rig.wait_for(
                lambda epoch=epoch: rig.node.robot.actuation.buffer.epoch > epoch, 'a reset'
            )
            rig.wait_for(
                lambda before=before: any(
                    target.hold_reason in ('no_chunk', 'no_state')
                    for target in rig.targets[before:]
                ),
                'a hold',
            )
        rig.wait_for_fresh()
        assert not rig.node.faults.counts


def test_another_size_is_named_what_was_computed_is_dropped_and_targets_go_on(rig, monkeypatch):
    engine, resets = rig.node.robot.engine, []
    reset = engine.reset_observations
    monkeypatch.setattr(engine, 'reset_observations', lambda: (resets.append(1), reset())[1])
    rig.robot.size = (48, 64)
    rig.wait_for_status(
        f'camera {CAMERAS[0]}',
        lambda status: 'size changed from 64x48 to 48x64, turned' in status.message,
    )
    assert resets
    rig.wait_for_fresh()


def test_what_is_measured_before_an_activation_is_known_after_it(rig):
    rig.node.trigger_deactivate()
    since_ns = rig.robot.newest_ns['joint_states']
    rig.wait_for(
        lambda: rig.node.robot.sensors.newest_state().stamp_ns > since_ns, 'a joint state'
    )
    before = len(rig.targets)
    rig.node.trigger_activate()
    rig.wait_for_fresh_after(before)
    assert 'no_state' not in {target.hold_reason for target in rig.targets[before:]}


@JOINTS_SOON
def test_a_thousand_joint_states_a_second_starve_nobody(rig):
    rig.robot.paused.add('joint_states')
    publisher = rig.foreign(JointState, 'joint_states', QoSProfile(depth=1))
    message = JointState(
        name=list(reversed(JOINTS)),
        position=[0.1] * len(JOINTS),
        velocity=[float('nan')] * len(JOINTS),
    )
    stop = threading.Event()

    def flood():
        due_s = time.monotonic()
        while not stop.is_set():
            publisher.publish(message)
            due_s += 0.001
            time.sleep(max(0.0, due_s - time.monotonic()))

    rig.wait_for_hold('stale_state')
    thread = threading.Thread(target=flood)
    thread.start()
    try:
        rig.wait_for_fresh()
        counts = rig.node.robot.joints.counts
        images = rig.node.robot.sensors.num_frames
        received, seen, before = counts.received, dict(images), len(rig.targets)
        rig.wait_for(lambda: counts.received >= received + 1000, 'a thousand states')
        rig.wait_for(
            lambda: all(images[camera] > seen[camera] + 5 for camera in CAMERAS),
            'images beside them',
        )
        rig.wait_for(
            lambda: any(not target.held for target in rig.targets[before + 20 :]),
            'targets beside them',
        )
    finally:
        stop.set()
        thread.join()
    assert not counts.refused and not rig.node.faults.counts


def test_a_jump_of_time_while_inactive_does_not_stop_what_comes_after(rig):
    rig.node.trigger_deactivate()
    rig.node.robot.time_jumped('a test')
    before = len(rig.targets)
    rig.node.trigger_activate()
    rig.wait_for_fresh_after(before)
