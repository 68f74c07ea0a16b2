# SPDX-License-Identifier: Apache-2.0
"""The middleware as the package's own processes set it up, seen in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import sys

import pytest

pytest.importorskip('rclpy', reason='the middleware comes with it')
from own_domain import DOMAIN

CODE = """
from pathlib import Path
from oxygen_ros.nodes.middleware.transport import use_large_data_transport
use_large_data_transport()
import rclpy
rclpy.init()
node = rclpy.create_node('alone')
for task in Path('/proc/self/task').iterdir():
    print((task / 'comm').read_text().strip())
node.destroy_node()
rclpy.try_shutdown()
"""


def test_a_participant_answers_no_questions_about_types():
    """The thread that does could find its participant half destroyed, and end the process."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTDDS_BUILTIN_TRANSPORTS')
    }
    environment.update(ROS_DOMAIN_ID=str(DOMAIN), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
    threads = subprocess.run(
        [sys.executable, '-c', CODE],
        check=True,
        capture_output=True,
        text=True,
        timeout=60.0,
        env=environment,
        cwd=Path(__file__).parents[2],
    ).stdout.split()
    assert any(name.startswith('dds.') for name in threads), threads  # as Fast DDS names its own
    assert not any(name.startswith('dds.tls') for name in threads), threads
