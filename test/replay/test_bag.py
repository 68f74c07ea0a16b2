# SPDX-License-Identifier: Apache-2.0
"""Recordings are read whole where they are sound, and as far as they go where they are not."""

from contextlib import suppress

from hypothesis import example, given, HealthCheck, settings, strategies
from made_bags import make_bag, make_mcap, Plan, START_NS, storage_file
from mcap.writer import CompressionType, IndexType
import numpy as np
import pytest
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from oxygen_ros.replay.bag import BagError, BagMessage, open_bag
from oxygen_ros.replay.storage import in_order

KINDS = {
    'mcap': Plan(),
    'mcap, chunks compressed': Plan(compression=CompressionMode.STORAGE),
    'mcap, file compressed': Plan(compression=CompressionMode.FILE),
    'mcap, messages compressed': Plan(compression=CompressionMode.MESSAGE),
    'sqlite': Plan(plugin=StoragePlugin.SQLITE3),
    'sqlite, file compressed': Plan(
        plugin=StoragePlugin.SQLITE3, compression=CompressionMode.FILE
    ),
    'sqlite, messages compressed': Plan(
        plugin=StoragePlugin.SQLITE3, compression=CompressionMode.MESSAGE
    ),
}
NUM_MESSAGES = 8 * 4 + 2
MCAPS = {
    'one chunk': {'compression': CompressionType.NONE, 'chunk_size': 1 << 24},
    'one chunk, zstd': {'compression': CompressionType.ZSTD, 'chunk_size': 1 << 24},
    'one chunk, lz4': {'compression': CompressionType.LZ4, 'chunk_size': 1 << 24},
    'many chunks': {'chunk_size': 5000},
    'no chunks': {'use_chunking': False},
    'no index': {'chunk_size': 5000, 'index_types': IndexType.NONE},
    'no statistics': {'chunk_size': 5000, 'use_statistics': False},
    'no checksums': {'chunk_size': 5000, 'enable_crcs': False},
}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def any_bag(request, tmp_path):
    return make_bag(tmp_path / 'bag', request.param)


@pytest.fixture(params=[StoragePlugin.MCAP, StoragePlugin.SQLITE3], ids=['mcap', 'sqlite'])
def plain_bag(request, tmp_path):
    return make_bag(tmp_path / 'bag', Plan(num_frames=200, plugin=request.param))


def assert_whole(bag, num_messages=NUM_MESSAGES):
    messages = list(bag.messages())
    assert (len(messages), bag.num_messages, bag.num_lost) == (num_messages, num_messages, 0)
    assert bag.damage == ()
    assert [message.stamp_ns for message in messages] == sorted(
        message.stamp_ns for message in messages
    )


def test_every_kind_of_container_is_read_whole(any_bag):
    with open_bag(any_bag) as bag:
        assert_whole(bag)
        assert {topic.name: topic.count for topic in bag.topics} == {
            '/left/image_raw': 8,
            '/right/image/compressed': 8,
            '/joint_states': 8,
            '/instruction': 2,
            '/chatter': 8,
        }
        assert bag.start_ns == START_NS and bag.duration_s == pytest.approx(0.353)
        image = bag.deserialize(next(bag.messages({'/left/image_raw'})))
        assert (image.encoding, image.height, image.width) == ('rgb8', 12, 16)


def test_every_kind_is_read_without_its_metadata_and_as_a_single_file(any_bag):
    (any_bag / 'metadata.yaml').unlink()
    with open_bag(any_bag) as bag:
        assert_whole(bag)
        assert bag.notes == ['no metadata.yaml']
    with open_bag(storage_file(any_bag)) as bag:
        assert_whole(bag)


def test_reading_again_and_from_a_time_on_gives_the_same_messages(any_bag):
    with open_bag(any_bag) as bag:
        everything = list(bag.messages())
        assert list(bag.messages()) == everything
        start_ns = START_NS + 200_000_000
        assert list(bag.messages(start_ns=start_ns)) == [
            message for message in everything if message.stamp_ns >= start_ns
        ]
        assert list(bag.messages({'/joint_states'}, start_ns)) == [
            message
            for message in everything
            if message.topic == '/joint_states' and message.stamp_ns >= start_ns
        ]
        assert list(bag.messages({'/nothing'})) == []


@pytest.mark.parametrize('text', ['', 'no: [yaml', 'rosbag2_bagfile_information: 3', '[]'])
def test_metadata_that_cannot_be_read_costs_nothing(tmp_path, text):
    path = make_bag(tmp_path / 'bag')
    (path / 'metadata.yaml').write_text(text)
    with open_bag(path) as bag:
        assert_whole(bag)
        assert 'metadata.yaml cannot be read' in bag.notes[0]


