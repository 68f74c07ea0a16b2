# SPDX-License-Identifier: Apache-2.0
"""The node with a fault on demand: SIGUSR1 makes a thread keep the interpreter for 100 ms."""

import ctypes
import signal
import sys

from oxygen_ros.nodes.oxygen_node import main

HOG_US = 100_000

_libc = ctypes.PyDLL(None)  # unlike CDLL it does not let the interpreter go during a call
signal.signal(signal.SIGUSR1, lambda *_: _libc.usleep(HOG_US))
sys.exit(main())
