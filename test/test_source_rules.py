# SPDX-License-Identifier: Apache-2.0
"""What no source may do: run text as code, load code from data, wait in a callback."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    [
        *(ROOT / 'oxygen_ros').rglob('*.py'),
        *(ROOT / 'benchmarks').rglob('*.py'),
        *(ROOT / 'launch').rglob('*.py'),
        *(ROOT / 'scripts').rglob('*.py'),
        ROOT / 'setup.py',
    ]
)

# These have a main loop of their own, and no callback that waits.
SPINNER = ROOT / 'oxygen_ros' / 'nodes' / 'clients' / 'node_driver.py'

# pickle and its kin run code on loading; cv_bridge and message_filters bring faults of their own
# (NumPy 2, queues in series).
MODULES = {
    'pickle',
    'cPickle',
    'marshal',
    'shelve',
    'dill',
    'cloudpickle',
    'joblib',
    'cv_bridge',
    'message_filters',
}
BUILT_IN = {'eval', 'exec', 'compile', '__import__'}
UNSAFE = {
    'unsafe_load',
    'full_load',
    'load_all',
    'unsafe_load_all',
    'system',
    'popen',
    'ExternalFunction',
    'mktemp',
}
SPINNING = {'spin', 'spin_once', 'spin_until_future_complete'}


def problems(source):
    """Return what is forbidden in a module's text, one line each."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
                if node.level
                else [node.module or '']
            )
            found += [
                f'{node.lineno}: imports {name}' for name in names if name.split('.')[0] in MODULES
            ]
        elif isinstance(node, ast.Call):
            problem = _call(node)
            if problem:
                found.append(f'{node.lineno}: {problem}')
    return found


def _call(node):
    called = node.func
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if isinstance(called, ast.Name):
        return f'calls {called.id}' if called.id in BUILT_IN else ''
    if not isinstance(called, ast.Attribute):
        return ''
    owner = called.value.id if isinstance(called.value, ast.Name) else ''
    name = f'{owner}.{called.attr}'
    if called.attr in UNSAFE and owner in ('yaml', 'os', 'tempfile'):
        return f'calls {name}'
    if name == 'torch.load' and not _is(given.get('weights_only'), True):
        return 'calls torch.load without weights_only=True'
    if name in ('np.load', 'numpy.load') and not _is(given.get('allow_pickle'), False):
        return 'calls np.load without allow_pickle=False'
    if name == 'yaml.load' and ast.unparse(given.get('Loader', ast.Constant(''))) != '_Loader':
        return 'calls yaml.load without a safe loader'
    if 'shell' in given and not _is(given['shell'], False):
        return 'starts a shell'
    if owner == 'rclpy' and called.attr in SPINNING:
        return f'calls {name}, which takes the node from its executor'
    return ''


def _is(node, value):
    return isinstance(node, ast.Constant) and node.value is value


def test_no_source_runs_text_or_data_as_code_or_spins_in_a_callback():
    found = [
        f'{path.relative_to(ROOT)}:{problem}'
        for path in SOURCES
        for problem in problems(path.read_text(encoding='utf-8'))
        if 'spin' not in problem or path != SPINNER
    ]
    assert len(SOURCES) > 200 and not found, found


@pytest.mark.parametrize(
    'line',
    [
        'import pickle',
        'from pickle import loads',
        'import numpy, dill',
        'eval(text)',
        'exec(text)',
        'torch.load(path)',
        'torch.load(path, weights_only=False)',
        'np.load(path)',
        'yaml.load(text)',
        'yaml.load(text, Loader=yaml.Loader)',
        'yaml.unsafe_load(text)',
        'os.system(line)',
        'subprocess.run(line, shell=True)',
        'rclpy.spin(node)',
        'import cv_bridge',
        'rclpy.spin_until_future_complete(node, future)',
    ],
)
def test_what_is_forbidden_is_found(line):
    assert len(problems(line)) == 1


def test_each_source_names_its_licence():
    folders = ('oxygen_ros', 'benchmarks', 'test', 'launch')
    sources = [path for folder in folders for path in (ROOT / folder).rglob('*.py')]
    programs = [path for folder in ('scripts', '.ci') for path in (ROOT / folder).iterdir()]
    sources += [*filter(Path.is_file, programs), ROOT / 'setup.py', ROOT / 'CMakeLists.txt']
    unnamed = [
        str(path.relative_to(ROOT))
        for path in sources
        if path.stat().st_size
        and '# SPDX-License-Identifier: Apache-2.0' not in path.read_text().split('\n', 2)[:2]
    ]
    assert len(sources) > 400 and not unnamed, unnamed


def test_the_only_loader_of_yaml_with_rules_of_its_own_is_a_safe_one():
    import yaml

    from oxygen_ros.memory.checks import facts

    assert issubclass(facts._Loader, yaml.SafeLoader)
