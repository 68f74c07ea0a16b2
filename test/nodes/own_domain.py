# SPDX-License-Identifier: Apache-2.0
"""A ROS domain for this process's tests alone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
import tempfile
from typing import Any


def _own_domain() -> tuple[int, Any]:
    """Return a domain that no other test run on this machine has, and what keeps it so.

    At most 100: the ports of those above lie where Linux picks ports for any program, and a domain
    whose port is taken discovers nobody.
    """
    first = os.getpid() % 100
    for number in range(100):
        domain = 1 + (first + number) % 100
        if str(domain) == os.environ.get('ROS_DOMAIN_ID'):  # of the tests that choose none
            continue
        lock = (Path(tempfile.gettempdir()) / f'oxygen_test_domain_{domain}').open('a')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return domain, lock
    raise RuntimeError('all domains of the tests are taken')


DOMAIN, _LOCK = _own_domain()
