# SPDX-License-Identifier: Apache-2.0
"""`oxygen monitor`: the latency widget in a window of its own, without rqt."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from ..errors import OxygenError
from .model import DEFAULT_TOPIC

if TYPE_CHECKING:
    from rclpy.executors import Executor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        '--topic',
        default=DEFAULT_TOPIC,
        help='topic of oxygen_ros/msg/LatencyReport (default: %(default)s)',
    )


def run(args: argparse.Namespace) -> int:
    """Show the window until it is closed or Ctrl-C; return the exit status."""
    _expect_display()
    from ..nodes.middleware.bounded_end import END_TIMEOUT_S, end_within
    from ..nodes.middleware.transport import use_large_data_transport

    use_large_data_transport()
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.signals import SignalHandlerOptions

    from .qt import QtCore, QtWidgets
    from .source import LatencySource
    from .widget import LatencyWidget

    application = QtWidgets.QApplication(sys.argv[:1])
    for number in (signal.SIGINT, signal.SIGTERM):
        # Python runs it at the widget's next refresh, which is soon. By a timer, since a loop that
        # has not begun yet would forget `quit`.
        signal.signal(number, lambda *_: QtCore.QTimer.singleShot(0, application.quit))
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(f'oxygen_monitor_{os.getpid()}')
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=_spin, args=(executor,), name='ros', daemon=True)
    thread.start()
    widget = LatencyWidget()
    widget.restore({'topic': args.topic})
    source = LatencySource(node, widget.inbox.report.emit, widget.inbox.camera_ages.emit)
    widget.watch(source)
    widget.resize(1180, 820)
    widget.show()
    print(f'watching {widget.topic}; Ctrl-C or closing the window ends it', flush=True)
    try:
        application.exec_()
    finally:
        widget.stop()
        with end_within(END_TIMEOUT_S, 0):
            source.close()
            executor.shutdown()
            thread.join(2.0)
            node.destroy_node()
            rclpy.try_shutdown()
    return 0


def _spin(executor: Executor) -> None:
    from rclpy.executors import ExternalShutdownException, ShutdownException

    try:
        executor.spin()
    except (ExternalShutdownException, ShutdownException):
        return


def _expect_display() -> None:
    """Qt itself would abort with a core dump."""
    given = ('QT_QPA_PLATFORM', 'DISPLAY', 'WAYLAND_DISPLAY')
    if sys.platform == 'linux' and not any(os.environ.get(name) for name in given):
        raise OxygenError(
            'display: expected DISPLAY or WAYLAND_DISPLAY, got neither; in a '
            'terminal use `oxygen top`'
        )
