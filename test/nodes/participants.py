# SPDX-License-Identifier: Apache-2.0
"""How many participants of DDS this process has."""

import contextlib
from pathlib import Path


def num_participants():
    """Return their number; Fast DDS gives each a thread for its events."""
    names = []
    for task in Path('/proc/self/task').iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            names.append((task / 'comm').read_text())
    return sum(name.startswith('dds.ev') for name in names)
