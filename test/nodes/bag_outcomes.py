# SPDX-License-Identifier: Apache-2.0
"""What the node makes of every recording of the shared data: one row each, and how it is checked.

A row holds in process on virtual time and, all the same, over DDS.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from oxygen_ros.control import hold_reasons

# Recordings of five images a second, with 0.6 s between two episodes, are within this.
PARAMETERS = {'max_observation_age_ms': 1000.0, 'memory.period_s': 0.0}
MAX_STEP = 2.0 * 0.02  # limits.max_velocity in one tick


@dataclass(frozen=True)
class Plays:
    """A recording that is played.

    `says` is what diagnostics find, each once at least, `may_say` what they find where they look
    at the right moment; nothing else is found.
    """

    says: tuple[str, ...] = ()
    may_say: tuple[str, ...] = ()
    moves: bool = True  # targets come of it
    ends_in: str = ''  # reason of the hold at the end of what is played; empty: none
    start_s: float = 0.0
    duration_s: float = 2.0
    cameras: tuple[str, ...] = ()  # of the robot; empty: the recording's


@dataclass(frozen=True)
class Refused:
    """A recording that cannot be played, and what the error says."""

    because: str


def lost(*says, **changes):
    """A recording that gives no usable image."""
    return Plays(says, moves=False, ends_in=hold_reasons.NO_CHUNK, **changes)


FINE = Plays()
NO_IMAGES = lost('camera front: no image so far')
NOTHING = Refused('expected a recording with messages, got one without any')

OUTCOMES: dict[str, Plays | Refused] = {
    'real/bridge_3cam_mcap': FINE,
    'real/bridge_3cam_db3': FINE,
    'real/bridge_3cam_raw_mcap': FINE,
    'real/donkey_compressed_mcap': FINE,
    'real/donkey_raw_bgr8_db3': FINE,
    # One image, which was recorded more than a second after its stamp.
    'real/raspicam_aruco_mcap': lost(
        'camera raspicam_node: newest image is', may_say=('camera raspicam_node: no image so far',)
    ),
    'real/rosnumpy_image_mcap': Plays(('camera image: ', 'stamps were zero or in the future')),
    'real/joint_states_1khz_mcap': NO_IMAGES,
    'real/libero_SIM_two_camera_frame': Refused('got a folder without storage files'),
    'native/nav2_clock_zstd_mcap': NO_IMAGES,
    'native/pj_imu_pose_battery_db3': NO_IMAGES,
    'native/rosbag2_empty_db3': NOTHING,
    'native/rosbag2_file_compression': NO_IMAGES,
    'native/rosbag2_mcap_bag_with_topics_and_service_events': NO_IMAGES,
    'native/rosbag2_mcap_talker': NO_IMAGES,
    'native/rosbag2_mcap_wbag': NO_IMAGES,
    'native/rosbag2_mcap_wrong_rmw_test': Refused('serialised as cdr, got wrong_format'),
    'native/rosbag2_message_compression': NO_IMAGES,
    'native/rosbag2_split_nometa_mcap': NO_IMAGES,
    'native/rosbag2_sqlite3_talker': NO_IMAGES,
    'native/rosbag2_sqlite3_wbag': NO_IMAGES,
    'native/rosbag2_sqlite3_wrong_rmw_test': Refused('serialised as cdr, got wrong_format'),
    'odd/cam0_frozen_pixels_fresh_stamps': Plays(
        ('camera camera_0: frozen: the same pixels for',),
        start_s=5.0,
        duration_s=5.0,
        ends_in=hold_reasons.STALE_OBSERVATION,
    ),
    'odd/cam1_stops_at_6s': Plays(
        ('camera camera_1: newest image is',),
        start_s=5.0,
        duration_s=4.0,
        ends_in=hold_reasons.STALE_OBSERVATION,
    ),
    'odd/cam2_never': lost(
        'camera camera_2: no image so far', cameras=('camera_0', 'camera_1', 'camera_2')
    ),
    'odd/compressed_depth': lost('camera front: ', 'which is depth'),
    'odd/data_short': lost('data: expected 57600 bytes (120 rows of 480), got 57'),
    'odd/empty_mcap': NOTHING,
    'odd/enc_16UC1_depth_mm': lost('encoding: expected a colour image, got 16UC1, which is depth'),
    'odd/enc_8UC3': FINE,
    'odd/enc_bgra8': FINE,
    'odd/enc_mono16_be': FINE,
    'odd/enc_mono16_le': FINE,
    'odd/enc_mono8': FINE,
    'odd/enc_rgb8': FINE,
    'odd/enc_rgba8': FINE,
    'odd/enc_unknown_name': lost("got 'rgb888_vendor'"),
    'odd/enc_yuv422_yuy2': FINE,
    'odd/frame_id_empty': FINE,
    'odd/joint_states_len_mismatch': Plays(
        (
            'joint states: no joint state that can be used',
            'refused, last: position: expected 7 values, one for each name, got',
        ),
        moves=False,
        ends_in=hold_reasons.NO_STATE,
    ),
    'odd/joint_states_nan': Plays(
        (
            'refused, last: position: expected finite values, got roll = nan',
            'joint states: newest joint state is',
        ),
        start_s=5.0,
        duration_s=4.0,
        ends_in=hold_reasons.STALE_STATE,
    ),
    'odd/jpeg_empty': lost('data: expected a JPEG or PNG image, got no bytes'),
    'odd/jpeg_format_long': FINE,
    'odd/jpeg_format_wrong': FINE,
    'odd/jpeg_garbage': lost('data: expected a JPEG or PNG image, got 2048 bytes that begin with'),
    'odd/jpeg_truncated': lost('data: expected a whole JPEG image, got'),
    'odd/no_metadata_db3': FINE,
    'odd/no_metadata_mcap': FINE,
    'odd/png_compressed': FINE,
    'odd/size_changes_midstream': Plays(('camera front: size changed from 160x120 to 80x60',)),
    'odd/size_zero': lost('height: expected at least 1 pixels, got 0'),
    'odd/stamp_future_10s': Plays(('stamps were zero or in the future',)),
    'odd/stamp_zero': Plays(('stamps were zero or in the future',)),
    'odd/step_padded_rgb8': FINE,
    'odd/step_too_small': lost('step: expected at least 480 bytes (160 pixels bgr8), got 160'),
    'odd/step_zero': lost('step: expected at least 480 bytes (160 pixels bgr8), got 0'),
    'odd/truncated_db3': FINE,
    'odd/truncated_mcap': FINE,
    'odd/zero_length_mcap': Refused('got an empty file'),
    'odd/zstd_file_db3': FINE,
    'odd/zstd_storage_mcap': FINE,
}


def check_targets(targets: list, row: Plays) -> None:
    """Check that the targets are finite, within their step, and held as the row says.

    :param targets: oxygen_ros/msg/Target of consecutive ticks.
    """
    fresh = [target for target in targets if not target.held]
    assert bool(fresh) == row.moves, {target.hold_reason for target in targets}
    for before, after in pairwise(targets):
        most = (after.tick - before.tick) * MAX_STEP + 1e-6  # NaN, not known yet, passes
        assert not any(
            abs(other - one) > most for one, other in zip(before.positions, after.positions)
        ), (before, after)
    for target in fresh:
        assert all(abs(value) < float('inf') for value in target.positions), target
