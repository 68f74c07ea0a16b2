# SPDX-License-Identifier: Apache-2.0
"""The middleware's transport, chosen before rclpy starts.

Upstream: ros2/rmw_fastrtps issue 739 (best-effort messages above 0.5 MB get lost, open) for the
segment; eProsima/Fast-DDS issue 6535 (open) for the health checks; for questions about types no
issue is known. Seen with Fast DDS 3.2.3. A setting of `fastdds.xml` may go when the default of its
issue has changed, the file and this module when all of them have (`test_transport.py`).
"""

from __future__ import annotations

import os
from pathlib import Path

_PROFILES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')
_TRANSPORTS = 'FASTDDS_BUILTIN_TRANSPORTS'


def use_large_data_transport() -> None:
    """Give images room in shared memory, by a profile of Fast DDS.

    By default three 640x480 cameras at 30 Hz lose half of their best-effort frames between two
    processes of one machine, with the transport LARGE_DATA as well (its segment is 512 KiB); with
    the profile none. LARGE_DATA is set for where the profile is missing. Call it before
    `rclpy.init`, in every process; another transport or profile that the user has chosen is left.
    """
    if os.environ.setdefault(_TRANSPORTS, 'LARGE_DATA') != 'LARGE_DATA':
        return
    profile = Path(__file__).with_name('fastdds.xml')
    if profile.is_file() and not any(name in os.environ for name in _PROFILES):
        os.environ[_PROFILES[0]] = str(profile)
