# SPDX-License-Identifier: Apache-2.0
"""Build the interfaces with CMakeLists.txt for `pip install` on a machine without ROS.

`colcon build` uses CMakeLists.txt on its own and never reads this file. Here CMake installs into a
staging folder, and each file of it that is not a source of this checkout goes into the wheel at
the same place under the environment's prefix: lib/*.so, share/oxygen_ros,
lib/pythonX.Y/site-packages/oxygen_ros/msg.
"""

import os
from pathlib import Path
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


def ros_prefix() -> Path:
    """Return the prefix that the ROS wheels lie under (pip's build overlay or environment)."""
    for path in sys.path:
        if (Path(path) / 'rosidl_generator_py').is_dir():
            return Path(path).parents[2]
    raise SystemExit(
        'oxygen_ros: expected the package rosidl_generator_py (a ROS 2 wheel), found none'
    )


class BuildInterfaces(build_ext):
    """Run CMake and hand its install tree to the wheel as data files."""

    def run(self) -> None:
        """Configure, build, install into a staging folder, list what came."""
        build = Path(self.build_temp).resolve()
        shutil.rmtree(build, ignore_errors=True)  # its cache names pip's last overlay
        stage = build / 'stage'
        prefix = ros_prefix()
        env = dict(os.environ, AMENT_PREFIX_PATH=str(prefix))
        subprocess.run(
            [
                'cmake',
                '-S',
                str(ROOT),
                '-B',
                str(build),
                '-G',
                'Ninja',
                '-DBUILD_TESTING=OFF',
                '-DPYTHON_ONLY=ON',
                '-DCMAKE_BUILD_TYPE=Release',
                f'-DCMAKE_INSTALL_PREFIX={stage}',
                f'-DCMAKE_PREFIX_PATH={prefix}',
                f'-DPython3_EXECUTABLE={sys.executable}',
            ],
            check=True,
            env=env,
        )
        subprocess.run(
            ['cmake', '--build', str(build), '--target', 'install'], check=True, env=env
        )
        python = f'python{sys.version_info.major}.{sys.version_info.minor}'
        site = Path('lib', python, 'site-packages')
        files = self.distribution.data_files = []
        for path in sorted(p for p in stage.rglob('*') if p.is_file()):
            place = path.relative_to(stage)
            if (
                place.parts[0] == 'include'
                or '.egg-info' in str(place)
                or path.suffix in ('.c', '.pyc')
            ):
                continue
            if place.is_relative_to(site) and (ROOT / place.relative_to(site)).exists():
                continue
            files.append((str(place.parent), [str(path)]))
        if self.editable_mode:  # setuptools leaves data_files out of editable wheels
            self.run_command('install_data')

    def get_outputs(self) -> list[str]:
        """Return nothing: there is no extension module of our own."""
        return []

    def get_output_mapping(self) -> dict[str, str]:
        """Return nothing, likewise."""
        return {}


# The extension only makes the wheel platform-specific and has build_ext run.
setup(
    ext_modules=[Extension('oxygen_ros.interfaces', [])], cmdclass={'build_ext': BuildInterfaces}
)
