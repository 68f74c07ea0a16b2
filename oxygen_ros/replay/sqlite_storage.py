# SPDX-License-Identifier: Apache-2.0
"""SQLite files: by a query when they are sound, else message by message around the damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
import shutil
import sqlite3
import struct
from tempfile import mkdtemp
from urllib.parse import quote

from .storage import BagError, BagMessage, MAX_NS, StoredTopic

MAGIC = b'SQLite format 3\x00'
MAX_GAP = 2000  # ids in a row without a message after which a damaged file has no more
# Python decodes SQLite's own messages, which quote a damaged schema, before it raises them.
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)


class SqliteStorage:
    """A `Storage` over one SQLite file.

    :param scratch: an existing folder for a copy, where one must be written to be read.
    :raises BagError: not a recording, or nothing in it can be read.
    """

    def __init__(self, path: Path, scratch: Path) -> None:
        self.path = path
        self.num_expected: int | None = None
        self.damage: dict[int, tuple[str, int]] = {}
        self.start_ns, self.end_ns = MAX_NS, 0
        self._scratch = scratch
        self._copy: Path | None = None
        self._salvaged: list[tuple[int, int, int]] | None = None  # stamp, id, topic id; sorted
        self._topics: dict[int, StoredTopic] = {}  # by id
        self._db = self._connect()
        try:
            self._read_contents()
        except _DAMAGED as error:
            self._salvage(error)
        self.topics = tuple(self._topics.values())

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def messages(self, topics: frozenset[str], start_ns: int) -> Iterator[BagMessage]:
        """Yield in order of time what is recorded at `start_ns` or later, past any damage."""
        ids = [key for key, topic in self._topics.items() if topic.name in topics]
        last = (start_ns - 1, MAX_NS)
        if self._salvaged is None:
            query = (
                'SELECT timestamp, id, topic_id, data FROM messages WHERE '
                f'topic_id IN ({",".join("?" * len(ids))}) AND timestamp >= ? '
                'ORDER BY timestamp, id'
            )
            try:
                for stamp_ns, key, topic_id, data in self._db.execute(query, (*ids, start_ns)):
                    last = (stamp_ns, key)
                    if _is_sound(stamp_ns, data):
                        yield self._message(stamp_ns, topic_id, data)
                    else:
                        self.damage[key] = (f'message {key}: no time or no bytes', 1)
                return
            except _DAMAGED as error:
                self._salvage(error)
        assert self._salvaged is not None
        for stamp_ns, key, topic_id in self._salvaged:
            if (stamp_ns, key) > last and topic_id in ids:
                row = self._row(key)
                if row is not None:
                    yield self._message(stamp_ns, topic_id, row[2])

    def _message(self, stamp_ns: int, topic_id: int, data: bytes) -> BagMessage:
        topic = self._topics[topic_id]
        return BagMessage(stamp_ns, topic.name, topic.msgtype, data)

    def _connect(self) -> sqlite3.Connection:
        journal = self.path.with_name(self.path.name + '-wal')
        if self._copy is None and journal.exists() and journal.stat().st_size:
            # A recording that was not closed: its newest messages are in the journal, and SQLite
            # must be able to write to read it.
            copy = self._make_copy()
            shutil.copyfile(journal, copy.with_name(copy.name + '-wal'))
        path = (self._copy or self.path).absolute()
        mode = 'immutable=1' if self._copy is None else 'mode=rw'
        database = sqlite3.connect(
            f'file:{quote(str(path))}?{mode}', uri=True, check_same_thread=False
        )
        database.text_factory = lambda raw: raw.decode(errors='replace')
        return database

    def _make_copy(self) -> Path:
        if self._copy is None:
            self._copy = Path(mkdtemp(dir=self._scratch), self.path.name)
            shutil.copyfile(self.path, self._copy)
        return self._copy

    def _read_contents(self) -> None:
        query = 'SELECT topic_id, count(*) FROM messages GROUP BY topic_id'
        self._read_topics(dict(self._db.execute(query)))
        query = 'SELECT min(timestamp), max(timestamp), count(*) FROM messages'
        start_ns, end_ns, count = self._db.execute(query).fetchone()
        if count:
            if not (_is_sound(start_ns, b'') and _is_sound(end_ns, b'')):
                raise sqlite3.DatabaseError('messages without a time')
            self.start_ns, self.end_ns = start_ns, end_ns
        self.num_expected = count

    def _read_topics(self, counts: dict[int, int]) -> None:
        definitions: dict[str, tuple[str, str]] = {}
        if self._db.execute('PRAGMA table_info(message_definitions)').fetchone():
            query = (
                'SELECT topic_type, encoded_message_definition, encoding FROM message_definitions'
            )
            definitions = {row[0]: row[1:] for row in self._db.execute(query)}
        for key, *texts in self._db.execute(
            'SELECT id, name, type, serialization_format FROM topics ORDER BY id'
        ):
            if not all(isinstance(text, str) for text in texts):
                self.damage[-1] = ('a topic without a name or a type', 0)
                continue
            name, msgtype, serialization = texts
            definition = definitions.get(msgtype, ('', ''))
            self._topics[key] = StoredTopic(
                name, msgtype, serialization, counts.get(key, 0), *definition
            )

    def _salvage(self, error: sqlite3.Error | UnicodeDecodeError) -> None:
        """Find the messages that can still be read one by one.

        :raises BagError: there are none.
        """
        self._db.close()
        _cut_to_whole_pages(self._make_copy())
        try:
            self._db = self._connect()
            self._read_topics({})
        except _DAMAGED as second:
            self._db.close()
            reason = f'{_said(error)}; {_said(second)}'
            raise BagError(self.path, 'a rosbag2 SQLite file', reason) from None
        found: list[tuple[int, int, int]] = []
        key = gap = 0
        while gap < MAX_GAP:
            key += 1
            row = self._row(key)
            gap = gap + 1 if row is None else 0
            if row is not None:
                found.append((row[1], key, row[0]))
        if not found:
            self._db.close()
            raise BagError(self.path, 'a rosbag2 SQLite file with messages', _said(error))
        self._salvaged = sorted(found)
        self.start_ns, self.end_ns = self._salvaged[0][0], self._salvaged[-1][0]
        counts = Counter(topic_id for _, _, topic_id in found)
        for topic_id, topic in self._topics.items():
            self._topics[topic_id] = replace(topic, count=counts[topic_id])
        lost = max(0, self.num_expected - len(found)) if self.num_expected is not None else 0
        self.damage[0] = (_said(error), lost)

    def _row(self, key: int) -> tuple[int, int, bytes] | None:
        """Return (topic id, stamp, data) of one message, or None."""
        query = 'SELECT topic_id, timestamp, data FROM messages WHERE id = ?'
        try:
            row = self._db.execute(query, (key,)).fetchone()
        except _DAMAGED:
            return None
        sound = row is not None and row[0] in self._topics and _is_sound(*row[1:])
        return row if sound else None


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
