# SPDX-License-Identifier: Apache-2.0
"""SQLite files: by a query when they are sound, else message by message around the damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
import shutil
import sqlite3
import struct
from tempfile import TemporaryDirectory
from urllib.parse import quote

from .storage import BagError, BagMessage, MAX_NS, StoredTopic

MAGIC = b'SQLite format 3\x00'
# Python decodes SQLite's own messages, which quote a damaged schema, before it raises them.
BROKEN = (sqlite3.Error, UnicodeDecodeError)
MAX_GAP = 2000  # ids in a row without a message after which a damaged file has no more


class SqliteStorage:
    """A `Storage` over one SQLite file.

    :raises BagError: not a recording, or nothing in it can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.num_expected: int | None = None
        self.damage: dict[int, tuple[str, int]] = {}
        self.start_ns, self.end_ns = MAX_NS, 0
        self._copy: TemporaryDirectory[str] | None = None
        self._salvaged: list[tuple[int, int, int]] | None = None  # stamp, id, topic id; sorted
        self._topic_of: dict[int, StoredTopic] = {}
        self._db = self._connect(path)
        try:
            self._open()
        except BROKEN as error:
            self.close()
            raise BagError(path, 'a rosbag2 SQLite file', _said(error)) from None
        self.topics = tuple(self._topic_of.values())

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def messages(self, topics: frozenset[str], start_ns: int) -> Iterator[BagMessage]:
        """Yield in order of time what is recorded at `start_ns` or later, past any damage."""
        ids = [key for key, topic in self._topic_of.items() if topic.name in topics]
        last = (start_ns - 1, MAX_NS)
        if self._salvaged is None:
            marks = ','.join('?' * len(ids))
            query = (
                'SELECT timestamp, id, topic_id, data FROM messages '
                f'WHERE topic_id IN ({marks}) AND timestamp >= ? ORDER BY timestamp, id'
            )
            try:
                for stamp_ns, key, topic_id, data in self._db.execute(query, (*ids, start_ns)):
                    last = (stamp_ns, key)
                    if _is_sound(stamp_ns, data):
                        yield self._message(stamp_ns, topic_id, data)
                    else:
                        self.damage[key] = (f'message {key}: no time or no bytes', 1)
                return
            except BROKEN as error:
                self._salvage(error)
        assert self._salvaged is not None
        for stamp_ns, key, topic_id in self._salvaged:
            if (stamp_ns, key) > last and topic_id in ids:
                row = self._row(key)
                if row is not None:
                    yield self._message(stamp_ns, topic_id, row[2])

    def _message(self, stamp_ns: int, topic_id: int, data: bytes) -> BagMessage:
        topic = self._topic_of[topic_id]
        return BagMessage(stamp_ns, topic.name, topic.msgtype, data)

    def _connect(self, path: Path) -> sqlite3.Connection:
        journal = path.with_name(path.name + '-wal')
        if self._copy is None and journal.exists() and journal.stat().st_size:
            # A recording that was not closed: its newest messages are in the journal, and SQLite
            # must be able to write to read it.
            path = self._copy_to_temporary(path)
            shutil.copyfile(journal, path.with_name(path.name + '-wal'))
        mode = 'immutable=1' if self._copy is None else 'mode=rw'
        database = sqlite3.connect(
            f'file:{quote(str(path.absolute()))}?{mode}', uri=True, check_same_thread=False
        )
        database.text_factory = lambda raw: raw.decode(errors='replace')
        return database

    def _copy_to_temporary(self, path: Path) -> Path:
        if self._copy is None:
            self._copy = TemporaryDirectory(prefix='oxygen_bag_')
        return Path(shutil.copyfile(path, Path(self._copy.name, path.name)))

    def _open(self) -> None:
        try:
            self._read_topics()
            query = 'SELECT min(timestamp), max(timestamp), count(*) FROM messages'
            start_ns, end_ns, count = self._db.execute(query).fetchone()
            if count and not (_is_sound(start_ns, b'') and _is_sound(end_ns, b'')):
                raise sqlite3.DatabaseError('messages without a time')
            if count:
                self.start_ns, self.end_ns = start_ns, end_ns
            self.num_expected = count
        except BROKEN as error:
            self._salvage(error)

    def _read_topics(self, count: bool = True) -> None:
        columns = {row[1] for row in self._db.execute('PRAGMA table_info(message_definitions)')}
        definitions = (
            dict(
                (row[0], row[1:])
                for row in self._db.execute(
                    'SELECT topic_type, encoded_message_definition, encoding '
                    'FROM message_definitions'
                )
            )
            if columns
            else {}
        )
        counts = (
            dict(self._db.execute('SELECT topic_id, count(*) FROM messages GROUP BY topic_id'))
            if count
            else {}
        )
        for key, name, msgtype, serialization in self._db.execute(
            'SELECT id, name, type, serialization_format FROM topics ORDER BY id'
        ):
            if not all(isinstance(value, str) for value in (name, msgtype, serialization)):
                self.damage[-1] = ('a topic without a name or a type', 0)
                continue
            self._topic_of[key] = StoredTopic(
                name,
                msgtype,
                serialization,
                counts.get(key, 0),
                *definitions.get(msgtype, ('', '')),
            )

    def _salvage(self, error: sqlite3.Error | UnicodeDecodeError) -> None:
        """Find the messages that can still be read one by one."""
        self._db.close()
        copy = self._copy_to_temporary(self.path)
        _cut_to_whole_pages(copy)
        self._db = self._connect(copy)
        try:
            self._read_topics(count=False)
        except BROKEN as second:
            raise BagError(
                self.path, 'a rosbag2 SQLite file', f'{_said(error)}; {_said(second)}'
            ) from None
        found: list[tuple[int, int, int]] = []
        key = gap = 0
        while gap < MAX_GAP:
            key += 1
            row = self._row(key)
            gap = gap + 1 if row is None else 0
            if row is not None:
                found.append((row[1], key, row[0]))
        if not found:
            raise BagError(self.path, 'a rosbag2 SQLite file with messages', _said(error))
        found.sort()
        self._salvaged = found
        self.start_ns, self.end_ns = found[0][0], found[-1][0]
        counts = Counter(topic_id for _, _, topic_id in found)
        self._topic_of = {
            key: StoredTopic(
                topic.name,
                topic.msgtype,
                topic.serialization,
                counts[key],
                topic.definition,
                topic.definition_format,
            )
            for key, topic in self._topic_of.items()
        }
        self.topics = tuple(self._topic_of.values())
        lost = max(0, self.num_expected - len(found)) if self.num_expected is not None else 0
        self.damage[0] = (_said(error), lost)

    def _row(self, key: int) -> tuple[int, int, bytes] | None:
        """Return (topic id, stamp, data) of one message, or None."""
        query = 'SELECT topic_id, timestamp, data FROM messages WHERE id = ?'
        try:
            row = self._db.execute(query, (key,)).fetchone()
        except BROKEN:
            return None
        if row is None or row[0] not in self._topic_of:
            return None
        return row if _is_sound(*row[1:]) else None


def _said(error: sqlite3.Error | UnicodeDecodeError) -> str:
    """Return SQLite's message, also where Python could not decode it."""
    if isinstance(error, UnicodeDecodeError):
        return error.object.decode(errors='replace')
    return str(error)


def _is_sound(stamp_ns: object, data: object) -> bool:
    # A column of SQLite may hold a value of any type, and after damage does.
    return isinstance(data, bytes) and isinstance(stamp_ns, int) and stamp_ns > 0


def _cut_to_whole_pages(path: Path) -> None:
    """Make the header agree with the file's size; without it SQLite refuses a truncated file.

    A last page that is cut off would be read as if it went on with zeros.
    """
    with path.open('r+b') as file:
        (page_size,) = struct.unpack('>H', file.read(18)[16:18])
        page_size = 1 << 16 if page_size == 1 else page_size
        num_pages = path.stat().st_size // page_size if page_size else 0
        if num_pages:
            file.truncate(num_pages * page_size)
            file.seek(28)
            file.write(struct.pack('>I', num_pages))
