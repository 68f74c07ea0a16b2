# SPDX-License-Identifier: Apache-2.0
"""Run the node with no robot: generated cameras and joints stand in for it."""

from __future__ import annotations

from typing import Any

from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription
from oxygen_ros.nodes import launch_arguments as arguments

# name, default, meaning
ARGUMENTS = (
    ('namespace', '', 'Namespace of both nodes'),
    (
        'robot',
        '',
        'Robot whose cameras and joints to generate: the name of a file in config/robots, or the '
        'path of a parameter file; empty: three cameras, seven joints',
    ),
    ('params_file', '', 'YAML parameter file of the node, overrides that of the robot'),
    ('model', '', 'Model by name, overrides the parameter files'),
    ('checkpoint', '', 'Folder of a checkpoint, instead of a model by name'),
    ('rate_hz', '30.0', 'Images per second of each camera'),
    ('instruction', 'put the cup on the plate', 'What the robot is told to do'),
    ('log_level', 'info', 'Lowest log level to print: debug, info, warn, error or fatal'),
)


def make_nodes(context: Any) -> list[Any]:
    """Make the source, and include the node, from the arguments as they were given."""
    given = context.launch_configurations
    share = FindPackageShare('oxygen_ros').perform(context)
    files = arguments.parameter_files(share, given['robot'], given['params_file'])
    robot = arguments.parameters_of(files)
    source = Node(
        package='oxygen_ros',
        executable='camera_source',
        name='camera_source',
        namespace=given['namespace'],
        output='screen',
        ros_arguments=['--log-level', given['log_level']],
        parameters=[
            {
                'cameras': robot['cameras'],
                'joints': robot['joints'],
                'rate_hz': arguments.number(given, 'rate_hz', 0.1),
                'instruction': given['instruction'],
            }
        ],
    )
    passed_on = {
        name: given[name]
        for name in ('namespace', 'robot', 'params_file', 'model', 'checkpoint', 'log_level')
    }
    node = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(f'{share}/launch/oxygen.launch.py'),
        launch_arguments=passed_on.items(),
    )
    return [source, node]


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
