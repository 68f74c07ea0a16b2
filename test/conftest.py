# SPDX-License-Identifier: Apache-2.0
"""What all tests share: one torch thread, slow tests on demand, and where recorded data lies."""

from pathlib import Path
import sys

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / 'shared'
sys.path.append(str(ROOT))  # benchmarks, which nothing installs; last, for an installed oxygen_ros

# Two threads hurt beside the threads of ROS and on shared machines.
torch.set_num_threads(1)


def pytest_addoption(parser):
    parser.addoption('--slow', action='store_true', help='run the tests that take minutes too')


def pytest_collection_modifyitems(config, items):
    if config.getoption('--slow'):
        return
    slow = [item for item in items if item.get_closest_marker('slow')]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker('slow')]


@pytest.fixture
def shared():
    """Folder of recorded bags and golden fixtures, kept beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(
            'needs the folder of recorded data beside the checkout (../shared), absent here'
        )
    return SHARED
