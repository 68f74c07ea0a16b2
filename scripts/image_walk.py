#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print which files and functions one image runs through, from its callback to the actuators.

    .venv/bin/python scripts/image_walk.py              # what doc/architecture.md has
    .venv/bin/python scripts/image_walk.py --functions

The node runs in this process on virtual time (engine.clock: ros), is given joints and one image,
and every call inside the package is noted until the first target made of that image has left.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
import os
from pathlib import Path
import sys
import threading
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'oxygen_ros'
PAGE = ROOT / 'doc' / 'architecture.md'
BEGIN = '<!-- by scripts/image_walk.py --write -->\n'
END = '<!-- end -->\n'
PERIOD_NS = 20_000_000
START_NS = 1_700_000_000_000_000_000
TIMEOUT_S = 60.0
# Runs by a timer in wall time, whatever an image does.
NOT_ON_THE_WAY = ('nodes/middleware/wake_up.py',)


class Walk:
    """The calls inside the package while it is on, each once, in order."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], None] = {}
        self.is_on = False
        self._prefix = f'{PACKAGE}{os.sep}'

    def __call__(self, frame: Any, event: str, argument: object) -> None:
        """Note a call; what `sys.setprofile` takes."""
        if self.is_on and event == 'call':
            code = frame.f_code
            if code.co_filename.startswith(self._prefix) and not code.co_name.startswith('<'):
                file = code.co_filename.removeprefix(self._prefix)
                if file not in NOT_ON_THE_WAY:
                    self.calls[(file, code.co_qualname)] = None

    def files(self) -> list[str]:
        """Return the files in the order in which they were entered."""
        return list(dict.fromkeys(file for file, _ in self.calls))

    def functions_of(self, file: str) -> list[str]:
        """Return the functions of a file, likewise."""
        return [name for where, name in self.calls if where == file]


def run_walk() -> Walk:
    """Run the node on one image."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ.setdefault('ROS_DOMAIN_ID', str(1 + os.getpid() % 100))
    from builtin_interfaces.msg import Time
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from rosgraph_msgs.msg import Clock
    from sensor_msgs.msg import Image, JointState

    from oxygen_ros.nodes.oxygen_node import OxygenNode

    walk = Walk()
    threading.setprofile(walk)
    sys.setprofile(walk)
    rclpy.init(args=[])
    parameters = {
        'cameras': ['front'],
        'joints': ['a', 'b'],
        'image_transport': 'raw',
        'engine.clock': 'ros',
        'engine.deterministic': True,
        'memory.period_s': 0.0,
        'latency.rate_hz': 0.0,
        'diagnostics.rate_hz': 0.0,
        'use_sim_time': True,
    }
    node = OxygenNode(
        parameter_overrides=[Parameter(name, value=value) for name, value in parameters.items()]
    )
    source = Node('source')
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.add_node(source)
    clock = source.create_publisher(Clock, '/clock', 10)
    images = source.create_publisher(Image, 'front/image_raw', 10)
    states = source.create_publisher(JointState, 'joint_states', 10)

    def wait_for(is_done: Callable[[], bool]) -> None:
        end_ns = source.get_clock().now().nanoseconds + round(TIMEOUT_S * 1e9)
        while not is_done():
            if source.get_clock().now().nanoseconds > end_ns:
                raise SystemExit(
                    'image_walk: expected the node to answer, got nothing for a minute'
                )
            executor.spin_once(timeout_sec=0.01)

    def set_time(ros_ns: int) -> None:
        message = Clock(clock=Time(sec=ros_ns // 10**9, nanosec=ros_ns % 10**9))

        def is_set() -> bool:
            clock.publish(message)
            return bool(node.get_clock().now().nanoseconds == ros_ns)

        wait_for(is_set)

    def send(publisher: Any, message: Any) -> None:
        before = plane.live.num_events
        message.header.stamp = Time(sec=START_NS // 10**9)
        publisher.publish(message)
        wait_for(lambda: plane.live.num_events > before)

    try:
        set_time(START_NS)
        assert node.trigger_configure().name == 'SUCCESS'
        plane: Any = node._plane
        wait_for(lambda: all(topic.get_subscription_count() for topic in (images, states)))
        node.trigger_activate()
        plane.actuation.arming.enable()
        send(states, JointState(name=['a', 'b'], position=[0.0, 0.0]))
        walk.is_on = True
        pixels = bytes(112 * 112 * 3)
        send(images, Image(height=112, width=112, step=336, encoding='rgb8', data=pixels))
        for tick in range(1, 10):
            set_time(START_NS + tick * PERIOD_NS)
            wait_for(plane.live.is_idle)
            newest = plane.actuation.newest
            if newest is not None and newest.target.chunk_ids:
                break
        walk.is_on = False
        assert newest.armed and not newest.target.held
    finally:
        walk.is_on = False
        sys.setprofile(None)
        threading.setprofile(None)
        node.destroy_node()
        source.destroy_node()
        executor.shutdown()
        rclpy.try_shutdown()
    return walk


def table(walk: Walk) -> str:
    """Return the walk by folder, as doc/architecture.md has it."""
    folders: dict[str, list[str]] = {}
    for file in walk.files():
        folder, _, name = file.rpartition('/')
        folders.setdefault(folder or 'oxygen_ros', []).append(name.removesuffix('.py'))
    lines = [
        f'{len(walk.files())} files, {len(walk.calls)} functions:',
        '',
        '| folder | files, in order of entry |',
        '| --- | --- |',
        *(f'| `{folder}` | {", ".join(names)} |' for folder, names in folders.items()),
    ]
    return '\n'.join(lines)


def main() -> int:
    """Print the walk, or write it into doc/architecture.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--functions', action='store_true', help='name the functions instead')
    parser.add_argument('--write', action='store_true', help='write it into doc/architecture.md')
    arguments = parser.parse_args()
    walk = run_walk()
    if arguments.functions:
        for file in walk.files():
            print(file, *(f'    {name}' for name in walk.functions_of(file)), sep='\n')
    elif arguments.write:
        text = PAGE.read_text(encoding='utf-8')
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        PAGE.write_text(f'{text[:begin]}{table(walk)}\n{text[end:]}', encoding='utf-8')
    else:
        print(table(walk))
    return 0


if __name__ == '__main__':
    sys.exit(main())
