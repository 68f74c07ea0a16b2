# SPDX-License-Identifier: Apache-2.0
"""Packages of PyPI that a build by colcon does not bring: what is missing, and how to install it.

Imports nothing of them, nor of this package.
"""

from __future__ import annotations

from importlib.util import find_spec
import sys

# What is imported, and what pip calls it.
PACKAGES = {
    'cv2': 'opencv-python-headless>=4.9',
    'mcap': 'mcap>=1.2',
    'mcap_ros2': 'mcap-ros2-support>=0.5',
    'numpy': 'numpy>=1.26',
    'PIL': 'pillow>=10',
    'psutil': 'psutil>=5.9',
    'rich': 'rich>=13',
    'rosbags': 'rosbags>=0.10',
    'yaml': 'pyyaml>=6',
}
ENGINE_PACKAGES = {
    'llguidance': 'llguidance>=1.3',
    'safetensors': 'safetensors>=0.4',
    'tokenizers': 'tokenizers>=0.20',
    'torch': 'torch>=2.7',
}


def require(*, engine: bool) -> None:
    """End the program with one line where a package is missing.

    :param engine: the program runs the model.
    :raises SystemExit: status 1, after the line.
    """
    packages = {**PACKAGES, **(ENGINE_PACKAGES if engine else {})}
    missing = {name: line for name, line in packages.items() if find_spec(name) is None}
    if missing:
        lines = ' '.join(f"'{line}'" for line in missing.values())
        print(
            f'{", ".join(missing)}: expected to be installed, found nothing; install with: '
            f'python3 -m pip install {lines}',
            file=sys.stderr,
        )
        raise SystemExit(1)
