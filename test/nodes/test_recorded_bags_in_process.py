# SPDX-License-Identifier: Apache-2.0
"""Every recording of the shared data through ingest, engine and tick in process, on virtual time.

The rules of ingest and the words of diagnostics are those of the node.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('rclpy', reason="the words are those of the node's diagnostics")
from bag_outcomes import check_targets, OUTCOMES, PARAMETERS, Refused

from oxygen_ros.commands.replay_settings import make_replay, replay_settings
from oxygen_ros.replay.bag import BagError, open_bag
from oxygen_ros.replay.layout import discover
from oxygen_ros.replay.outputs import TARGET
from oxygen_ros.robot.findings import CameraFindings, JointFindings
from oxygen_ros.types import RobotState

TICK_NS = 20_000_000


class Findings:
    """Looks at a replay's sensors in every tick, as diagnostics do once a second."""

    def __init__(self, replay):
        self.found = set()
        self._start_ns = replay.start_ns
        robot = replay.robot
        self._tasks = {}
        for camera, source in robot.cameras.inputs.items():
            images = CameraFindings(source.stream, robot.sensors)
            self._tasks[f'camera {camera}'] = lambda now_ns, images=images: images.read(
                now_ns, True
            )
        self._tasks['joint states'] = JointFindings(robot.joints, robot.sensors).read

    def skip_joints(self):
        del self._tasks['joint states']

    def __call__(self, output):
        if output.topic == TARGET:
            self.look(output.stamp_ns - self._start_ns)

    def look(self, now_ns):
        for name, task in self._tasks.items():
            self.found |= {f'{name}: {cause}' for _, cause in task(now_ns)}


def at_rest(replay, output):
    """Return joints that stand still, measured as an output leaves."""
    positions = np.zeros(len(replay.settings.robot.joints), np.float32)
    return RobotState(output.stamp_ns, output.stamp_ns - replay.start_ns, positions)


def play(bag, row):
    """Return targets and findings."""
    layout = discover(bag)
    parameters = dict(PARAMETERS)
    cameras = row.cameras or (() if layout.cameras else ('front',))
    if cameras:
        parameters['cameras'] = list(cameras)
    replay = make_replay(
        bag,
        layout,
        replay_settings(layout, parameters, start=row.start_s, duration=row.duration_s),
    )
    sinks = [findings := Findings(replay)]
    if not layout.joint_topic:  # the joints are not the matter of this recording
        findings.skip_joints()
        sinks.append(lambda output: replay.robot.sensors.put_state(at_rest(replay, output)))
    targets = replay.run(sinks).targets
    findings.look(len(targets) * TICK_NS)
    return targets, findings.found


@pytest.mark.parametrize('name', OUTCOMES)
def test_a_recording_ends_as_documented_and_its_fault_is_named(shared, name):
    row, path = OUTCOMES[name], shared / 'data' / 'bags' / name
    if isinstance(row, Refused):
        with pytest.raises(BagError) as caught, open_bag(path) as bag:
            discover(bag)
        assert row.because in str(caught.value)
        return
    with open_bag(path) as bag:
        targets, found = play(bag, row)
    for text in row.says:
        assert any(text in cause for cause in found), found
    assert all(any(text in cause for text in row.says + row.may_say) for cause in found), found
    if targets:
        check_targets(targets, row)
        assert targets[-1].hold_reason == row.ends_in


def stamps_of(path, camera):
    """Return the stamps of a camera's images and their bytes, in order."""
    with open_bag(path) as bag:
        [topic] = [found.topic for found in discover(bag).camera_topics if found.camera == camera]
        images = [bag.deserialize(message) for message in bag.messages({topic})]
    return [
        (image.header.stamp.sec * 10**9 + image.header.stamp.nanosec, bytes(image.data))
        for image in images
    ]


@pytest.mark.parametrize(
    ('name', 'camera', 'usable_s'),
    [
        ('odd/cam1_stops_at_6s', 'camera_1', 1.0),  # sensors.camera_max_age_s
        ('odd/cam0_frozen_pixels_fresh_stamps', 'camera_0', 2.0 + 0.2),
    ],
)  # frozen_after_s, a period
def test_the_hold_after_a_lost_camera_begins_within_its_bound(shared, name, camera, usable_s):
    path = shared / 'data' / 'bags' / name
    images = stamps_of(path, camera)
    last_ns = next(stamp_ns for stamp_ns, data in images if data == images[-1][1])
    with open_bag(path) as bag:
        targets, _ = play(bag, OUTCOMES[name])
    fresh_ns = max(
        target.header.stamp.sec * 10**9 + target.header.stamp.nanosec
        for target in targets
        if not target.held
    )
    max_observation_age_s = PARAMETERS['max_observation_age_ms'] * 1e-3
    assert 0.0 < (fresh_ns - last_ns) * 1e-9 <= usable_s + max_observation_age_s


def test_every_recording_of_the_shared_data_is_in_the_table(shared):
    folders = {
        f'{path.parent.name}/{path.name}'
        for path in (shared / 'data' / 'bags').glob('*/*')
        if path.is_dir()
    }
    assert folders == set(OUTCOMES)
