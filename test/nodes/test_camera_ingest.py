# SPDX-License-Identifier: Apache-2.0
"""The ingest of images and joint states: stamps, order, refusals; no middleware."""

from __future__ import annotations

from array import array
import threading
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the messages are those of ROS')
from rclpy.clock import Clock
from sensor_msgs.msg import CompressedImage, Image, JointState

from oxygen_ros.ingest import CameraRules, CameraSink, IngestRules
from oxygen_ros.nodes.clocks import ClockBridge, ns_of, stamp_of
from oxygen_ros.nodes.faults import FaultLog
from oxygen_ros.nodes.middleware.sequence_gaps import SequenceGaps
from oxygen_ros.nodes.sensors.camera_ingest import CameraIngest
from oxygen_ros.nodes.sensors.joint_state_input import JointStateInput

SECOND = 1_000_000_000
TIMEOUT_S = 10.0


class Logger:
    """Takes what would be logged."""

    def __init__(self):
        self.lines = []

    def error(self, line):
        self.lines.append(line)


class Ingest:
    """An ingest of one camera, and what came out of it."""

    def __init__(self):
        self.clock = Clock()
        self.bridge = ClockBridge(self.clock)
        self.frames, self.dropped, self.jumps, self.resized = [], [], [], []
        self.hold = threading.Event()
        self.hold.set()
        self.faults = FaultLog(Logger())
        sink = CameraSink(self.put, self.dropped.append, self.jumps.append, self.resized.append)
        self.ingest = CameraIngest(
            ('cam',), CameraRules(0.05, frozen_after_s=2.0), self.bridge, sink, self.faults
        )
        self.counts = self.ingest.inputs['cam'].counts
        self.ingest.start()

    def put(self, frame):
        self.hold.wait(TIMEOUT_S)
        self.frames.append(frame)

    def offer(self, message):
        """Offer a message and wait until it has been dealt with."""
        before = self.num_done()
        self.ingest.offer('cam', message)
        self.wait_for(lambda: self.num_done() > before and len(self.frames) == self.counts.decoded)

    def num_done(self):
        counts = self.counts
        return counts.decoded + counts.refused + counts.repeated + counts.backward + counts.frozen

    def wait_for(self, condition):
        deadline_s = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline_s
            time.sleep(0.0005)

    def now_ns(self):
        return self.clock.now().nanoseconds


@pytest.fixture
def rig():
    """Return an ingest that ends with the test."""
    rig = Ingest()
    yield rig
    rig.ingest.stop()


def image(stamp_ns, **fields):
    message = Image(**{'height': 2, 'width': 3, 'encoding': 'rgb8', 'step': 9, **fields})
    message.header.stamp = stamp_of(stamp_ns)
    message.data = array('B', range(message.height * message.step))
    return message


