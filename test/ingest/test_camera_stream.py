# SPDX-License-Identifier: Apache-2.0
"""A camera's messages: stamps of every kind, pictures that stand still, sizes that change."""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest

from oxygen_ros.ingest import CameraRules, CameraSink, CameraStream, Receipt

SECOND = 1_000_000_000
MS = 1_000_000
OFFSET_NS = 1_700_000_000 * SECOND  # ROS time minus steady time


class Camera:
    """A stream, its clock, and what came out of it."""

    def __init__(self, **rules):
        self.frames, self.dropped, self.jumps, self.resized = [], [], [], []
        self.stream = CameraStream(
            'cam',
            CameraRules(**rules),
            CameraSink(
                self.frames.append, self.dropped.append, self.jumps.append, self.resized.append
            ),
        )
        self.counts = self.stream.counts
        self.now_ns = 100 * SECOND  # steady

    def send(self, age_ns=0, picture=0, size=(16, 12), stamp_ns=None):
        """Send an image of one colour; return whether it became a frame."""
        width, height = size
        message = SimpleNamespace(
            encoding='rgb8',
            width=width,
            height=height,
            step=3 * width,
            is_bigendian=0,
            data=array('B', np.full(3 * width * height, picture % 256, np.uint8).tobytes()),
        )
        if stamp_ns is None:
            stamp_ns = self.now_ns + OFFSET_NS - age_ns
        return self.stream.take(message, stamp_ns, Receipt(self.now_ns, OFFSET_NS))

    def send_for(self, duration_s, picture=None, period_ms=100):
        """Send images at a steady rate; None: all different."""
        for number in range(round(duration_s * 1e3 / period_ms)):
            self.now_ns += period_ms * MS
            self.send(picture=number if picture is None else picture)


def test_a_stamp_ahead_by_less_than_the_tolerance_is_kept_and_no_latency_is_negative():
    camera = Camera(future_tolerance_s=0.05)
    assert camera.send(age_ns=-30 * MS)
    [frame] = camera.frames
    assert frame.stamp_ns == camera.now_ns + OFFSET_NS + 30 * MS
    assert frame.steady_ns == camera.now_ns
    assert camera.counts.replaced_stamps == 0


@pytest.mark.parametrize('stamp_ns', [0, -5, OFFSET_NS + 200 * SECOND, 2**62])
def test_a_stamp_of_zero_or_far_ahead_gives_way_to_the_time_of_receipt(stamp_ns):
    camera = Camera()
    assert camera.send(stamp_ns=stamp_ns)
    [frame] = camera.frames
    assert (frame.stamp_ns, frame.steady_ns) == (camera.now_ns + OFFSET_NS, camera.now_ns)
    assert camera.counts.replaced_stamps == 1


def test_a_late_stamp_is_kept_so_that_the_age_limit_can_refuse_it():
    camera = Camera()
    camera.send(age_ns=37 * SECOND)
    [frame] = camera.frames
    assert camera.now_ns - frame.steady_ns == 37 * SECOND


def test_repeated_and_older_stamps_are_dropped_and_a_jump_is_told():
    camera = Camera()
    assert camera.send(age_ns=100 * MS)
    assert not camera.send(age_ns=100 * MS)
    assert not camera.send(age_ns=200 * MS)
    assert (camera.counts.repeated, camera.counts.backward, camera.jumps) == (1, 1, [])
    assert camera.send(age_ns=10 * SECOND)
    assert camera.jumps == ['cam'] and len(camera.frames) == 2


def test_pixels_that_stand_still_while_stamps_go_on_are_a_lost_camera_until_they_change():
    camera = Camera(frozen_after_s=1.0)
    camera.send_for(0.5)
    before = len(camera.frames)
    camera.send_for(1.0, picture=77)  # the first of the same pixels, and 0.9 s of repetition
    assert len(camera.frames) == before + 10 and not camera.dropped
    assert camera.stream.frozen_s is None
    camera.send_for(1.0, picture=77)
    # It is dropped with the first image that is too still, and nothing of it is used any more.
    assert len(camera.frames) == before + 11 and camera.dropped == ['cam'] * 9
    assert camera.counts.frozen == 9 and camera.stream.frozen_s == pytest.approx(1.9)
    camera.send_for(0.1, picture=78)
    assert len(camera.frames) == before + 12 and camera.stream.frozen_s is None


def test_one_pixel_is_enough_to_be_alive():
    camera = Camera(frozen_after_s=1.0)
    picture = np.zeros((12, 16, 3), np.uint8)
    for number in range(50):
        camera.now_ns += 100 * MS
        picture[5, 3, 1] = number % 2
        message = SimpleNamespace(
            encoding='rgb8',
            width=16,
            height=12,
            step=48,
            is_bigendian=0,
            data=array('B', picture.tobytes()),
        )
        assert camera.stream.take(
            message, camera.now_ns + OFFSET_NS, Receipt(camera.now_ns, OFFSET_NS)
        )
    assert not camera.dropped


def test_without_a_limit_a_picture_may_stand_still_for_ever():
    camera = Camera(frozen_after_s=0.0)
    camera.send_for(60.0, picture=1)
    assert len(camera.frames) == 600 and not camera.dropped


def test_a_pause_of_the_node_is_no_stillness():
    camera = Camera(frozen_after_s=1.0)
    camera.send_for(0.5, picture=1)
    camera.now_ns += 600 * SECOND
    camera.stream.begin()
    camera.send_for(0.5, picture=1)
    assert len(camera.frames) == 10 and not camera.dropped


def test_another_size_is_told_before_its_first_frame_and_the_image_is_used():
    camera = Camera()
    camera.send_for(0.2)
    camera.now_ns += 100 * MS
    assert camera.send(size=(12, 16))
    assert camera.resized == ['cam'] and camera.counts.resized == 1
    assert (camera.stream.first_size, camera.stream.size) == ((16, 12), (12, 16))
    assert camera.frames[-1].image.shape == (16, 12, 3)
    camera.send_for(0.2)  # back again: another change
    assert camera.counts.resized == 2 and camera.stream.size == camera.stream.first_size


@pytest.mark.parametrize('rules', [{'frozen_after_s': -1.0}, {'future_tolerance_s': float('nan')}])
def test_rules_that_cannot_be_meant_are_refused(rules):
    with pytest.raises(ValueError, match=f'sensors.{next(iter(rules))}: expected 0 to'):
        CameraRules(**rules)
