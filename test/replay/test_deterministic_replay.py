# SPDX-License-Identifier: Apache-2.0
"""The same recording and settings give the same outputs; any change is found where it began."""

from contextlib import contextmanager
import os
import subprocess
import sys

import made_bags
from made_bags import make_bag, Plan, START_NS
from mcap_ros2.reader import read_ros2_messages
import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from oxygen_ros.commands.pytest_plugin import run_replay
from oxygen_ros.replay.comparison import compare, rows_of
from oxygen_ros.replay.golden import read_golden, write_summary
from oxygen_ros.replay.output_types import output_types
from oxygen_ros.replay.outputs import CHUNK, SCHEDULE, TARGET, TEXT, TOPICS
from oxygen_ros.replay.recorder import OutputRecorder

SETTINGS = {'questions': ((0.1, 'What do you see?'),), 'scene_period': 0.2, 'duration': 0.4}
TICK_NS = 20_000_000


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return make_bag(tmp_path_factory.mktemp('bags') / 'made', Plan(num_frames=10))


@pytest.fixture(scope='module')
def result(bag):
    return run_replay(bag, **SETTINGS)


def as_bytes(result):
    """Every bit of every output."""
    types = output_types()
    return [
        (
            output.stamp_ns,
            output.topic,
            bytes(types.serialize_cdr(output.message, output.message.__msgtype__)),
        )
        for output in result.outputs
    ]


def difference(new, golden):
    return compare(rows_of(new), rows_of(golden))


def test_all_kinds_of_output_are_there(result):
    assert {output.topic for output in result.outputs} == set(TOPICS)
    assert result.is_complete and not result.problems
    assert {text['task'] for text in result.texts} == {'dialogue', 'scene_graph'}
    assert result.scene_graphs[-1].provenance.observation_id > 0


def test_ticks_and_slices_lie_on_virtual_time(result):
    deadlines = [
        target.header.stamp.sec * 10**9 + target.header.stamp.nanosec - START_NS
        for target in result.targets
    ]
    assert deadlines == [TICK_NS * number for number in range(1, 21)]
    starts, ends = result.schedule[:, 1], result.schedule[:, 2]
    assert len(starts) > 20 and (ends >= starts).all()
    order = np.argsort(starts, kind='stable')
    assert (starts[order][1:] >= ends[order][:-1]).all(), 'two slices at one time'


def test_a_tick_plays_no_chunk_of_its_future(result):
    left_ns = {
        output.message.chunk_id: output.stamp_ns
        for output in result.outputs
        if output.topic == CHUNK
    }
    for output in result.outputs:
        if output.topic == TARGET:
            assert all(
                left_ns[int(chunk)] <= output.stamp_ns for chunk in output.message.chunk_ids
            )


def test_a_second_replay_is_equal_in_every_bit(bag, result):
    assert as_bytes(run_replay(bag, **SETTINGS)) == as_bytes(result)


@contextmanager
def busy_machine():
    """Twice as many processes that burn as there are cores."""
    code = 'print(flush=True)\nwhile True: pass'
    burners = [
        subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)
        for _ in range(2 * os.cpu_count())
    ]
    try:
        for burner in burners:
            burner.stdout.readline()  # it burns from here on
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.communicate()


def test_a_busy_machine_changes_nothing(bag, result):
    with busy_machine():
        assert as_bytes(run_replay(bag, **SETTINGS)) == as_bytes(result)


def test_a_recorded_bag_repeats_in_every_bit_busy_or_not(shared):
    path = shared / 'data' / 'bags' / 'real' / 'bridge_3cam_mcap'
    settings = {**SETTINGS, 'duration': 1.0}
    first = as_bytes(run_replay(path, **settings))
    assert as_bytes(run_replay(path, **settings)) == first
    with busy_machine():
        assert as_bytes(run_replay(path, **settings)) == first


