# SPDX-License-Identifier: Apache-2.0
"""Kills a process that writes memory, again and again, and looks at what is left each time.

Run as a program in a folder; prints one JSON line. Forks from a process without threads.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
import random
import signal
import sys
import time

from memory_notes import known, said, scene, START

from oxygen_ros.memory.audit.audit_chain import AuditRecord, segment_paths
from oxygen_ros.memory.audit.audit_log import AuditLog
from oxygen_ros.memory.audit.audit_repair import repair
from oxygen_ros.memory.audit.audit_verify import verify
from oxygen_ros.memory.episodes.query import MemoryQuery
from oxygen_ros.memory.episodes.reader import MemoryReader
from oxygen_ros.memory.episodes.records import EntryKind
from oxygen_ros.memory.episodes.store import EpisodicStore

NUM_KILLS = 50
KILLS_A_LOG = 5  # then another folder, so that checking it stays quick
MAX_TOLD = 6  # three rounds of writing
BATCH = 64  # long appends, so that a kill has something to cut through
TEXT = 'what was seen and said ' * 100


def write_until_killed(folder: Path, audit: Path, first: int, tell: int) -> None:
    """Write, and tell after each commit and each sync what must survive."""
    store = EpisodicStore(folder / 'memory.db', started_ns=START)
    log = AuditLog(audit)
    number = first
    while True:
        store.write([said(number, f'utterance {number}'), scene(number, known(number, number))])
        os.write(tell, f'committed {number}\n'.encode())
        log.append([AuditRecord('utterance', number, {'text': TEXT})] * BATCH)
        log.sync()
        os.write(tell, f'synced {log.head.seq}\n'.encode())
        number += 1


def kill_once(
    folder: Path, audit: Path, first: int, num_told: int, share: float
) -> tuple[int, int]:
    """Kill a process in the middle of what it does, and read what it had told by then.

    :param num_told: how often it has told of a commit or a sync when it is killed.
    :param share: how far it is in what comes next, in times of what came last.
    :return: the last committed number and the last synced record.
    """
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        os.close(told)
        write_until_killed(folder, audit, first, tell)
    os.close(tell)
    with os.fdopen(told) as lines:
        read, times_s = list[str](), [time.monotonic()]
        for _ in range(num_told):
            read.append(lines.readline())
            times_s.append(time.monotonic())
        time.sleep(share * (times_s[-1] - times_s[-2]))
        os.kill(child, signal.SIGKILL)
        words = [part.split() for part in [*read, *lines] if part.endswith('\n')]
    os.waitpid(child, 0)
    last = {kind: int(value) for kind, value in words}
    return last['committed'], last.get('synced', 0)


def main(folder: Path) -> None:
    """Kill, look, repair by the command's function, and go on."""
    chance, committed, num_torn, num_synced = random.Random(8), set[int](), 0, 0
    first = 1
    for kill in range(NUM_KILLS):
        audit = folder / f'audit{kill // KILLS_A_LOG}'
        num_told = 1 + kill % MAX_TOLD
        last, synced = kill_once(folder, audit, first, num_told, chance.random())
        assert last >= first + (num_told - 1) // 2 and (num_told < 2 or synced > 0)
        committed |= set(range(first, last + 1))
        first = last + 2  # the one after may be committed, untold
        num_synced += synced > 0

        report = verify(segment_paths(audit))
        assert all(fault.is_torn_tail for fault in report.faults), report.faults
        assert report.link.seq >= synced
        if report.faults:
            num_torn += 1
            assert 'torn tail of' in str(report.faults[0])
            repair(report.faults[0].path)
            assert verify(segment_paths(audit)).is_ok

        reader = MemoryReader(folder / 'memory.db')
        assert reader.check() == 'ok'
        newest = reader.find(MemoryQuery(kind=EntryKind.UTTERANCE, limit=1)).entries[0]
        assert newest.text in (f'utterance {last}', f'utterance {last + 1}')
        reader.close()

    reader, found, before = MemoryReader(folder / 'memory.db'), set[int](), None
    while True:
        page = reader.find(MemoryQuery(words='utterance', limit=100, before=before))
        found |= {int(entry.text.split()[1]) for entry in page.entries}
        before = page.next_before
        if before is None:
            break
    missing = committed - found
    print(
        json.dumps(
            {
                'kills': NUM_KILLS,
                'committed': len(committed),
                'missing': len(missing),
                'torn': num_torn,
                'synced': num_synced,
            }
        )
    )


if __name__ == '__main__':
    main(Path(sys.argv[1]))
