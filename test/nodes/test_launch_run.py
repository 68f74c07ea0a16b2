# SPDX-License-Identifier: Apache-2.0
"""The launch files under the real launch_ros: start, run, come back after a kill, stop."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import psutil
import pytest

pytest.importorskip('launch_ros', reason='launch_ros is absent: ROS ships it, PyPI does not')
from own_domain import DOMAIN
from rcl_interfaces.srv import GetParameters
from rig import Rig, stamp_ns, TIMEOUT_S
from robot_source import RobotSource
from std_srvs.srv import SetBool

sys.path.append(str(Path(__file__).resolve().parents[1] / 'replay'))
from made_bags import make_bag, Plan

from oxygen_ros.memory.audit.audit_chain import segment_paths
from oxygen_ros.memory.audit.audit_records import find_records
from oxygen_ros.msg import ActionChunk, Target

ROOT = Path(__file__).resolve().parents[2]
DRIVER = str(Path(__file__).with_name('launch_driver.py'))


class Launch:
    """A launch file run by a process of its own."""

    def __init__(self, file, log_folder, **arguments):
        environment = dict(
            os.environ,
            ROS_DOMAIN_ID=str(DOMAIN),
            ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST',
            ROS_LOG_DIR=str(log_folder),
            PATH=f'{sys.prefix}/bin:{os.environ["PATH"]}',
        )  # the executables' interpreter
        environment.setdefault('AMENT_PREFIX_PATH', sys.prefix)
        self._process = subprocess.Popen(
            [
                sys.executable,
                DRIVER,
                str(ROOT / 'launch' / file),
                *(f'{name}:={value}' for name, value in arguments.items()),
            ],
            env=environment,
            start_new_session=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    @property
    def has_ended(self):
        return self._process.poll() is not None

    def pids(self, executable):
        """Return the processes of one of our executables."""
        if self.has_ended:
            return []
        found = []
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has just ended
                if any(part.endswith(f'/{executable}') for part in child.cmdline()):
                    found.append(child.pid)
        return found

    def interrupt(self):
        """Stop as Ctrl-C in a terminal does, which reaches all; return status and output."""
        os.killpg(self._process.pid, signal.SIGINT)
        output, _ = self._process.communicate(timeout=TIMEOUT_S)
        return self._process.returncode, output

    def output(self):
        """Return the output of a launch that has ended."""
        return self._process.communicate(timeout=TIMEOUT_S)[0]

    def close(self):
        """End whatever is left."""
        if not self.has_ended:
            for child in psutil.Process(self._process.pid).children(recursive=True):
                child.kill()
            self._process.kill()
        self._process.communicate()


@pytest.fixture
def launch(tmp_path):
    started = []

    def start(file, **arguments):
        started.append(Launch(file, tmp_path / 'log', **arguments))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture
def rig():
    """Return a client; its own robot is silent."""
    made = Rig(cameras=(), joints=('none',))
    made.robot.paused.add('joint_states')
    yield made
    made.close()


def assert_clean(status, output):
    assert status == 0, output
    assert 'Traceback' not in output and '[ERROR]' not in output, output
    assert 'process has finished cleanly' in output


def test_in_a_namespace_with_remapped_cameras_and_a_params_file_it_moves_and_stops_in_a_hold(
    rig, launch, tmp_path
):
    params_file = tmp_path / 'mine.yaml'
    params_file.write_text(
        '/**:\n  ros__parameters:\n    joints: [shoulder, elbow, gripper]\n'
        f'    memory: {{period_s: 0.0}}\n    audit: {{file: {tmp_path / "audit"}}}\n',
        encoding='utf-8',
    )
    robot = RobotSource(
        ('rgb', 'left'),
        ('shoulder', 'elbow', 'gripper'),
        context=rig.context,
        namespace='/robot_a',
        cli_args=['--ros-args', '-r', 'rgb/image_raw:=/rs/color/image_raw'],
    )
    rig.executor.add_node(robot)
    rig.listen(Target, 'robot_a/oxygen/target')
    targets = rig.received['robot_a/oxygen/target']
    started = launch(
        'oxygen.launch.py',
        namespace='robot_a',
        params_file=params_file,
        cameras='front=/rs/color/image_raw, left',
        log_level='warn',
    )
    try:
        rig.wait_for(lambda: bool(targets), 'the tick')
        assert rig.call(SetBool, 'robot_a/oxygen/enable', SetBool.Request(data=True)).success
        rig.wait_for(lambda: targets[-1].armed and not targets[-1].held, 'fresh targets')
        assert targets[-1].joint_names == ['shoulder', 'elbow', 'gripper']
        status, output = started.interrupt()
    finally:
        rig.executor.remove_node(robot)
        robot.destroy_node()
    assert_clean(status, output)
    assert '[INFO] [' not in output.replace('[INFO] [launch', '').replace(
        '[INFO] [oxygen_node-1]: process', ''
    ), output
    # Its last target may get lost on the way; that it was moving and ended by its own will stands
    # in the log, which is closed after that target.
    modes = [
        (record['body']['mode'], record['body']['reason'])
        for _, record in find_records(segment_paths(tmp_path / 'audit'), kind='mode')
    ]
    assert ('armed', 'enable') in modes and modes[-1] == ('inactive', 'shutdown'), modes


def test_after_a_kill_the_node_comes_back_disarmed_and_no_more_often_than_told(rig, launch):
    rig.listen(Target, 'oxygen/target')
    targets = rig.received['oxygen/target']
    started = launch(
        'oxygen.launch.py', respawn='true', respawn_delay='0.2', respawn_max_retries='1'
    )
    rig.wait_for(lambda: bool(targets), 'the tick')
    assert rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
    (first,) = started.pids('oxygen_node')
    os.kill(first, signal.SIGKILL)
    killed_ns = time.time_ns()
    rig.wait_for(lambda: started.pids('oxygen_node') not in ([], [first]), 'the next process')

    def of_the_next():  # those of the first may still be on their way
        return [target for target in targets if stamp_ns(target) > killed_ns + 100_000_000]

    rig.wait_for(lambda: bool(of_the_next()), 'its tick')
    assert not any(target.armed for target in of_the_next())
    os.kill(started.pids('oxygen_node')[0], signal.SIGKILL)
    rig.wait_for(lambda: started.has_ended, 'the end of launch')
    assert started.output().count('process started with pid') == 2


def test_a_dry_run_on_simulated_time_has_no_command_topic(rig, launch):
    rig.listen(Target, 'oxygen/target')
    targets = rig.received['oxygen/target']
    started = launch('oxygen.launch.py', robot='franka_fr3', dry_run='true', use_sim_time='true')
    rig.wait_for(lambda: bool(targets), 'the tick')
    reply = rig.call(
        GetParameters,
        'oxygen/get_parameters',
        GetParameters.Request(names=['use_sim_time', 'actuation.dry_run', 'cameras']),
    )
    assert [value.bool_value for value in reply.values[:2]] == [True, True]
    assert reply.values[2].string_array_value == ['exterior', 'wrist']
    assert rig.client.count_publishers('fr3_arm_controller/joint_trajectory') == 0
    assert_clean(*started.interrupt())


def test_by_default_a_killed_node_stays_down(rig, launch):
    started = launch('oxygen.launch.py', autostart='false')
    rig.wait_for(lambda: bool(started.pids('oxygen_node')), 'the process')
    os.kill(started.pids('oxygen_node')[0], signal.SIGKILL)
    rig.wait_for(lambda: started.has_ended, 'the end of launch')
    assert started.output().count('process started with pid') == 1


def test_a_separate_tick_outlives_the_engine_and_its_own_end_is_told(rig, launch):
    rig.listen(Target, 'oxygen/target')
    targets = rig.received['oxygen/target']
    started = launch('oxygen.launch.py', tick='separate', robot='so101')
    rig.wait_for(lambda: bool(targets) and bool(started.pids('oxygen_node')), 'both')
    os.kill(started.pids('oxygen_node')[0], signal.SIGKILL)
    rig.wait_for(lambda: not started.pids('oxygen_node'), 'the end of the engine')
    start = len(targets)
    rig.wait_for(lambda: len(targets) > start + 10, 'ticks without an engine')
    os.kill(started.pids('tick_node')[0], signal.SIGKILL)
    rig.wait_for(lambda: started.has_ended, 'the end of launch')
    assert 'the tick has ended: nothing is sent to the robot' in started.output()


@pytest.mark.parametrize(('robot', 'num_joints'), [('', 7), ('aloha', 14)])
def test_the_demo_runs_without_a_robot(rig, launch, robot, num_joints):
    rig.listen(Target, 'show/oxygen/target')
    rig.listen(ActionChunk, 'show/oxygen/action_chunk')
    targets = rig.received['show/oxygen/target']
    started = launch('demo.launch.py', namespace='show', robot=robot, rate_hz='10')
    rig.wait_for(lambda: bool(rig.received['show/oxygen/action_chunk']), 'a chunk')
    rig.wait_for(lambda: bool(targets) and not targets[-1].held, 'fresh targets')
    assert len(targets[-1].positions) == num_joints
    assert_clean(*started.interrupt())


@pytest.mark.parametrize('use_sim_time', ['false', 'true'])
def test_a_recording_is_played_to_its_end(rig, launch, tmp_path, use_sim_time):
    bag = make_bag(tmp_path / 'bag', Plan(num_frames=120))
    rig.listen(Target, 'oxygen/target')
    rig.listen(ActionChunk, 'oxygen/action_chunk')
    started = launch('replay.launch.py', bag=bag, use_sim_time=use_sim_time)
    rig.wait_for(lambda: started.has_ended, 'the end of the recording')
    assert rig.received['oxygen/action_chunk']
    stamp = rig.received['oxygen/target'][-1].header.stamp
    is_recorded_time = abs(time.time() - stamp.sec) > 1e6
    assert is_recorded_time == (use_sim_time == 'true')
    assert_clean(0, started.output())


def test_a_recording_is_not_played_to_a_node_that_does_not_come_up(launch, tmp_path):
    bag = make_bag(tmp_path / 'bag', Plan(num_frames=8))
    started = launch('replay.launch.py', bag=bag, model='gpt')
    output = started.output()
    assert 'model.name: expected one of tiny' in output
    assert output.count('process has finished cleanly') == 1  # the player, which was told to end


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'params_file': '/none.yaml'}, "params_file: expected a file, got '/none.yaml'"),
        (
            {'robot': 'marvin'},
            'robot: expected one of aloha, franka_fr3, so101, or a parameter file',
        ),
        ({'tick': 'seperate'}, "tick: expected own or separate, got 'seperate'"),
    ],
)
def test_a_wrong_argument_starts_nothing(launch, arguments, message):
    started = launch('oxygen.launch.py', **arguments)
    output = started.output()
    assert message in output and 'process started' not in output
