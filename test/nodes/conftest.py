# SPDX-License-Identifier: Apache-2.0
"""No node outlives the tests of its file: it would drive the robot of the next ones."""

from participants import num_participants
import psutil
import pytest


@pytest.fixture(scope='module', autouse=True)
def no_node_is_left():
    yield
    left = {
        child: arguments
        for child in psutil.Process().children(recursive=True)
        if '--ros-args' in (arguments := _arguments(child))
    }
    for child in left:
        child.kill()
    psutil.wait_procs(left, timeout=10.0)
    assert num_participants() == 0, 'a context or a node of this process was not destroyed'
    assert not left, f'still running at the end of the file: {list(left.values())}'


def _arguments(process):
    try:
        return process.cmdline()
    except psutil.Error:  # it has just ended
        return []