def test_a_file_cut_off_gives_what_lies_before_the_cut_and_counts_the_rest(plain_bag):
    file = storage_file(plain_bag)
    whole = file.read_bytes()
    with open_bag(plain_bag) as bag:
        everything = list(bag.messages())
    # SQLite keeps its list of topics at the front, and a page of them is all or nothing
    for part in (0.4, 0.6, 0.9):
        file.write_bytes(whole[: int(len(whole) * part)])
        with open_bag(plain_bag) as bag:
            messages = list(bag.messages())
            assert messages == everything[: len(messages)]
            assert len(messages) > 0.8 * part * len(everything) - 20
            assert bag.num_messages == len(messages)
            assert bag.num_lost == len(everything) - len(messages)
            assert bag.damage and f'{bag.num_lost} lost' in bag.summary()
        (plain_bag / 'metadata.yaml').rename(plain_bag / 'aside')
        with open_bag(file) as bag:  # nothing says how many there were
            assert len(list(bag.messages())) == len(messages) and bag.num_lost is None
            assert 'an unknown number lost' in bag.summary()
        (plain_bag / 'aside').rename(plain_bag / 'metadata.yaml')


def test_an_mcap_without_its_end_loses_nothing(tmp_path):
    path = make_bag(tmp_path / 'bag')
    file = storage_file(path)
    file.write_bytes(file.read_bytes()[:-30])
    with open_bag(path) as bag:
        assert_whole(bag)


@pytest.mark.parametrize('options', MCAPS.values(), ids=MCAPS.keys())
def test_an_mcap_of_any_layout_is_read_whole_and_when_cut_off_up_to_the_cut(tmp_path, options):
    total = 6000
    file = make_mcap(tmp_path / 'file.mcap', total, **options)
    with open_bag(file) as bag:
        assert_whole(bag, total)
        everything = list(bag.messages())
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 6 // 10])  # within a chunk too: its whole blocks count
    with open_bag(file) as bag:
        messages = list(bag.messages())
        assert messages == everything[: len(messages)]
        assert len(messages) > 0.4 * total and bag.num_messages == len(messages)
        assert bag.num_lost is None and 'cut off' in bag.damage[-1]


def test_only_parts_that_overlap_in_time_are_open_at_once():
    opened = []

    def part(start_ns):
        opened.append(start_ns)
        for stamp_ns in (start_ns, start_ns + 4, start_ns + 15):
            yield BagMessage(stamp_ns, '/topic', 'type', b'')

    stamps = []
    for message in in_order((start_ns, part(start_ns)) for start_ns in range(0, 1000, 10)):
        assert opened[-1] <= message.stamp_ns
        stamps.append(message.stamp_ns)
    assert len(stamps) == 300 and stamps == sorted(stamps)


def test_a_chunk_with_a_wrong_checksum_is_left_out_and_counted(tmp_path):
    total = 500
    file = make_mcap(tmp_path / 'file.mcap', total, chunk_size=5000)
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 4] ^= 0xFF
    file.write_bytes(raw)
    with open_bag(file) as bag:
        assert (bag.num_messages, bag.num_lost) == (total, 0)  # nothing has been read yet
        read = sum(1 for _ in bag.messages())
        assert total - 100 < read < total
        assert (bag.num_messages, bag.num_lost) == (read, total - read)
        assert bag.damage[0].startswith('chunk at byte')
        assert sum(1 for _ in bag.messages()) == read  # and counted once
        assert bag.num_lost == total - read


def test_one_bad_file_of_a_split_recording_does_not_spoil_the_others(tmp_path):
    for number in range(11):
        made = make_bag(tmp_path / f'bag_{number}', Plan(num_frames=4))
        (tmp_path / 'split').mkdir(exist_ok=True)
        storage_file(made).rename(tmp_path / 'split' / f'bag_{number}.mcap')
    with open_bag(tmp_path / 'split') as bag:
        assert_whole(bag, 11 * (4 * 4 + 2))
    (tmp_path / 'split' / 'bag_3.mcap').write_bytes(b'')
    with open_bag(tmp_path / 'split') as bag:
        assert len(list(bag.messages())) == 10 * (4 * 4 + 2)
        assert bag.num_lost is None and 'bag_3.mcap' in bag.damage[0]


