"""The middleware's transport, chosen before rclpy starts."""
from __future__ import annotations

import os
from pathlib import Path

_PROFILES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE',
             'FASTDDS_BUILTIN_TRANSPORTS')


def use_large_data_transport() -> None:
    """Give images room in shared memory, by a profile of Fast DDS.

    By default three 640x480 cameras at 30 Hz lose half of their best-effort frames between two
    processes of one machine, with the transport LARGE_DATA as well (it leaves the segment at
    512 KiB); with the profile none. It must be called before `rclpy.init` and in every process;
    what the user has set, a variable or a profile, is left as it is.
    """
    if any(name in os.environ for name in _PROFILES):
        return
    profile = Path(__file__).with_name('fastdds.xml')
    if profile.is_file():
        os.environ['FASTDDS_DEFAULT_PROFILES_FILE'] = str(profile)
    else:  # an installation without data files
        os.environ['FASTDDS_BUILTIN_TRANSPORTS'] = 'LARGE_DATA'
