# SPDX-License-Identifier: Apache-2.0
"""Connections to the store's file: one that writes, any number that only read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
import sqlite3
import time
from typing import ClassVar

from ...setting import check, setting
from ..errors import QueryTooSlow, StoreDamaged, StoreUnavailable
from .schema import migrate, MIGRATIONS

PAGE_BYTES = 4_096
MIN_STORE_BYTES = 8 << 20
_STEPS_PER_CHECK = 2_000  # virtual machine steps between two looks at the clock: well below 1 ms


@dataclass(frozen=True, slots=True)
class StoreRules:
    """How much the store keeps and how safely.

    Nothing is older than `max_age_s` before the newest entry, summaries of action chunks, of which
    there are many, `chunk_max_age_s`. All files together stay below `max_bytes`.

    :raises ValueError: names the field or parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'memory'

    max_bytes: int = setting(
        256 << 20,
        'Total size limit of the files of the store',
        'bytes',
        low=MIN_STORE_BYTES,
        high=1 << 40,
        name='memory.retention_bytes',
    )
    max_age_s: float = setting(
        30 * 86_400.0,
        'Store entries this much older than the newest one are deleted',
        's',
        low=1.0,
        high=3_153_600_000.0,
        name='memory.retention_age_s',
    )
    chunk_max_age_s: float = setting(
        3_600.0,
        'The same for summaries of action chunks',
        's',
        low=1.0,
        high=3_153_600_000.0,
        name='memory.retention_chunk_age_s',
    )
    entry_span_s: float = 60.0  # a state that lasts longer gets another entry
    synchronous: str = 'normal'  # full: also the last commits survive a power cut

    def __post_init__(self) -> None:
        check(self)
        if not self.entry_span_s > 0.0:
            raise ValueError(f'entry_span_s: expected above 0, got {self.entry_span_s}')
        if self.synchronous not in ('normal', 'full'):
            raise ValueError(f'synchronous: expected normal or full, got {self.synchronous!r}')

    @property
    def journal_bytes(self) -> int:
        """The part of `max_bytes` that is set aside for the write-ahead log and its index."""
        return min(self.max_bytes // 4, 16 << 20)

    @property
    def max_pages(self) -> int:
        """Pages that the main file may have."""
        return (self.max_bytes - self.journal_bytes) // PAGE_BYTES


@contextmanager
def translated(path: str | Path) -> Iterator[None]:
    """Turn SQLite's errors about the file or the disk into ours.

    :raises StoreUnavailable: full, read-only, locked, input or output failed.
    :raises StoreDamaged: not a database, or malformed.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f'{path}: {error}') from error
    except (
        sqlite3.IntegrityError,
        sqlite3.ProgrammingError,
        sqlite3.DataError,
        sqlite3.NotSupportedError,
    ):
        raise  # a mistake of the caller or ours, not of the disk
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(f'{path}: {error}') from error
    except UnicodeDecodeError as error:  # a message of SQLite's that quotes a damaged schema
        raise StoreDamaged(f'{path}: {error.object.decode(errors="replace")}') from error


def open_writer(
    path: str | Path, rules: StoreRules, migrations: Sequence[str] = MIGRATIONS
) -> sqlite3.Connection:
    """Open or create the store for writing, and bring it to the newest version.

    The connection belongs to the calling thread; SQLite's own check refuses any other.

    :raises StoreUnavailable: the file cannot be written now.
    :raises StoreDamaged: the file is not ours, of a newer version, or malformed.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f'{path}: {error}') from error
    with translated(path):
        connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        try:
            # Before the first table is made; later only a full rewrite could change it.
            connection.execute(f'PRAGMA page_size = {PAGE_BYTES}')
            connection.execute('PRAGMA auto_vacuum = INCREMENTAL')
            connection.execute('PRAGMA journal_mode = WAL')
            connection.execute(f'PRAGMA synchronous = {rules.synchronous}')
            connection.execute('PRAGMA foreign_keys = ON')
            connection.execute(f'PRAGMA journal_size_limit = {rules.journal_bytes // 4}')
            connection.execute(
                f'PRAGMA wal_autocheckpoint = {rules.journal_bytes // 8 // PAGE_BYTES}'
            )
            connection.execute(f'PRAGMA max_page_count = {rules.max_pages}')
            migrate(connection, migrations)
        except BaseException:
            connection.close()
            raise
    return connection


def open_reader(path: str | Path) -> sqlite3.Connection:
    """Open the store for reading; the connection belongs to the calling thread.

    :raises StoreUnavailable: there is no store, or it cannot be read now.
    """
    with translated(path):
        uri = Path(path).absolute().as_uri() + '?mode=ro'
        connection = sqlite3.connect(uri, uri=True, timeout=1.0, isolation_level=None)
        connection.execute('PRAGMA query_only = ON')
        connection.execute('PRAGMA trusted_schema = OFF')
        connection.row_factory = sqlite3.Row
    return connection


@contextmanager
def time_limit(connection: sqlite3.Connection, limit_s: float) -> Iterator[None]:
    """Stop what the connection does when it takes longer.

    :raises QueryTooSlow: it was stopped.
    """
    deadline = time.monotonic() + limit_s
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_PER_CHECK)
    try:
        yield
    except sqlite3.OperationalError as error:
        if 'interrupted' not in str(error):
            raise
        raise QueryTooSlow(f'query: stopped after {limit_s} s; ask for less') from error
    finally:
        connection.set_progress_handler(None, 0)
