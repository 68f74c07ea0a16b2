"""A ROS domain for this process's tests alone."""
from __future__ import annotations

import fcntl
import os
from pathlib import Path
import tempfile
from typing import Any


def _own_domain() -> tuple[int, Any]:
    """Return a domain that no other test run on this machine has, and what keeps it so."""
    first = os.getpid() % 100
    for number in range(100):
        domain = 101 + (first + number) % 100
        lock = (Path(tempfile.gettempdir()) / f'oxygen_test_domain_{domain}').open('a')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return domain, lock
    raise RuntimeError('all domains of the tests are taken')


DOMAIN, _LOCK = _own_domain()