def test_other_weights_are_found_at_the_first_observation(bag, result):
    found = difference(run_replay(bag, {'model.seed': 1}, **SETTINGS), result)
    assert (found.observation_id, found.topic) == (1, CHUNK)
    assert 'provenance.model_checksum' in found.what


@pytest.mark.parametrize(
    ('parameter', 'value', 'topic'),
    [
        ('engine.seed', 7, CHUNK),
        ('scheduler.micro_slice_s', 0.002, SCHEDULE),
        ('limits.max_velocity', [0.01], TARGET),
    ],
)
def test_another_parameter_is_found_at_the_first_observation(bag, result, parameter, value, topic):
    found = difference(run_replay(bag, {parameter: value}, **SETTINGS), result)
    assert (found.observation_id, found.topic) == (1, topic)


def test_another_image_is_found_at_its_observation(tmp_path, monkeypatch, result):
    number, picture = 4, made_bags.picture
    stamp_ns = START_NS + number * Plan().period_ns
    [observation] = {
        chunk.provenance.observation_id
        for chunk in result.chunks
        if stamp_ns
        in [stamp.sec * 10**9 + stamp.nanosec for stamp in chunk.provenance.camera_stamps]
    }

    def changed(index):
        image = picture(index).copy()
        if index == number:
            image[0, 0, 0] += 40
        return image

    monkeypatch.setattr(made_bags, 'picture', changed)
    other = run_replay(make_bag(tmp_path / 'other', Plan(num_frames=10)), **SETTINGS)
    found = difference(other, result)
    assert (found.observation_id, found.topic) == (observation, CHUNK)
    assert found.what.startswith('values[')
    assert f'observation {observation}, /oxygen/action_chunk' in str(found)


def test_outputs_that_are_missing_are_found(bag, result):
    found = difference(run_replay(bag, **{**SETTINGS, 'questions': ()}), result)
    assert found.topic in (TEXT, SCHEDULE) and found.stamp_ns < 220_000_000


@pytest.fixture
def recorded(result, tmp_path):
    path = tmp_path / 'out'
    with OutputRecorder(path) as recorder:
        recorder.begin(result.start_ns)
        for output in result.outputs:
            recorder.write(output)
    return path


def test_the_recorded_bag_opens_with_no_type_given(recorded, result):
    with AnyReader([recorded]) as reader:
        read = [
            reader.deserialize(data, connection.msgtype)
            for connection, _, data in reader.messages()
        ]
    messages = list(read_ros2_messages(recorded / 'out.mcap'))
    assert len(read) == len(messages) == len(result.outputs) + 1
    [first, *_] = [m.ros_msg for m in messages if m.channel.topic == CHUNK]
    assert list(first.values) == result.chunks[0].values.tolist()
    assert first.provenance.model_checksum == result.chunks[0].provenance.model_checksum


def test_both_kinds_of_golden_equal_the_replay_they_are_of(recorded, result, tmp_path):
    write_summary(result, tmp_path / 'golden.json')
    for path in (recorded, recorded / 'out.mcap', tmp_path / 'golden.json'):
        assert compare(rows_of(result), read_golden(path)) is None


def test_a_remapped_topic_plays_under_its_other_name(bag):
    other = run_replay(
        bag, remap={'/left/image_raw': '/front/image_raw'}, duration=0.1, scene_period=0.0
    )
    assert other.chunks[0].provenance.cameras == ['front', 'right']


def test_a_start_in_the_middle_keeps_what_was_said_before(bag):
    later = run_replay(bag, start=0.3, duration=0.1, scene_period=0.0)
    assert later.start_ns == START_NS + 300_000_000
    assert len(later.targets) == 5 and later.chunks


def test_the_fixture_of_the_plugin_raises_the_first_difference(bag, recorded):
    with pytest.raises(AssertionError, match='differs from .*: observation 1, /oxygen/action_chu'):
        run_replay(bag, {'model.seed': 1}, golden=recorded, **SETTINGS)
