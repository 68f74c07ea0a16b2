# SPDX-License-Identifier: Apache-2.0
"""The ingest of images and joint states: stamps, order, refusals; no middleware."""

from __future__ import annotations

from array import array
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from oxygen_ros.ingest import CameraRules, CameraSink, IngestRules, JointStream, Receipt
from oxygen_ros.robot.cameras import CameraInputs
from oxygen_ros.robot.faults import FaultLog, ListLogger
from oxygen_ros.runtime.ingest_thread import IngestThread

SECOND = 1_000_000_000
TIMEOUT_S = 60.0


OFFSET_NS = 1_700_000_000 * SECOND


class Clock:
    """This machine's steady clock, and ROS time at a fixed distance from it."""

    def now_ns(self):
        return time.monotonic_ns()

    def offset_ns(self):
        return OFFSET_NS


class Ingest:
    """An ingest of one camera, and what came out of it."""

    def __init__(self):
        self.clock = Clock()
        self.frames, self.dropped, self.jumps, self.resized = [], [], [], []
        self.hold = threading.Event()
        self.hold.set()
        self.faults = FaultLog(ListLogger())
        images = threading.Event()
        sink = CameraSink(self.put, self.dropped.append, self.jumps.append, self.resized.append)
        self.cameras = CameraInputs(
            ('cam',),
            CameraRules(0.05, frozen_after_s=2.0),
            self.clock,
            sink,
            self.faults,
            images.set,
        )
        self.thread = IngestThread(self.cameras.decode_newest, images)
        self.counts = self.cameras.inputs['cam'].counts
        self.start()

    def start(self):
        self.cameras.begin()
        self.thread.start()

    def bring(self, message):
        """Bring a message, as a callback does."""
        receipt = Receipt(self.clock.now_ns(), OFFSET_NS)
        self.cameras.offer('cam', message, message.stamp_ns, receipt)

    def put(self, frame):
        self.hold.wait(TIMEOUT_S)
        self.frames.append(frame)

    def offer(self, message):
        """Offer a message and wait until it has been dealt with."""
        before = self.num_done()
        self.bring(message)
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
        return self.clock.now_ns() + OFFSET_NS


@pytest.fixture
def rig():
    """Return an ingest that ends with the test."""
    rig = Ingest()
    yield rig
    rig.thread.stop()


def image(stamp_ns, **fields):
    message = SimpleNamespace(
        **{'height': 2, 'width': 3, 'encoding': 'rgb8', 'step': 9, 'is_bigendian': 0, **fields}
    )
    message.stamp_ns = stamp_ns
    message.data = array('B', range(message.height * message.step))
    return message


def compressed(data=()):
    return SimpleNamespace(format='jpeg', data=array('B', data), stamp_ns=1)


def test_an_image_becomes_a_frame_with_its_stamp_on_both_clocks(rig):
    stamp_ns = rig.now_ns() - SECOND
    rig.offer(image(stamp_ns))
    (frame,) = rig.frames
    assert frame.stamp_ns == stamp_ns
    assert frame.steady_ns == pytest.approx(stamp_ns - OFFSET_NS)
    assert frame.image.tolist() == np.arange(18).reshape(2, 3, 3).tolist()
    assert rig.cameras.inputs['cam'].stream.size == (3, 2)


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
        compressed([1, 2, 3]),
        compressed(),
    ],
    ids=['step', 'depth', 'size', 'garbage', 'empty'],
)
def test_what_is_no_image_is_refused_and_named(rig, message):
    message.stamp_ns = rig.now_ns()
    rig.offer(message)
    assert not rig.frames
    assert rig.counts.refused == 1 and 'expected' in rig.counts.newest_problem
    assert not rig.faults.counts
    rig.offer(image(rig.now_ns()))
    assert len(rig.frames) == 1


def test_while_one_image_is_decoded_only_the_newest_of_the_next_waits(rig):
    rig.hold.clear()
    stamps = [rig.now_ns() - SECOND + step for step in range(5)]
    rig.bring(image(stamps[0]))
    rig.wait_for(lambda: rig.counts.decoded == 1)
    for stamp_ns in stamps[1:]:
        rig.bring(image(stamp_ns))
    rig.hold.set()
    rig.wait_for(lambda: len(rig.frames) == 2)
    assert [frame.stamp_ns for frame in rig.frames] == [stamps[0], stamps[-1]]
    assert rig.cameras.inputs['cam'].slot.num_superseded == 3


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
    states = []
    joints = JointStream(('a', 'b'), IngestRules(), states.append)
    now_ns = OFFSET_NS + 5 * SECOND

    def take(names, positions, stamp_ns=0):
        joints.take(names, positions, stamp_ns, Receipt(5 * SECOND, OFFSET_NS))

    take(['b', 'x', 'a'], [2.0, 9.0, 1.0], now_ns - SECOND)
    assert states[0].positions.tolist() == [1.0, 2.0]
    assert states[0].stamp_ns == now_ns - SECOND
    take(['a', 'b'], [1.0, float('nan')])
    take(['a'], [1.0])
    assert len(states) == 1 and joints.counts.refused == 2
    assert 'b' in joints.counts.newest_problem
    take(['a', 'b'], [1.0, 2.0])
    assert joints.counts.replaced_stamps == 1
    assert states[1].stamp_ns == now_ns


def test_what_came_while_stopped_is_seen_at_the_start(rig):
    rig.thread.stop()
    stamps = [rig.now_ns() - SECOND + step for step in range(3)]
    for stamp_ns in stamps:
        rig.bring(image(stamp_ns))
    rig.start()
    rig.wait_for(lambda: bool(rig.frames))
    assert [frame.stamp_ns for frame in rig.frames] == stamps[-1:]


def test_what_came_before_a_jump_of_time_is_not_used(rig):
    rig.thread.stop()
    stamp_ns = rig.now_ns() - SECOND // 2
    rig.bring(image(stamp_ns))
    rig.cameras.forget()
    rig.start()
    rig.offer(image(stamp_ns + 1))
    assert [frame.stamp_ns for frame in rig.frames] == [stamp_ns + 1]


def test_stamps_of_before_a_jump_of_time_bind_nothing_after_it(rig):
    stamp_ns = rig.now_ns() - SECOND // 2
    rig.offer(image(stamp_ns))
    rig.cameras.forget()
    rig.offer(image(stamp_ns - SECOND // 10))  # older by too little to be a jump of its own
    assert [frame.stamp_ns for frame in rig.frames] == [stamp_ns, stamp_ns - SECOND // 10]
    assert not rig.jumps and not rig.counts.backward
