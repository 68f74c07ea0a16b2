# SPDX-License-Identifier: Apache-2.0
"""Runs one launch file, as `ros2 launch` does: path, then arguments as name:=value."""

from __future__ import annotations

import sys

from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

from launch import LaunchDescription, LaunchService


def main() -> int:
    """Run it until all its processes have ended; return the status."""
    path, *arguments = sys.argv[1:]
    service = LaunchService(argv=arguments)
    service.include_launch_description(
        LaunchDescription(
            [
                IncludeLaunchDescription(
                    PythonLaunchDescriptionSource(path),
                    launch_arguments=[tuple(argument.split(':=', 1)) for argument in arguments],
                )
            ]
        )
    )
    return service.run()


if __name__ == '__main__':
    sys.exit(main())
