"""Start the node on a robot: one VLA model that moves, talks and remembers."""
from __future__ import annotations

from typing import Any

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import LifecycleNode
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

# name, default, meaning
ARGUMENTS = (
    ('namespace', '', 'Namespace of the node and of all relative topics'),
    ('node_name', 'oxygen', 'Name of the node'),
    ('params_file', '', 'YAML file of parameters, laid over config/oxygen.yaml'),
    ('tick', 'own', "Where the tick runs, whatever the parameter files say: in the node's own "
     'process, or separate, in one that outlives it'),
    ('model', '', 'Model by name, over that of the parameter files'),
    ('use_sim_time', 'false', 'Take ROS time from /clock'),
    ('autostart', 'true', 'Configure and activate at the start; the node still starts disarmed'),
    ('log_level', 'info', 'Lowest level that is logged: debug, info, warn, error or fatal'),
    ('respawn', 'false', "Start the node's process again when it ends by itself; its own tick "
     'comes back disarmed, a separate one stays armed and goes on when chunks come again'),
    ('respawn_delay', '5.0', 'Seconds before it is started again'),
    ('respawn_max_retries', '5', 'How often it is started again; -1: without end'),
)


def make_nodes(context: Any) -> list[LifecycleNode]:
    """Make the node, and a separate tick beside it, from the arguments as they were given."""
    given = context.launch_configurations
    overrides = {'autostart': given['autostart'].lower() == 'true',
                 'use_sim_time': given['use_sim_time'].lower() == 'true',
                 'tick.process': given['tick'], 'engine_node': given['node_name']}
    if given['model']:
        overrides['model.name'] = given['model']
    share = FindPackageShare('oxygen_ros').perform(context)
    files = [f'{share}/config/oxygen.yaml']
    if given['params_file']:
        files.append(given['params_file'])
    common = {'package': 'oxygen_ros', 'namespace': given['namespace'], 'output': 'screen',
              'parameters': [*files, overrides],
              'ros_arguments': ['--log-level', given['log_level']]}
    nodes = [LifecycleNode(
        executable='oxygen_node', name=given['node_name'],
        respawn=given['respawn'].lower() == 'true', respawn_delay=float(given['respawn_delay']),
        respawn_max_retries=int(given['respawn_max_retries']), **common)]
    if given['tick'] == 'separate':
        # Never respawned: one that has ended has lost what it was holding, and a person decides.
        nodes.append(LifecycleNode(
            executable='tick_node', name=f'{given["node_name"]}_tick', **common))
    return nodes


def generate_launch_description() -> LaunchDescription:
    """Describe the arguments and the nodes."""
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=meaning)
          for name, default, meaning in ARGUMENTS),
        OpaqueFunction(function=make_nodes)])
