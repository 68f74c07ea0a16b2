# SPDX-License-Identifier: Apache-2.0
"""What diagnostics say of sensors: what is, as long as it is; what has happened, for a while."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from oxygen_ros.ingest import (
    CameraRules,
    CameraSink,
    CameraStream,
    IngestRules,
    JointStream,
    Receipt,
)
from oxygen_ros.robot.findings import CameraFindings, JointFindings
from oxygen_ros.robot.sensor_config import SensorConfig
from oxygen_ros.robot.sensor_hub import SensorHub
from oxygen_ros.robot.status import Level

ERROR, WARN = Level.ERROR, Level.WARN

SECOND = 1_000_000_000
OFFSET_NS = 1_700_000_000 * SECOND


class Camera:
    """A camera, its hub and who looks at it."""

    def __init__(self, **config):
        self.hub = SensorHub(SensorConfig(cameras=('cam', 'other'), **config))
        nobody = [lambda camera: None] * 2
        sink = CameraSink(self.hub.put_frame, self.hub.drop_frame, *nobody)
        self.stream = CameraStream('cam', CameraRules(frozen_after_s=1.0), sink)
        self.findings = CameraFindings(self.stream, self.hub)

    def send(self, now_s, picture=0, size=(4, 2), step=12):
        pixels = np.full(size[0] * size[1] * 3, picture, np.uint8)
        message = SimpleNamespace(
            encoding='rgb8', width=size[0], height=size[1], step=step, is_bigendian=0, data=pixels
        )
        self.stream.counts.received += 1
        now_ns = round(now_s * SECOND)
        self.stream.take(message, now_ns + OFFSET_NS, Receipt(now_ns, OFFSET_NS))

    def read(self, now_s, is_active=True):
        return self.findings.read(round(now_s * SECOND), is_active)


def test_a_sound_camera_is_without_findings():
    camera = Camera()
    camera.send(1.0)
    assert camera.read(1.5) == []


@pytest.mark.parametrize(('optional', 'level'), [((), ERROR), (('cam',), WARN)])
def test_a_lost_camera_is_an_error_where_it_is_required_and_a_warning_where_not(optional, level):
    camera = Camera(optional_cameras=optional)
    assert camera.read(0.0) == [(level, 'no image so far')]
    camera.send(1.0)
    assert camera.read(2.5) == [(level, 'newest image is 1.5 s old')]
    camera.send(2.6, picture=1)
    assert camera.read(2.7) == []


def test_the_age_that_counts_is_that_of_the_camera():
    camera = Camera(camera_max_age_s=(3.0, 0.1))
    camera.send(1.0)
    assert camera.read(3.9) == []
    assert camera.read(4.1) == [(ERROR, 'newest image is 3.1 s old')]


def test_while_nothing_is_decoded_an_old_image_is_no_finding():
    camera = Camera()
    camera.send(1.0)
    assert camera.read(60.0, is_active=False) == []


def test_a_frozen_camera_is_named_until_its_pixels_change():
    camera = Camera()
    for tenth in range(15):
        camera.send(tenth / 10, picture=7)
    [(level, cause)] = camera.read(1.4)
    assert level == ERROR and 'frozen: the same pixels for 1.4 s' in cause
    camera.send(1.5, picture=8)
    assert camera.read(1.5) == []


def test_a_refusal_is_a_finding_for_ten_seconds_and_not_for_ever():
    camera = Camera()
    camera.send(1.0, step=1)
    camera.send(1.1)
    [(level, cause)] = camera.read(1.2)
    assert level == WARN and cause.startswith('1 refused, last: step: expected at least 12 bytes')
    for second in range(2, 11):
        camera.send(second, picture=second)
        assert camera.read(second)
    camera.send(12, picture=12)
    assert camera.read(12) == []


def test_another_size_is_a_finding_as_long_as_it_lasts():
    camera = Camera()
    camera.send(1.0)
    camera.send(1.1, size=(2, 4), step=6)
    assert camera.read(1.2) == [(WARN, 'size changed from 4x2 to 2x4, turned')]
    camera.send(1.3)
    assert camera.read(1.4) == []


def test_joint_states_are_missing_unusable_or_old():
    hub = SensorHub(SensorConfig(cameras=('cam',), state_max_age_s=0.5))
    stream = JointStream(('a',), IngestRules(), hub.put_state)
    findings = JointFindings(stream, hub)

    def send(now_s, name):
        stream.counts.received += 1
        now_ns = round(now_s * SECOND)
        stream.take([name], [0.0], now_ns + OFFSET_NS, Receipt(now_ns, OFFSET_NS))

    assert findings.read(0) == [(ERROR, 'no joint state so far')]
    send(1.0, 'b')
    assert [level for level, _ in findings.read(SECOND)] == [ERROR, WARN]
    send(20.0, 'a')
    assert findings.read(20 * SECOND) == []
    assert findings.read(21 * SECOND) == [(ERROR, 'newest joint state is 1.0 s old')]