def test_an_image_becomes_a_frame_with_its_stamp_on_both_clocks(rig):
    stamp_ns = rig.now_ns() - SECOND
    rig.offer(image(stamp_ns))
    (frame,) = rig.frames
    assert frame.stamp_ns == stamp_ns
    # An offset is off by as long as it is interrupted between its two clocks.
    assert frame.steady_ns == pytest.approx(stamp_ns - rig.bridge.offset_ns(), abs=SECOND // 2)
    assert frame.image.tolist() == np.arange(18).reshape(2, 3, 3).tolist()
    assert rig.ingest.inputs['cam'].stream.size == (3, 2)


@pytest.mark.parametrize('stamp', ['zero', 'future'])
def test_a_stamp_that_cannot_be_meant_gives_way_to_the_time_of_receipt(rig, stamp):
    before_ns = rig.now_ns()
    rig.offer(image(0 if stamp == 'zero' else before_ns + 10 * SECOND))
    (frame,) = rig.frames
    assert before_ns - SECOND <= frame.stamp_ns <= rig.now_ns() + SECOND
    assert rig.counts.replaced_stamps == 1


def test_a_repeated_stamp_and_an_older_one_are_counted_and_dropped(rig):
    stamp_ns = rig.now_ns() - SECOND
    rig.offer(image(stamp_ns))
    rig.offer(image(stamp_ns))
    rig.offer(image(stamp_ns - SECOND // 10))
    assert len(rig.frames) == 1
    assert (rig.counts.repeated, rig.counts.backward) == (1, 1)
    assert not rig.jumps


def test_a_jump_back_in_time_is_reported_and_the_image_taken(rig):
    stamp_ns = rig.now_ns() - SECOND
    rig.offer(image(stamp_ns))
    rig.offer(image(stamp_ns - 60 * SECOND))
    assert [frame.stamp_ns for frame in rig.frames] == [stamp_ns, stamp_ns - 60 * SECOND]
    assert rig.jumps == ['cam']


@pytest.mark.parametrize(
    'message',
    [
        image(1, step=1),
        image(1, encoding='32FC1'),
        image(1, width=0),
        CompressedImage(format='jpeg', data=array('B', [1, 2, 3])),
        CompressedImage(format='jpeg'),
    ],
    ids=['step', 'depth', 'size', 'garbage', 'empty'],
)
def test_what_is_no_image_is_refused_and_named(rig, message):
    message.header.stamp = stamp_of(rig.now_ns())
    rig.offer(message)
    assert not rig.frames
    assert rig.counts.refused == 1 and 'expected' in rig.counts.newest_problem
    assert not rig.faults.counts
    rig.offer(image(rig.now_ns()))
    assert len(rig.frames) == 1


def test_while_one_image_is_decoded_only_the_newest_of_the_next_waits(rig):
    rig.hold.clear()
    stamps = [rig.now_ns() - SECOND + step for step in range(5)]
    rig.ingest.offer('cam', image(stamps[0]))
    rig.wait_for(lambda: rig.counts.decoded == 1)
    for stamp_ns in stamps[1:]:
        rig.ingest.offer('cam', image(stamp_ns))
    rig.hold.set()
    rig.wait_for(lambda: len(rig.frames) == 2)
    assert [frame.stamp_ns for frame in rig.frames] == [stamps[0], stamps[-1]]
    assert rig.ingest.inputs['cam'].slot.num_superseded == 3


def test_a_fault_of_the_decoder_is_noted_and_the_thread_goes_on(rig, monkeypatch):
    def fail(*args):
        raise RuntimeError('broken on purpose')

    with monkeypatch.context() as patch:
        patch.setattr('oxygen_ros.ingest.camera_stream.decode_image', fail)
        rig.offer(image(rig.now_ns()))
    assert rig.faults.counts['ingest of cam'] == 1
    rig.offer(image(rig.now_ns()))
    assert len(rig.frames) == 1


def test_joint_states_are_mapped_by_name_and_wrong_ones_are_named():
    clock = Clock()
    states = []
    joints = JointStateInput(('a', 'b'), IngestRules(), ClockBridge(clock), states.append)
    message = JointState(
        name=['b', 'x', 'a'], position=[2.0, 9.0, 1.0], velocity=[float('nan')] * 3
    )
    message.header.stamp = stamp_of(clock.now().nanoseconds - SECOND)
    joints.offer(message)
    assert states[0].positions.tolist() == [1.0, 2.0]
    assert states[0].stamp_ns == ns_of(message.header.stamp)
    joints.offer(JointState(name=['a', 'b'], position=[1.0, float('nan')]))
    joints.offer(JointState(name=['a'], position=[1.0]))
    assert len(states) == 1 and joints.counts.refused == 2
    assert 'b' in joints.counts.newest_problem
    joints.offer(JointState(name=['a', 'b'], position=[1.0, 2.0]))
    assert joints.counts.replaced_stamps == 1
    assert states[1].stamp_ns == pytest.approx(clock.now().nanoseconds, abs=SECOND)


def test_what_came_while_stopped_is_seen_at_the_start(rig):
    rig.ingest.stop()
    stamps = [rig.now_ns() - SECOND + step for step in range(3)]
    for stamp_ns in stamps:
        rig.ingest.offer('cam', image(stamp_ns))
    rig.ingest.start()
    rig.wait_for(lambda: bool(rig.frames))
    assert [frame.stamp_ns for frame in rig.frames] == stamps[-1:]


def test_what_came_before_a_jump_of_time_is_not_used(rig):
    rig.ingest.stop()
    stamp_ns = rig.now_ns() - SECOND // 2
    rig.ingest.offer('cam', image(stamp_ns))
    rig.ingest.forget()
    rig.ingest.start()
    rig.offer(image(stamp_ns + 1))
    assert [frame.stamp_ns for frame in rig.frames] == [stamp_ns + 1]


def test_stamps_of_before_a_jump_of_time_bind_nothing_after_it(rig):
    stamp_ns = rig.now_ns() - SECOND // 2
    rig.offer(image(stamp_ns))
    rig.ingest.forget()
    rig.offer(image(stamp_ns - SECOND // 10))  # older by too little to be a jump of its own
    assert [frame.stamp_ns for frame in rig.frames] == [stamp_ns, stamp_ns - SECOND // 10]
    assert not rig.jumps and not rig.counts.backward


def test_what_the_middleware_replaced_is_counted_and_a_new_publisher_is_no_gap():
    gaps = SequenceGaps()
    for number in (1, 2, 5, 6, 1, 2, 4):  # two missing, a publisher anew, one missing
        gaps.take({'publication_sequence_number': number})
    gaps.take({})
    assert gaps.missed == 3
