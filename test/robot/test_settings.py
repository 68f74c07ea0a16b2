# SPDX-License-Identifier: Apache-2.0
"""Every parameter is declared on one field, arrives there, and is read by somebody."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
import re
import subprocess
import sys

import pytest
import yaml

from oxygen_ros import setting as setting_module
from oxygen_ros.control import TickConfig
from oxygen_ros.engine.config import ActionConfig, EngineConfig, KVConfig
from oxygen_ros.engine.spec import PrefixScope
from oxygen_ros.robot.parameter_files import COMMAND, document, params_file
from oxygen_ros.robot.settings import make_settings, Publish, RobotSettings, SETTINGS
from oxygen_ros.robot.tick_settings import make_tick_settings, TICK_SETTINGS, TickSettings
from oxygen_ros.setting import all_settings, Setting, SettingError, settings_of, values_of

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = {name: entry.default for name, entry in SETTINGS.items()}
FRAME = {'memory.frame_id': 'base'}
TWO_GROUPS = {
    'actuation.groups': ['arm', 'hand'],
    'actuation.joint_groups': ['arm'] * 6 + ['hand'],
}
# Where not just any other value will do, and what it needs beside it.
OTHERS: dict[str, object] = {
    'cameras': ['a', 'b', 'c'],
    'joints': ['a', 'b', 'c', 'd', 'e', 'f', 'g'],
    'optional_cameras': ['front'],
    'model.device': 'cpu',
    'model.image_px': 126,
    'model.camera_map': ['front=left'],
    'actuation.space': ['joint_velocity'],
    **TWO_GROUPS,
    'actuation.group_topics': ['', '/hand/commands'],
    'actuation.group_interfaces': ['trajectory', 'commands'],
    'limits.min_position': [-1.0],
    'limits.max_position': [1.0],
    'limits.max_step': [1.0],
    'limits.max_tracking_error': [1.0],
    'realtime.process_priority': 1,
    'realtime.cpus': [0],
    'memory.camera_poses': [0.5, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0] * 3,
    'memory.depth_cameras': ['front'],
}
BESIDE: dict[str, dict[str, object]] = {
    **dict.fromkeys((*TWO_GROUPS, 'actuation.group_topics', 'actuation.group_interfaces')),
    'realtime.process_priority': {'realtime.fifo_priority': 20},
    'engine.clock': {'engine.deterministic': True},
    **dict.fromkeys(('memory.camera_poses', 'memory.depth_cameras', 'memory.plane'), FRAME),
}
BESIDE.update(dict.fromkeys((name for name, more in BESIDE.items() if more is None), TWO_GROUPS))


def another(entry: Setting) -> object:
    """Return a legal value that is not the default."""
    default = entry.default
    if entry.name in OTHERS:
        return OTHERS[entry.name]
    if entry.choices:
        return next(choice for choice in entry.choices if choice != default)
    if isinstance(default, bool):
        return not default
    if isinstance(default, str):
        return 'another'
    if isinstance(default, list):
        return [item / 2 for item in default]
    above = default + 1 if isinstance(default, int) else default * 1.25 + 0.001
    return above if entry.high is None or above <= entry.high else default - 1


@pytest.fixture
def files(tmp_path):
    """Return the parameters whose values have to exist on disk."""
    words = tmp_path / 'words.yaml'
    words.write_text('labels: [cup]\nattributes: {colour: [red]}\npredicates: [under]\n')
    return {
        'memory.vocabulary_file': str(words),
        'model.checkpoint': str(tmp_path),
        'model.adapter': str(tmp_path),
    }


@pytest.mark.parametrize('name', [name for name in SETTINGS if name != 'model.name'])
def test_another_value_arrives_at_the_field_that_declares_it(name, files):
    # model.name has no other: there is one model that goes by a name.
    value = files.get(name, another(SETTINGS[name]))
    beside = dict(BESIDE.get(name, {}))
    if name in ('model.adapter', 'model.camera_map'):
        beside['model.checkpoint'] = files['model.checkpoint']
    given = {**beside, name: value}
    settings = make_settings(given)
    assert value != DEFAULTS[name]
    assert values_of(settings) == {**DEFAULTS, **given}
    if name in TICK_SETTINGS and name != 'realtime.switch_interval_s':
        tick = make_tick_settings(given)
        assert values_of(tick)[name] == value


def test_what_follows_from_a_value_follows_it():
    settings = make_settings(
        {
            'actuation.rate_hz': 100.0,
            'max_observation_age_ms': 200.0,
            'sensors.state_max_age_s': 0.5,
            'actuation.activation_ramp_s': 2.0,
            'actuation.recovery_ramp_s': 0.2,
            'actuation.decide_ahead_ms': 0.5,
            'cameras': ['left', 'right'],
            'joints': ['a', 'b'],
            'audit.file': 'audit',
            'limits.max_velocity': [1.0, 3.0],
            'memory.max_new_objects': 3,
            'model.prefix_scope': 'observation+prompt',
        }
    )
    tick = settings.tick
    assert (tick.period_ns, tick.decide_ahead_ns) == (10_000_000, 500_000)
    assert (tick.max_observation_age_ns, tick.state_max_age_ns) == (200_000_000, 500_000_000)
    assert (tick.activation_ramp_ns, tick.recovery_ramp_ns) == (2_000_000_000, 200_000_000)
    assert settings.sensors.state_max_age_s == 0.5
    assert settings.engine.action.period_s == 0.01
    assert settings.engine.hash_inputs
    assert settings.sensors.cameras == settings.memory.scene_format.cameras == ('left', 'right')
    assert settings.memory.scene_format.max_objects == 3
    assert (settings.model.options.num_cameras, settings.model.options.num_joints) == (2, 2)
    assert settings.model.options.cameras == ('left', 'right')
    assert settings.model.options.prefix_scope is PrefixScope.OBSERVATION_PROMPT
    assert settings.limits.max_velocity.tolist() == [1.0, 3.0]
    assert [group.joints for group in settings.groups] == [('a', 'b')]
    assert settings.publish is Publish.TICK and settings.model.source == 'tiny'
    assert make_settings({'tick.process': 'separate'}).publish is Publish.ELSEWHERE
    assert make_settings({'baseline.publish': 'engine'}).publish is Publish.ENGINE
    own = make_tick_settings({'realtime.switch_interval_s': 0.00005})
    assert own.realtime.switch_interval_s == 0.00005
    assert make_tick_settings({}).realtime.switch_interval_s == 0.0001  # shorter than the robot's


def test_the_defaults_of_the_dataclasses_are_those_of_the_parameters():
    assert values_of(make_settings({})) == DEFAULTS
    for made in (EngineConfig(), KVConfig(), ActionConfig(), TickConfig(7)):
        assert values_of(made).items() <= DEFAULTS.items()
    assert ActionConfig().period_s == 1.0 / TickConfig(1).rate_hz


def test_every_parameter_has_a_meaning_and_numbers_have_a_unit_or_a_range():
    for name, entry in SETTINGS.items():
        assert entry.name == name and len(entry.text) > 10, name
        if isinstance(entry.default, float):
            assert entry.unit or entry.range_text, name
        if name.endswith(('_s', '_hz', '_ms')):
            assert entry.unit == {'s': 's', 'z': 'Hz'}.get(name[-1]) or entry.unit == 'ms'


@pytest.mark.parametrize(
    ('path', 'make_text'), [('config/oxygen.yaml', params_file), ('doc/parameters.md', document)]
)
def test_the_written_files_are_fresh(path, make_text):
    assert (ROOT / path).read_text(encoding='utf-8') == make_text(), f'run {COMMAND}'


def flat(group, prefix=''):
    """Return nested parameters by their dotted names."""
    values = {}
    for name, value in group.items():
        if isinstance(value, dict):
            values.update(flat(value, f'{prefix}{name}.'))
        else:
            values[f'{prefix}{name}'] = value
    return values


def in_file(path):
    """Return the parameters of a file."""
    data = yaml.safe_load(path.read_text(encoding='utf-8'))
    return flat(data['/**']['ros__parameters'])


def test_the_parameter_file_holds_every_parameter_in_order():
    values = in_file(ROOT / 'config' / 'oxygen.yaml')
    assert values == DEFAULTS and list(values) == list(SETTINGS)


@pytest.mark.parametrize(
    'path', sorted((ROOT / 'config' / 'robots').glob('*.yaml')), ids=lambda path: path.stem
)
def test_each_robot_file_makes_settings(path):
    values = in_file(path)
    assert values_of(make_settings(values)) == {**DEFAULTS, **values}
    of_tick = {name: value for name, value in values.items() if name in TICK_SETTINGS}
    assert make_tick_settings(of_tick).groups == make_settings(values).groups


# Leftovers.


def owners(cls=RobotSettings):
    """Yield each dataclass of the tree with the fields that are parameters."""
    for owner in setting_module._classes(cls):
        for field in settings_of(owner):
            yield owner, field


@pytest.mark.parametrize(
    ('owner', 'field'), list(owners()), ids=lambda part: getattr(part, '__name__', part)
)
def test_a_renamed_parameter_is_caught(owner, field, monkeypatch):
    found = settings_of(owner)[field]
    renamed = replace(found, name=f'{found.name}_2')
    monkeypatch.setitem(setting_module._known, owner, {**settings_of(owner), field: renamed})
    try:
        names = set(all_settings(RobotSettings))
    except ValueError as error:  # shared with a field that has the old name
        assert found.name in str(error) or renamed.name in str(error)
        return
    assert names != set(in_file(ROOT / 'config' / 'oxygen.yaml'))
    assert names == set(SETTINGS) - {found.name} | {renamed.name}


def test_every_field_that_is_a_parameter_is_read_somewhere():
    read = set()
    for path in (ROOT / 'oxygen_ros').rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                read.add(f'"{node.value}"')
    unread = {field for _, field in owners() if field not in read}
    assert unread == {'autostart', 'group_topics', 'group_interfaces', 'vocabulary_file'}
    assert {f'"{field}"' for field in unread} <= read  # by their names


def test_a_name_that_no_field_declares_is_refused():
    with pytest.raises(SettingError, match='modle.name: expected the name of a parameter'):
        make_settings({'modle.name': 'tiny'})


@pytest.mark.parametrize(
    ('old', 'new'),
    [
        ('kv.sharing', 'baseline.kv_sharing'),
        ('scheduler.policy', 'baseline.scheduler_policy'),
        ('batching', 'baseline.batching'),
        ('actuation.publish', 'baseline.publish'),
    ],
)
def test_an_old_name_is_refused_with_the_new_one(old, new):
    assert new in SETTINGS
    with pytest.raises(SettingError, match=f'{old}: expected its new name {new}, got the old'):
        make_settings({old: 'x'})


def test_baselines_that_are_off_their_default_are_named():
    assert make_settings({}).baselines() == {}
    given = {'baseline.kv_sharing': 'isolated', 'baseline.batching': 'none'}
    assert make_settings({**given, 'baseline.publish': 'tick'}).baselines() == given


# Wrong values.

BAD = [
    {'cameras': ['']},
    {'cameras': ['a', 'a']},
    {'cameras': ['a b']},
    {'cameras': [f'camera_{index}' for index in range(11)]},
    {'joints': ['a', 'a']},
    {'joints': ['']},
    {'optional_cameras': ['rear']},
    {'sensors.camera_max_age_s': [1.0, 2.0]},
    {'model.name': 'gpt'},
    {'model.device': 'tpu'},
    {'model.checkpoint': '/none'},
    {'model.adapter': 'folder'},
    {'model.camera_map': ['a=b']},
    {'model.dtype': 'float8'},
    {'actuation.space': ['joint_effort']},
    {'actuation.space': ['joint_delta'] * 2},
    {'actuation.space': ['joint_delta'] * 6 + ['joint_velocity']},
    {'actuation.space': ['joint_delta'], 'actuation.require_state': False},
    {'actuation.space': ['joint_delta'], 'baseline.publish': 'engine'},
    {'tick.process': 'separate', 'baseline.publish': 'engine'},
    {'actuation.decide_ahead_ms': 11.0},
    {'actuation.rate_hz': 1000.0, 'actuation.decide_ahead_ms': 0.6},
    {'actuation.groups': ['arm', 'arm']},
    {'actuation.groups': ['arm']},
    {'actuation.groups': ['arm'], 'actuation.joint_groups': ['leg'] * 7},
    {**TWO_GROUPS, 'actuation.joint_groups': ['arm'] * 7},
    {**TWO_GROUPS, 'actuation.group_topics': ['/x']},
    {**TWO_GROUPS, 'actuation.group_topics': ['/x', '/x']},
    {**TWO_GROUPS, 'actuation.group_topics': ['/x', 'a b']},
    {**TWO_GROUPS, 'actuation.group_interfaces': ['trajectory', 'effort']},
    {'limits.max_velocity': [1.0, 2.0]},
    {'limits.max_step': [0.0]},
    {'limits.min_position': [1.0], 'limits.max_position': [0.0]},
    {'limits.source': 'robot_description', 'robot_description': '<robot/>'},
    {'realtime.process_priority': 1},
    {'realtime.process_priority': 20, 'realtime.fifo_priority': 20},
    {'realtime.cpus': [-2]},
    {'memory.place_queries': 20, 'engine.max_text_tokens': 10},
    {'memory.plane': True},
    {'memory.depth_cameras': ['front']},
    {'memory.depth_cameras': ['rear'], 'memory.frame_id': 'base'},
    {'memory.camera_poses': [1.0] * 8, 'memory.frame_id': 'base'},
    {'memory.camera_poses': [0.0] * 21, 'memory.frame_id': 'base'},
    {'memory.vocabulary_file': '/none.yaml'},
]


@pytest.mark.parametrize('given', BAD, ids=lambda given: ' '.join(given))
def test_an_error_names_a_parameter_of_those_that_do_not_go_together(given):
    with pytest.raises(SettingError) as caught:
        make_settings(given)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    name, colon, _ = text.partition(': ')
    # A camera is the robot's, and a description that was given is one too.
    assert colon and name in SETTINGS and (name in given or name in BESIDE_OF), text
    groups = {known.partition('.')[0] for known in SETTINGS if '.' in known}
    for dotted in re.findall(r'(?<![/\w.])([a-z]+\.[a-z_0-9]+)\b', text):
        assert dotted in SETTINGS or dotted.partition('.')[0] not in groups, text


# Parameters that an error may name though another was given: what was asked lacks them.
BESIDE_OF = ('memory.frame_id', 'actuation.joint_groups')


def test_numbers_are_checked_by_one_rule():
    assert make_settings({'actuation.rate_hz': 100}).tick.rate_hz == 100.0  # a whole number
    for value, message in (
        ('fast', "actuation.rate_hz: expected a double, got 'fast'"),
        (True, 'actuation.rate_hz: expected a double, got True'),
        (float('nan'), 'actuation.rate_hz: expected 1 to 1000, got nan'),
        (0.0, 'actuation.rate_hz: expected 1 to 1000, got 0'),
    ):
        with pytest.raises(SettingError, match=re.escape(message)):
            make_settings({'actuation.rate_hz': value})
    with pytest.raises(SettingError, match='kv.block_size: expected a integer, got 8.0'):
        make_settings({'kv.block_size': 8.0})
    with pytest.raises(SettingError, match=r"cameras: expected a string\[\], got 'front'"):
        make_settings({'cameras': 'front'})
    with pytest.raises(SettingError, match='cameras: expected a string.*, got an empty list'):
        make_settings({'cameras': []})
    with pytest.raises(SettingError, match='kv.block_size: expected 1 to 1024, got 0'):
        KVConfig(block_size=0)  # whoever makes it


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('model.seed', 3),
        ('model.image_px', 126),
        ('model.prefix_scope', 'observation+prompt'),
        ('model.num_kv_heads', 2),
        ('model.num_denoising_steps', 10),
    ],
)
def test_what_a_checkpoint_says_itself_is_refused_beside_it(name, value, tmp_path):
    given = {'model.checkpoint': str(tmp_path), name: value}
    message = f'{name}: expected {DEFAULTS[name]} together with model.checkpoint, which says it'
    with pytest.raises(SettingError, match=re.escape(message)):
        make_settings(given)
    assert make_settings({name: value}) and make_settings({**given, name: DEFAULTS[name]})


def test_a_declaration_is_checked_itself():
    with pytest.raises(ValueError, match='declared wrongly: x: expected 1 to 2, got 3'):
        Setting('x', 3, 'A number', low=1, high=2)


# What it needs.


def test_settings_are_made_without_torch_and_ros():
    code = (
        'import sys; from oxygen_ros.robot import settings, tick_settings; '
        'tick_settings.make_tick_settings({}); '
        "assert not {'torch', 'rclpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, '-c', code], check=True, timeout=60)


def test_the_settings_of_a_tick_are_part_of_those_of_a_robot():
    assert TICK_SETTINGS.items() <= SETTINGS.items()
    robot, tick = make_settings({}), make_tick_settings({})
    assert isinstance(robot, TickSettings) and isinstance(tick, TickSettings)
    assert values_of(tick) == {
        name: value for name, value in values_of(robot).items() if name in TICK_SETTINGS
    } | {'realtime.switch_interval_s': 0.0001}
