# SPDX-License-Identifier: Apache-2.0
"""Observations: what makes one, and what is too old, too far apart or missing."""

import numpy as np
import pytest

from oxygen_ros.robot.sensor_config import SensorConfig
from oxygen_ros.robot.sensor_hub import SensorHub
from oxygen_ros.types import CameraFrame, RobotState

MS = 1_000_000
PIXELS = np.zeros((2, 2, 3), np.uint8)


def frame(camera, time_ms):
    return CameraFrame(camera, 10**18 + time_ms * MS, time_ms * MS, PIXELS)


def state(time_ms):
    return RobotState(10**18 + time_ms * MS, time_ms * MS, np.zeros(2, np.float32))


def hub(**settings):
    return SensorHub(SensorConfig(**{'cameras': ('left', 'right'), **settings}))


def put(sensors, time_ms, *cameras):
    for camera in cameras or sensors.config.cameras:
        sensors.put_frame(frame(camera, time_ms))


def cameras_of(observation):
    return None if observation is None else [frame.camera for frame in observation.frames]


def test_an_age_limit_holds_for_its_camera_alone():
    sensors = hub(camera_max_age_s=(0.1, 5.0))
    put(sensors, 0)
    assert cameras_of(sensors.observation(100 * MS)) == ['left', 'right']
    sensors = hub(camera_max_age_s=(0.1, 5.0))
    put(sensors, 0)
    assert sensors.observation(101 * MS) is None
    put(sensors, 101, 'left')
    assert cameras_of(sensors.observation(4000 * MS)) is None  # left again
    put(sensors, 4000, 'left')
    # The right one's image of 4 s ago is within its limit, but too far from the left one's.
    assert sensors.observation(4100 * MS) is None and sensors.skew_refused


def test_without_a_required_camera_there_is_no_observation_and_without_an_optional_one_there_is():
    sensors = hub(optional_cameras=('right',))
    put(sensors, 0, 'right')
    assert sensors.observation(50 * MS) is None
    put(sensors, 60, 'left')
    sensors.drop_frame('right')
    assert cameras_of(sensors.observation(90 * MS)) == ['left']
    put(sensors, 100)
    assert cameras_of(sensors.observation(110 * MS)) == ['left', 'right']


def test_images_further_apart_than_the_bound_are_refused_and_named_until_they_agree():
    sensors = hub(max_skew_s=0.05, assembly_wait_s=0.0)
    put(sensors, 0, 'left')
    put(sensors, 80, 'right')
    assert sensors.observation(90 * MS) is None
    assert sensors.skew_refused == 1
    assert sensors.newest_skew == 'left is 0.080 s behind right'
    put(sensors, 90, 'left')
    assert cameras_of(sensors.observation(95 * MS)) == ['left', 'right']


def test_a_dropped_camera_is_missing_at_once_and_back_with_its_next_image():
    sensors = hub()
    put(sensors, 0)
    sensors.drop_frame('left')
    assert sensors.observation(MS) is None
    put(sensors, 2)
    assert cameras_of(sensors.observation(3 * MS)) == ['left', 'right']


def test_what_is_fresh_outlives_a_restart_and_is_new_again():
    sensors = hub()
    put(sensors, 0)
    sensors.put_state(state(0))
    assert sensors.observation(10 * MS).observation_id == 1
    sensors.restart()
    again = sensors.observation(20 * MS)
    assert again.observation_id == 1 and again.state is not None
    assert sensors.newest_state() is not None


def test_what_is_too_old_at_a_restart_is_not_used():
    sensors = hub(state_max_age_s=0.5)
    put(sensors, 0)
    sensors.put_state(state(0))
    sensors.restart()
    assert sensors.observation(2000 * MS) is None and sensors.state(2000 * MS) is None


def test_after_a_jump_of_time_nothing_is_left():
    sensors = hub()
    put(sensors, 0)
    sensors.put_state(state(0))
    sensors.clear()
    assert sensors.observation(MS) is None and sensors.newest_state() is None


@pytest.mark.parametrize(
    ('settings', 'named'),
    [
        ({'camera_max_age_s': (1.0, 1.0, 1.0)}, 'camera_max_age_s: expected 1 or 2 values'),
        (
            {'camera_max_age_s': (1.0, 0.0)},
            'sensors.camera_max_age_s: expected 0.001 to 3600, got 0',
        ),
        (
            {'state_max_age_s': float('nan')},
            'sensors.state_max_age_s: expected 0.001 to 3600, got nan',
        ),
        (
            {'optional_cameras': ('up',)},
            "optional_cameras: expected names from cameras, got .'up'",
        ),
        ({'cameras': ()}, 'cameras: expected at least one name'),
        ({'assembly_wait_s': -1.0}, 'sensors.assembly_wait_s: expected 0 to 10, got -1'),
    ],
)
def test_settings_that_cannot_be_meant_are_named(settings, named):
    with pytest.raises(ValueError, match=named):
        hub(**settings)
