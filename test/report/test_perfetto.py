# SPDX-License-Identifier: Apache-2.0
"""A timeline becomes a trace that Perfetto opens."""

import json

import numpy as np
import pytest

from oxygen_ros.engine.scheduling.timeline import EventKind, Timeline
from oxygen_ros.report.perfetto import timeline_events, write_trace

MS = 1_000_000


@pytest.fixture
def timeline():
    made = Timeline(capacity=16)
    made.record(EventKind.PREFIX, 5 * MS, 7 * MS, 2, 40)
    made.record(EventKind.ACTION_WAIT, 6 * MS, 7 * MS, 1, 40)
    made.record(EventKind.ACTION, 7 * MS, 10 * MS, 1, 40)
    made.record(EventKind.DIALOGUE, 10 * MS, 10 * MS + 1_500, 1, 3)
    return made


def test_a_trace_is_chrome_json_with_an_event_for_each_row(timeline, tmp_path):
    write_trace(tmp_path / 'trace.json', timeline.snapshot())
    trace = json.loads((tmp_path / 'trace.json').read_text())
    assert trace['displayTimeUnit'] == 'ms'
    slices = [event for event in trace['traceEvents'] if event['ph'] == 'X']
    assert [event['name'] for event in slices] == [
        'prefix slice',
        'action waits for a slice',
        'action pass',
        'dialogue slice',
    ]
    assert [(event['ts'], event['dur']) for event in slices] == [
        (0.0, 2000.0),
        (1000.0, 1000.0),
        (2000.0, 3000.0),
        (5000.0, 1.5),
    ]
    assert slices[2]['args'] == {'units': 1, 'observation_id': 40}
    assert slices[3]['args'] == {'units': 1, 'rows': 3}


def test_every_track_and_process_has_a_name(timeline):
    events = timeline_events(timeline.snapshot())
    named = {(event['pid'], event['tid']) for event in events if event['name'] == 'thread_name'}
    assert {(event['pid'], event['tid']) for event in events if event['ph'] == 'X'} <= named
    assert any(event['name'] == 'process_name' for event in events)


def test_events_of_one_track_do_not_overlap(timeline):
    ends = {}
    for event in timeline_events(timeline.snapshot()):
        if event['ph'] == 'X':
            assert event['ts'] >= ends.get(event['tid'], 0.0)
            ends[event['tid']] = event['ts'] + event['dur']


def test_an_empty_timeline_is_a_valid_trace(tmp_path):
    write_trace(tmp_path / 'trace.json', Timeline(capacity=4).snapshot())
    assert json.loads((tmp_path / 'trace.json').read_text())['traceEvents'] == []


def test_rows_of_another_shape_are_refused():
    with pytest.raises(ValueError, match='timeline rows: expected .num_events, 5., got .3, 4.'):
        timeline_events(np.zeros((3, 4), np.int64))
