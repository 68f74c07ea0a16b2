# SPDX-License-Identifier: Apache-2.0
"""What an activated node costs that has nothing to do: no cameras, no joints, no goals."""

from __future__ import annotations

import contextlib
import threading
import time

import psutil
import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from own_domain import DOMAIN
import rclpy
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rig import overrides

from oxygen_ros.nodes.oxygen_node import OxygenNode

MAX_SHARE = 0.05  # of a core, beside what the tick takes
WINDOW_S = 3.0
WINDOWS = 4  # other programs make every instruction dearer; the least counts


def cpu_s(process, tick_id):
    """Return the CPU seconds of all threads but the tick's, and of the tick's."""
    threads = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
    tick_s = threads.pop(tick_id)
    return sum(threads.values()), tick_s


@pytest.mark.slow
def test_an_idle_node_takes_less_than_a_twentieth_of_a_core_beside_its_tick():
    context = Context()
    rclpy.init(context=context, domain_id=DOMAIN)
    executor = SingleThreadedExecutor(context=context)
    node = OxygenNode(context=context, parameter_overrides=overrides())
    executor.add_node(node)

    def spin():
        with contextlib.suppress(ExternalShutdownException):
            executor.spin()

    node.trigger_configure()
    node.trigger_activate()
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        tick_id = next(
            thread.native_id for thread in threading.enumerate() if thread.name == 'oxygen_tick'
        )
        process = psutil.Process()
        time.sleep(0.5)
        shares = []
        while len(shares) < WINDOWS and min(shares, default=1.0) > MAX_SHARE:
            begin_s, (before, tick_before) = time.monotonic(), cpu_s(process, tick_id)
            time.sleep(WINDOW_S)
            after, tick_after = cpu_s(process, tick_id)
            elapsed_s = time.monotonic() - begin_s
            shares.append((after - before) / elapsed_s)
        tick_share = (tick_after - tick_before) / elapsed_s
        print(f'idle: {min(shares):.2%} of a core, and {tick_share:.2%} for the tick')
        assert min(shares) < MAX_SHARE, shares
    finally:
        executor.shutdown()
        thread.join()
        node.destroy_node()
        context.try_shutdown()
