"""Clients of a node leave nothing behind in their process."""
import contextlib
import gc
from pathlib import Path

from own_domain import DOMAIN

from oxygen_ros.nodes.clients.node_driver import NodeDriver, run_driver


def num_participants():
    names = []
    for task in Path('/proc/self/task').iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            names.append((task / 'comm').read_text().strip())
    return sum(name.startswith('dds.ev') for name in names)


def test_each_run_ends_with_the_participants_that_it_began_with(monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(DOMAIN))
    gc.collect()  # those of the tests before
    before = num_participants()
    for _ in range(2):
        inside = run_driver(lambda: NodeDriver('driver', lambda: None),
                            lambda driver: num_participants())
        assert inside == before + 1
        assert num_participants() == before
