# SPDX-License-Identifier: Apache-2.0
"""Which layer may import which: nothing below the nodes needs ROS."""

import ast
import importlib.util
from pathlib import Path
import subprocess
import sys

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / 'oxygen_ros'
WITHOUT_ROS = ('types', 'engine', 'models', 'control', 'memory')
ROS = (
    'rclpy',
    'rpyutils',
    'launch',
    'launch_ros',
    'ament_index_python',
    'action_msgs',
    'builtin_interfaces',
    'diagnostic_msgs',
    'geometry_msgs',
    'lifecycle_msgs',
    'rcl_interfaces',
    'rosgraph_msgs',
    'sensor_msgs',
    'std_msgs',
    'std_srvs',
    'trajectory_msgs',
    'visualization_msgs',
)
GENERATED = ('oxygen_ros.msg', 'oxygen_ros.srv', 'oxygen_ros.action')

# Runs in an interpreter of its own, where nothing is imported yet.
IMPORT_ALL_WITHOUT_ROS = """
import importlib, sys

blocked, modules = (argument.split(',') for argument in sys.argv[1:])

class Absent:
    def find_spec(self, name, path=None, target=None):
        if any(name == module or name.startswith(module + '.') for module in blocked):
            raise ModuleNotFoundError(f'{name} is absent in this test', name=name)

sys.meta_path.insert(0, Absent())
for module in modules:
    importlib.import_module(module)
"""


def modules_without_ros():
    """Name every module of the layers below the nodes."""
    names = []
    for layer in WITHOUT_ROS:
        folder = SOURCES / layer
        for path in sorted(folder.rglob('*.py')) if folder.is_dir() else [SOURCES / f'{layer}.py']:
            parts = path.relative_to(ROOT).with_suffix('').parts
            names.append('.'.join(parts[:-1] if parts[-1] == '__init__' else parts))
    return names


def imports_of(module):
    """Name all that a module imports, inside functions too, relative names resolved."""
    path = ROOT.joinpath(*module.split('.'))
    is_package = path.is_dir()
    package = module if is_package else module.rpartition('.')[0]
    source = (path / '__init__.py' if is_package else path.with_suffix('.py')).read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = '.' * node.level + (node.module or '')
            base = importlib.util.resolve_name(name, package) if node.level else name
            yield base
            yield from (f'{base}.{alias.name}' for alias in node.names)


def test_imports_point_down_only():
    if importlib.util.find_spec('importlinter') is None:
        pytest.skip('needs import-linter (pip install import-linter), absent here')
    run = 'from importlinter.cli import lint_imports_command as lint; lint()'
    result = subprocess.run(
        [sys.executable, '-c', run], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_everything_below_the_nodes_imports_where_there_is_no_ros():
    result = subprocess.run(
        [
            sys.executable,
            '-c',
            IMPORT_ALL_WITHOUT_ROS,
            ','.join(ROS + GENERATED),
            ','.join(modules_without_ros()),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize('layer', WITHOUT_ROS)
def test_no_layer_below_the_nodes_imports_our_messages_even_in_a_function(layer):
    for module in modules_without_ros():
        if module.split('.')[1] == layer:
            assert not set(GENERATED) & set(imports_of(module)), module
