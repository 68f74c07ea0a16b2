# SPDX-License-Identifier: Apache-2.0
"""Play a rosbag2 recording against the node; cameras and joints are those of the recording."""

from __future__ import annotations

from typing import Any

from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch_ros.actions import LifecycleNode, Node
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription
from oxygen_ros.nodes import launch_arguments as arguments
from oxygen_ros.replay.bag import open_bag
from oxygen_ros.replay.layout import discover

# name, default (None: must be given), meaning
ARGUMENTS = (
    ('bag', None, 'Recording to play: a folder, or an MCAP or SQLite file'),
    ('loop', 'false', 'Play it in a loop'),
    (
        'use_sim_time',
        'false',
        'Publish the time of the recording on /clock; otherwise it plays as if it happened now',
    ),
    ('namespace', '', 'Namespace of both nodes'),
    (
        'robot',
        '',
        'Robot for limits and groups: the name of a file in config/robots, or the path '
        'of a parameter file',
    ),
    ('params_file', '', 'YAML parameter file, overrides that of the robot'),
    ('model', '', 'Model by name, overrides the parameter files'),
    ('checkpoint', '', 'Folder of a checkpoint, instead of a model by name'),
    ('max_observation_age_ms', '400.0', 'Targets from older observations are not sent'),
    ('log_level', 'info', 'Lowest log level to print: debug, info, warn, error or fatal'),
)

_CLOCK_HZ = 100.0


def make_nodes(context: Any) -> list[Any]:
    """Make the player and the node from the arguments as they were given."""
    given = context.launch_configurations
    with open_bag(given['bag']) as bag:
        layout = discover(bag)
    has_clock = arguments.boolean(given, 'use_sim_time')
    overrides = {
        'autostart': True,
        'use_sim_time': has_clock,
        'joints': list(layout.joint_names),
        'max_observation_age_ms': arguments.number(given, 'max_observation_age_ms', 1.0),
        **arguments.model_overrides(given),
    }
    share = FindPackageShare('oxygen_ros').perform(context)
    files = arguments.parameter_files(share, given['robot'], given['params_file'])
    overrides.update(arguments.camera_overrides(list(layout.cameras), files))
    level = ['--log-level', given['log_level']]
    player = Node(
        package='oxygen_ros',
        executable='bag_player',
        namespace=given['namespace'],
        name='bag_player',
        output='screen',
        ros_arguments=level,
        # Or the node would miss the beginning while it loads its model.
        parameters=[
            {
                'bag': given['bag'],
                'loop': arguments.boolean(given, 'loop'),
                'clock_hz': _CLOCK_HZ if has_clock else 0.0,
                'wait_for_listeners': True,
            }
        ],
    )
    node = LifecycleNode(
        package='oxygen_ros',
        executable='oxygen_node',
        namespace=given['namespace'],
        name='oxygen',
        output='screen',
        ros_arguments=level,
        parameters=[*files, overrides],
    )

    def end(event: Any, context: Any) -> list[Any]:
        return (
            []
            if context.is_shutdown
            else [EmitEvent(event=Shutdown(reason=f'{event.action.name} ended'))]
        )

    return [
        *(
            RegisterEventHandler(OnProcessExit(target_action=process, on_exit=end))
            for process in (player, node)
        ),
        node,
        player,
    ]


def generate_launch_description() -> LaunchDescription:
    """Describe the arguments and the nodes."""
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=meaning)
                for name, default, meaning in ARGUMENTS
            ),
            OpaqueFunction(function=make_nodes),
        ]
    )
