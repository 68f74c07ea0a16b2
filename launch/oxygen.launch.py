# SPDX-License-Identifier: Apache-2.0
"""Start the node on a robot: one VLA model that moves, talks and remembers."""

from __future__ import annotations

from typing import Any

from launch.actions import (
    DeclareLaunchArgument,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch_ros.actions import LifecycleNode
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription
from oxygen_ros.nodes import launch_arguments as arguments

# name, default, meaning
ARGUMENTS = (
    ('namespace', '', 'Namespace of the node and of all relative topics'),
    ('node_name', 'oxygen', 'Name of the node'),
    (
        'robot',
        '',
        'Robot: the name of a file in config/robots (so101, aloha, franka_fr3), or the path of a '
        'parameter file; overrides config/oxygen.yaml',
    ),
    ('params_file', '', 'YAML parameter file, overrides that of the robot'),
    ('model', '', 'Model by name, overrides the parameter files'),
    ('checkpoint', '', 'Folder of a checkpoint, instead of a model by name'),
    (
        'cameras',
        '',
        'Cameras in the order of the model, overrides the parameter files: names separated by '
        'commas, or name=topic if images come on another topic than <name>/image_raw',
    ),
    (
        'tick',
        'own',
        "Where the tick runs, overrides the parameter files: in the node's own process, or "
        'separate, in a process that outlives it',
    ),
    (
        'dry_run',
        'false',
        'Run everything and show ~/target, but send nothing to the actuators; false: as the '
        'parameter files say',
    ),
    ('use_sim_time', 'false', 'Use the time of /clock'),
    ('autostart', 'true', 'Configure and activate at start; the node still starts disarmed'),
    ('log_level', 'info', 'Lowest log level to print: debug, info, warn, error or fatal'),
    (
        'respawn',
        'false',
        "Restart the node's process when it ends by itself; its own tick comes back "
        'disarmed, a separate one stays armed and continues when chunks come again',
    ),
    ('respawn_delay', '5.0', 'Seconds before a restart'),
    ('respawn_max_retries', '5', 'How many restarts; -1: no limit'),
)


def make_nodes(context: Any) -> list[Any]:
    """Make the node, and a separate tick beside it, from the arguments as they were given."""
    given = context.launch_configurations
    tick = arguments.choose(given, 'tick', 'own', 'separate')
    overrides = {
        'autostart': arguments.boolean(given, 'autostart'),
        'use_sim_time': arguments.boolean(given, 'use_sim_time'),
        'tick.process': tick,
        'engine_node': given['node_name'],
        **arguments.model_overrides(given),
    }
    if arguments.boolean(given, 'dry_run'):
        overrides['actuation.dry_run'] = True
    cameras, remappings = arguments.cameras(given['cameras'])
    share = FindPackageShare('oxygen_ros').perform(context)
    files = arguments.parameter_files(share, given['robot'], given['params_file'])
    overrides.update(arguments.camera_overrides(cameras, files))
    level = arguments.choose(given, 'log_level', 'debug', 'info', 'warn', 'error', 'fatal')
    common = {
        'package': 'oxygen_ros',
        'namespace': given['namespace'],
        'output': 'screen',
        'parameters': [*files, overrides],
        'additional_env': {'PYTHONUNBUFFERED': '1'},
        'ros_arguments': ['--log-level', level],
    }
    engine = LifecycleNode(
        executable='oxygen_node',
        name=given['node_name'],
        remappings=remappings,
        respawn=arguments.boolean(given, 'respawn'),
        respawn_delay=arguments.number(given, 'respawn_delay', 0.1),
        respawn_max_retries=int(arguments.number(given, 'respawn_max_retries', -1.0)),
        **common,
    )
    if tick == 'own':
        return [engine]
    # Never respawned: one that has ended has lost what it was holding, and a person decides.
    separate = LifecycleNode(executable='tick_node', name=f'{given["node_name"]}_tick', **common)
    return [
        engine,
        separate,
        RegisterEventHandler(
            OnProcessExit(
                target_action=separate,
                on_exit=[
                    LogInfo(
                        msg='the tick has ended: nothing is sent to the robot until it is '
                        'launched again'
                    )
                ],
            )
        ),
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