def test_a_journal_left_by_a_recorder_that_was_killed_is_read_too(tmp_path):
    import shutil
    import sqlite3

    path = make_bag(tmp_path / 'bag', Plan(plugin=StoragePlugin.SQLITE3))
    file = storage_file(path)
    recorder = sqlite3.connect(file)
    recorder.execute('PRAGMA journal_mode=WAL')
    recorder.execute(
        'INSERT INTO messages(topic_id, timestamp, data) '
        'SELECT topic_id, timestamp + 1000000000, data FROM messages'
    )
    recorder.commit()
    killed = tmp_path / 'killed'
    killed.mkdir()
    for part in tmp_path.glob('bag/*.db3*'):
        shutil.copy(part, killed)
    recorder.close()
    before = {part.name: part.read_bytes() for part in killed.iterdir()}
    with open_bag(killed) as bag:
        assert_whole(bag, 2 * NUM_MESSAGES)
    assert {part.name: part.read_bytes() for part in killed.iterdir()} == before


def test_an_empty_recording_says_so(tmp_path):
    path = make_bag(tmp_path / 'bag', Plan(num_frames=0))
    with open_bag(path) as bag:
        assert bag.num_messages == 1
    from made_bags import STORE
    from rosbags.rosbag2 import Writer

    with Writer(tmp_path / 'empty', version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        writer.add_connection('/left/image_raw', 'sensor_msgs/msg/Image', typestore=STORE)
    with open_bag(tmp_path / 'empty') as bag:
        assert (bag.num_messages, bag.num_lost, bag.duration_s) == (0, 0, 0.0)
        assert list(bag.messages()) == []
        assert bag.summary().endswith('empty: no messages')


@pytest.mark.parametrize(
    ('content', 'got'),
    [
        (None, 'nothing: no such file or folder'),
        (b'', 'an empty file'),
        (b'#ROSBAG V2.0\n' + bytes(100), 'a ROS 1 bag'),
        (b'hello, world', 'one that begins with 68 65 6c 6c 6f'),
        (b'\x89MCAP0\r\n', 'cut off at byte 8 of 8'),
        (b'SQLite format 3\x00' + bytes(5000), 'database'),
        (b'\x28\xb5\x2f\xfd' + bytes(50), 'an empty file'),
    ],
)
def test_what_is_no_recording_is_refused_with_its_path(tmp_path, content, got):
    path = tmp_path / 'file.mcap'
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BagError, match=r'expected .*, got ') as caught:
        open_bag(path)
    assert str(path) in str(caught.value) and got in str(caught.value)


def test_a_folder_without_storage_files_is_refused(tmp_path):
    with pytest.raises(BagError, match='got a folder without storage files'):
        open_bag(tmp_path)


def test_a_message_that_is_not_of_its_type_is_a_bag_error(tmp_path):
    with open_bag(make_bag(tmp_path / 'bag')) as bag:
        message = next(bag.messages({'/joint_states'}))
        for data in (b'', message.data[:7], message.data[:-9], b'\x00\x01\x00\x00' + b'\xff' * 40):
            with pytest.raises(BagError, match='/joint_states: expected a sensor_msgs/msg/Joint'):
                bag.deserialize(message._replace(data=data))
        with pytest.raises(BagError, match='expected a no_msgs/msg/No message'):
            bag.deserialize(message._replace(msgtype='no_msgs/msg/No'))


@pytest.fixture(scope='module')
def damaged(tmp_path_factory):
    """Folders to be damaged: path, name of the storage file, its sound content."""
    folder = tmp_path_factory.mktemp('damaged')
    bags = [make_bag(folder / f'bag_{number}', plan) for number, plan in enumerate(KINDS.values())]
    return [(bag, storage_file(bag), storage_file(bag).read_bytes()) for bag in bags]


@given(
    choice=strategies.integers(0, len(KINDS) - 1),
    where=strategies.floats(0, 1),
    kind=strategies.sampled_from(['cut', 'flip', 'zeros', 'noise', 'short']),
    length=strategies.integers(1, 3000),
    seed=strategies.integers(0, 99),
)
@example(choice=4, where=0.09375, kind='noise', length=3, seed=4)  # SQLite quotes its schema
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_damage_gives_messages_or_a_bag_error(damaged, choice, where, kind, length, seed):
    path, file, sound = damaged[choice]
    raw = bytearray(sound)
    position = int(where * (len(raw) - 1))
    length = min(length, len(raw) - position)
    if kind == 'cut':
        del raw[position:]
    elif kind == 'flip':
        raw[position] ^= 1 << seed % 8
    elif kind == 'zeros':
        raw[position : position + length] = bytes(length)
    elif kind == 'noise':
        raw[position : position + length] = np.random.default_rng(seed).bytes(length)
    else:
        del raw[position : position + length]
    file.write_bytes(raw)
    try:
        with open_bag(path) as bag:
            for message in bag.messages():
                with suppress(BagError):
                    bag.deserialize(message)
            assert bag.summary()
    except BagError as error:
        assert 'expected' in str(error) and 'got' in str(error)
