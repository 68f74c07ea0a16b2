"""No node outlives the tests of its file: it would drive the robot of the next ones."""
import contextlib
from pathlib import Path

import psutil
import pytest


@pytest.fixture(scope='module', autouse=True)
def no_node_is_left():
    yield
    left = {child: arguments for child in psutil.Process().children(recursive=True)
            if '--ros-args' in (arguments := _arguments(child))}
    for child in left:
        child.kill()
    psutil.wait_procs(left, timeout=10.0)
    assert num_participants() == 0, 'a context or a node of this process was not destroyed'
    assert not left, f'still running at the end of the file: {list(left.values())}'


def num_participants():
    """Return how many participants of DDS this process has: each has a thread for its events."""
    names = []
    for task in Path('/proc/self/task').iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            names.append((task / 'comm').read_text())
    return sum(name.startswith('dds.ev') for name in names)


def _arguments(process):
    try:
        return process.cmdline()
    except psutil.Error:  # it has just ended
        return []
