# SPDX-License-Identifier: Apache-2.0
"""A process ends in time and with its status, whatever its last steps are stuck in."""

from pathlib import Path
import subprocess
import sys
import time

import pytest

pytest.importorskip('rclpy', reason='the package of nodes imports it')

BEGIN = """
import ctypes, time
from oxygen_ros.nodes.middleware.bounded_end import end_within
"""
# As inside rclpy: in C, with the interpreter's lock, so that no Python runs meanwhile.
STUCK = (
    BEGIN
    + """
print('told before')
with end_within(0.3, {status}):
    ctypes.PyDLL(None).sleep(60)
"""
)
IN_TIME = (
    BEGIN
    + """
for _ in range(3):
    with end_within(0.3, 5):
        pass
time.sleep(0.6)
print('still there')
"""
)
FAILED = (
    BEGIN
    + """
with end_within(0.3, 5):
    raise KeyError('of the last steps')
"""
)


def run(code):
    begin_s = time.monotonic()
    ended = subprocess.run(
        [sys.executable, '-c', code],
        capture_output=True,
        text=True,
        timeout=60.0,
        cwd=Path(__file__).parents[2],
    )
    return ended, time.monotonic() - begin_s


@pytest.mark.parametrize('status', [0, 1, 3])
def test_what_is_stuck_in_the_middleware_ends_with_the_status(status):
    ended, seconds = run(STUCK.format(status=status))
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, 'told before\n', '')
    assert seconds < 30.0


def test_what_ends_in_time_is_let_alone():
    ended, _ = run(IN_TIME)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, 'still there\n', '')


def test_an_error_on_the_way_is_not_hidden():
    ended, _ = run(FAILED)
    assert ended.returncode == 1 and 'of the last steps' in ended.stderr
