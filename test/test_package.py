# SPDX-License-Identifier: Apache-2.0
"""What describes the package agrees with itself, with the sources and with what is installed."""

import ast
from importlib import import_module
from importlib.util import find_spec
import os
from pathlib import Path
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import oxygen_ros
from oxygen_ros.requirements import ENGINE_PACKAGES, PACKAGES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
INTERFACES = sorted(path for kind in ('msg', 'srv', 'action') for path in ROOT.glob(f'{kind}/*'))
REBUILD = 'the installed copy is older than the sources: run scripts/bootstrap (or colcon build)'


@pytest.fixture(scope='module')
def manifest():
    """package.xml."""
    return ElementTree.parse(ROOT / 'package.xml').getroot()


@pytest.fixture(scope='module')
def project():
    """pyproject.toml."""
    return tomllib.loads((ROOT / 'pyproject.toml').read_text())


@pytest.fixture(scope='module')
def prefix():
    """Folder that the package is installed under: an overlay of colcon, or the environment."""
    for path in (*os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep), sys.prefix):
        if path and Path(path, 'share', 'oxygen_ros', 'package.xml').is_file():
            return Path(path)
    pytest.fail(
        'expected share/oxygen_ros/package.xml under AMENT_PREFIX_PATH or '
        f'{sys.prefix}, found none: run scripts/bootstrap'
    )


def attribute_of(target):
    """Import what `module:name` names."""
    module, _, name = target.partition(':')
    return getattr(import_module(module), name)


def is_message_package(name):
    return name.endswith('_msgs') or name in ('builtin_interfaces', 'std_srvs')


def imported_message_packages():
    """Name the message packages that our modules import."""
    for path in sorted((ROOT / 'oxygen_ros').rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            yield from (
                top
                for top in (name.partition('.')[0] for name in names)
                if is_message_package(top)
            )


def test_all_four_places_name_the_same_version(manifest, project):
    newest = re.search(r'^(\d+\.\d+\.\d+) \(.+\)$', (ROOT / 'CHANGELOG.rst').read_text(), re.M)
    assert newest is not None
    versions = {
        manifest.findtext('version'),
        project['project']['version'],
        oxygen_ros.__version__,
        newest.group(1),
    }
    assert len(versions) == 1, versions


def test_the_maintainer_has_an_address_and_the_licence_its_text(manifest, project):
    assert re.fullmatch(r'[^@\s]+@[^@\s]+\.[^@\s]+', manifest.find('maintainer').get('email'))
    assert manifest.findtext('license') == project['project']['license'] == 'Apache-2.0'
    assert 'Apache License' in (ROOT / 'LICENSE').read_text()


@pytest.mark.parametrize('kind', ['buildtool_depend', 'depend', 'exec_depend', 'test_depend'])
def test_dependencies_are_in_alphabetical_order(manifest, kind):
    names = [element.text for element in manifest.findall(kind)]
    assert names == sorted(set(names))


def test_every_imported_message_package_is_a_dependency_in_both_files(manifest, project):
    imported = set(imported_message_packages())
    declared = {
        element.text for kind in ('depend', 'exec_depend') for element in manifest.findall(kind)
    }
    wheels = {re.match(r'[\w-]+', line)[0] for line in project['project']['dependencies']}
    assert imported - declared == set()
    missing = {name for name in imported if f'ros-kilted-{name.replace("_", "-")}' not in wheels}
    assert missing == set()


def test_ros_wheels_are_asked_for_where_they_exist(project):
    wheels = [line for line in project['project']['dependencies'] if line.startswith('ros-')]
    assert wheels
    assert all("platform_machine == 'x86_64'" in line for line in wheels)


@pytest.mark.parametrize('path', INTERFACES, ids=lambda path: path.name)
def test_every_field_says_what_it_means(path):
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    assert lines[0].startswith('# '), f'expected {path.name} to begin with what it is'
    fields = [line for line in lines if not line.startswith(('#', '---'))]
    assert fields
    bare = [line for line in fields if not re.search(r'\S\s+# \S', line)]
    assert bare == []


@pytest.mark.parametrize('path', INTERFACES, ids=lambda path: path.name)
def test_every_interface_is_built_from_its_present_text(path, prefix):
    assert hasattr(import_module(f'oxygen_ros.{path.parent.name}'), path.stem), REBUILD
    installed = prefix / 'share' / 'oxygen_ros' / path.parent.name / path.name
    assert installed.is_file() and installed.read_text() == path.read_text(), REBUILD


@pytest.mark.parametrize('folder', ['launch', 'config', 'resource'])
def test_every_data_file_is_installed_as_it_is_here(folder, prefix):
    files = [
        path
        for path in (ROOT / folder).rglob('*')
        if path.is_file() and '__pycache__' not in path.parts
    ]
    assert files
    for path in files:
        installed = prefix / 'share' / 'oxygen_ros' / path.relative_to(ROOT)
        assert installed.is_file() and installed.read_bytes() == path.read_bytes(), REBUILD


def test_every_executable_of_ros2_run_has_its_main(prefix):
    executables = sorted((prefix / 'lib' / 'oxygen_ros').iterdir())
    assert {'oxygen_node', 'camera_source', 'bag_player'} <= {path.name for path in executables}
    for path in executables:
        assert os.access(path, os.X_OK), path
        module = re.search(r'^from (oxygen_ros\.[\w.]+) import main$', path.read_text(), re.M)
        assert callable(attribute_of(f'{module.group(1)}:main'))


def test_the_packages_that_executables_look_for_are_those_of_the_project(project):
    pip_lines = {
        line for line in project['project']['dependencies'] if not line.startswith('ros-')
    }
    assert {*PACKAGES.values(), *ENGINE_PACKAGES.values()} == pip_lines
    assert all(find_spec(name) is not None for name in (*PACKAGES, *ENGINE_PACKAGES))


WITHOUT_TORCH = """
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == 'torch' else found(name, *more)
"""


def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(prefix, tmp_path):
    (tmp_path / 'sitecustomize.py').write_text(WITHOUT_TORCH)
    environment = {
        **os.environ,
        'PYTHONPATH': os.pathsep.join(
            [str(tmp_path), str(ROOT), os.environ.get('PYTHONPATH', '')]
        ),
    }

    def run(*command):
        return subprocess.run(
            [sys.executable, *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60.0,
        )

    refused = run(prefix / 'lib' / 'oxygen_ros' / 'oxygen_node')
    assert refused.returncode == 1
    assert refused.stderr == (
        'torch: expected to be installed, found nothing; install with: '
        "python3 -m pip install 'torch>=2.7'\n"
    )
    code = 'from oxygen_ros.requirements import require; require(engine=False)'
    assert run('-c', code).returncode == 0  # the tick and the sources run without


def test_every_entry_point_leads_somewhere(project):
    points = dict(project['project']['scripts'])
    points.update(project['project']['entry-points']['rclpy_components'])
    assert {'oxygen', 'oxygen_ros::OxygenNode'} <= points.keys()
    for target in points.values():
        assert callable(attribute_of(target)), target
