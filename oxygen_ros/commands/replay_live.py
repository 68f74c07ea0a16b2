# SPDX-License-Identifier: Apache-2.0
"""A recording against the real node in real time: player and node in processes, over DDS."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
import json
import os
import sys
from typing import Any

from ..demo.processes import Children
from ..errors import OxygenError
from ..replay.bag import Bag, BagError, open_bag
from ..replay.layout import BagLayout, discover_cameras
from .replay_progress import progress_bar
from .replay_settings import replay_settings


def replay_live(
    args: argparse.Namespace,
    parameters: Mapping[str, object],
    questions: Sequence[tuple[float, str]],
    remap: Mapping[str, str],
) -> int:
    """Play; return 0, or 1 where the recording is damaged.

    :raises OxygenError: the recording cannot be played, or the node does not start.
    """
    with open_bag(args.bag, remap) as bag:
        layout = discover_cameras(bag)
        # Refused here in one line, not by the node in its log.
        replay_settings(layout, parameters, questions=questions, start=args.start)
        if args.start > layout.duration_s:
            raise BagError(args.bag, f'more than {args.start:g} s', f'{layout.duration_s:g} s')
        _read_through(bag, layout.duration_s)
        _isolate()
        counts = _play(args, layout, parameters, questions, remap)
        return _report(bag, counts)


def _read_through(bag: Bag, duration_s: float) -> None:
    """Find the damage that shows only while reading."""
    with progress_bar(duration_s, 'reading') as progress:
        for number, message in enumerate(bag.messages()):
            if number % 256 == 0:
                progress((message.stamp_ns - bag.start_ns) * 1e-9)


def _play(
    args: argparse.Namespace,
    layout: BagLayout,
    parameters: Mapping[str, object],
    questions: Sequence[tuple[float, str]],
    remap: Mapping[str, str],
) -> Mapping[str, int]:
    # Imported after the environment is set: the middleware reads it when it is loaded.
    from ..nodes.clients.node_driver import run_driver
    from ..replay.recorder import OutputRecorder
    from .replay_recorder import ReplayRecorder

    rate = 1.0 if args.rate is None else args.rate
    left_s = max(0.0, layout.duration_s - args.start) / rate
    duration_s = None if args.duration is None else args.duration / rate
    with ExitStack() as stack:
        recorder = None
        if args.record is not None:
            recorder = stack.enter_context(OutputRecorder(args.record))
        node, player = stack.enter_context(Children()), stack.enter_context(Children())
        progress = stack.enter_context(progress_bar(left_s if duration_s is None else duration_s))
        node.start(
            'node', 'oxygen_ros.nodes.oxygen_node', _node_arguments(args, layout, parameters)
        )

        def run(driver: ReplayRecorder) -> Mapping[str, int]:
            driver.bring_up(())
            player.start(
                'player',
                'oxygen_ros.nodes.sources.bag_player',
                _player_arguments(args, rate, remap),
            )
            driver.wait_for_images(layout.cameras, lambda: _is_playing(player))
            driver.play(lambda: _is_playing(player), duration_s, progress)
            driver.take_down()
            return {topic.removeprefix('oxygen/'): n for topic, n in driver.counts.items()}

        return run_driver(lambda: ReplayRecorder(node.check, questions, recorder), run)


def _is_playing(player: Children) -> bool:
    status = player.status('player')
    if status:
        raise OxygenError(f'player: expected to play to the end, ended with status {status}')
    return status is None


def _isolate() -> None:
    """Keep the replay on this machine and, unless told otherwise, in a domain of its own."""
    from ..nodes.middleware.transport import use_large_data_transport

    use_large_data_transport()
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    if 'ROS_DOMAIN_ID' not in os.environ:
        os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % 100)
        print(f'ROS_DOMAIN_ID={os.environ["ROS_DOMAIN_ID"]}', file=sys.stderr, flush=True)


def _node_arguments(
    args: argparse.Namespace, layout: BagLayout, parameters: Mapping[str, object]
) -> list[str]:
    values: dict[str, Any] = {'cameras': list(layout.cameras)}
    if layout.joint_names:
        values['joints'] = list(layout.joint_names)
    if args.scene_period is not None:
        values['memory.period_s'] = args.scene_period
    if args.clock is not None:
        values['use_sim_time'] = True
    return _ros_arguments({**values, **parameters, 'autostart': False})


def _player_arguments(
    args: argparse.Namespace, rate: float, remap: Mapping[str, str]
) -> list[str]:
    values = {
        'bag': str(args.bag.resolve()),
        'rate': rate,
        'loop': args.loop,
        'start_offset': args.start,
        'clock_hz': args.clock or 0.0,
    }
    if remap:
        values['remap'] = [f'{recorded}:={new}' for recorded, new in remap.items()]
    return _ros_arguments(values)


def _ros_arguments(values: Mapping[str, Any]) -> list[str]:
    arguments = ['--ros-args']
    for name, value in values.items():
        # JSON puts names in quotes: to the middleware a joint named y would be a yes.
        text = json.dumps(value).replace('Infinity', '.inf')
        arguments += ['-p', f'{name}:={text}']
    return arguments


def _report(bag: Bag, counts: Mapping[str, int]) -> int:
    print(bag.summary())
    print(', '.join(f'{count} {name}' for name, count in sorted(counts.items())))
    return 1 if bag.damage or bag.num_lost != 0 else 0
