# SPDX-License-Identifier: Apache-2.0
"""What a run hands to the writer, and from which threads it may."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from oxygen_ros.memory.audit.audit_chain import segment_paths
from oxygen_ros.memory.audit.audit_records import find_records
from oxygen_ros.memory.episodes.query import MemoryQuery
from oxygen_ros.memory.episodes.reader import MemoryReader
from oxygen_ros.memory.scene.vocabulary import SceneVocabulary
from oxygen_ros.robot import records
from oxygen_ros.robot.faults import EngineHealth
from oxygen_ros.robot.memory_settings import RecordSettings
from oxygen_ros.robot.records import RobotRecords
from oxygen_ros.runtime import memory_writer
from oxygen_ros.runtime.memory_writer import MemoryWriter


class Desk:
    """A run's memory in a folder, and what it looks at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.health = EngineHealth()
        self.faults = SimpleNamespace(counts=Counter(), newest='')
        model: Any = SimpleNamespace(checksum='ab' * 32)
        clock: Any = SimpleNamespace(now_ns=time.monotonic_ns, offset_ns=lambda: 0)
        faults: Any = self.faults
        settings = RecordSettings(
            store_file=str(folder / 'memory.db'),
            recall_tokens=0,
            audit_folder=str(folder / 'audit'),
        )
        self.memory = RobotRecords(
            settings,
            SceneVocabulary(),
            model,
            512,
            clock,
            self.health,
            faults,
            MemoryWriter,
            None,
        )

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        """Return what the log holds of a kind, once the run has ended."""
        return [
            record['body']
            for _, record in find_records(segment_paths(self.folder / 'audit'), kind=kind)
        ]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(records, '_STOP_TIMEOUT_S', 60.0)  # a disk may take its time
    return Desk(tmp_path)


def test_a_run_tells_its_parameters_its_modes_and_its_end(desk: Desk) -> None:
    desk.memory.mode('disarmed', 5, 'configure')  # before the run: where it begins
    desk.memory.start({'a': 1})
    for mode in ('armed', 'holding', 'armed'):  # within no time at all
        desk.memory.mode(mode, 7, 'enable')
    desk.memory.parameters({'a': 2})
    assert desk.memory.stop('deactivated')
    assert [body['mode'] for body in desk.bodies('mode')] == [
        'active',
        'disarmed',
        'armed',
        'holding',
        'armed',
        'inactive',
    ]
    assert [body['parameters'] for body in desk.bodies('parameters')] == [{'a': 1}, {'a': 2}]


def test_each_fault_since_the_last_look_is_told(desk: Desk) -> None:
    desk.faults.counts['latency'] = 3  # of before the run
    desk.memory.start({})
    desk.memory.watch()
    for number in (1, 2):
        desk.health.reports.append(f'traceback {number}')
        desk.health.num_faults += 1
    desk.faults.counts.update({'latency': 2, 'mode': 1})
    desk.faults.newest = 'mode: KeyError'
    desk.memory.watch()
    desk.memory.watch()
    assert desk.memory.stop('end')
    faults = desk.bodies('fault')
    assert [body['detail'] for body in faults if body['what'] == 'engine'] == [
        'traceback 1',
        'traceback 2',
    ]
    callbacks = [body['detail'] for body in faults if body['what'] == 'callback']
    assert [detail.split(',')[0] for detail in callbacks] == ['latency: 2 more', 'mode: 1 more']


@pytest.mark.parametrize('name', ['oxygen_engine', 'oxygen_tick'])
def test_neither_the_engine_nor_the_tick_may_hand_anything_on(desk: Desk, name: str) -> None:
    desk.memory.start({})
    caught: list[BaseException] = []

    def hand_on() -> None:
        try:
            desk.memory.instruction('wave', 'engine')
        except AssertionError as error:
            caught.append(error)

    thread = threading.Thread(target=hand_on, name=name)
    thread.start()
    thread.join()
    assert desk.memory.stop('end')
    assert len(caught) == 1 and "expected the owner's thread" in str(caught[0])
    assert not desk.bodies('instruction')
    reader = MemoryReader(desk.folder / 'memory.db')
    assert not reader.find(MemoryQuery()).entries
    reader.close()


def test_the_names_are_those_of_the_threads() -> None:
    root = Path(memory_writer.__file__).parent
    sources = ''.join(path.read_text() for path in root.glob('*.py'))
    for name in memory_writer.NEVER_ON:
        assert f"'{name}'" in sources.replace(str(memory_writer.NEVER_ON), '')
