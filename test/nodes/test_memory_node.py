# SPDX-License-Identifier: Apache-2.0
"""A run of the node that keeps a store and an audit log; both are then read as a person would."""

from __future__ import annotations

import json
from pathlib import Path
import time

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import qos_profile_sensor_data, QoSProfile, ReliabilityPolicy
from rig import CAMERAS, NodeProcess, Rig
from sensor_msgs.msg import CameraInfo, Image
from std_srvs.srv import SetBool, Trigger

from oxygen_ros.cli import main
from oxygen_ros.memory.scene.vocabulary import SceneVocabulary
from oxygen_ros.msg import ActionChunk, SceneNode, Target
from oxygen_ros.nodes.messages import ns_of
from oxygen_ros.srv import GetSceneGraph, QueryMemory, SetInstruction, UpdateSceneGraph

FACTS = 'facts:\n  - {entity: table, attribute: height, value: 0.75, unit: m, source: survey}\n'


DOWN = (0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0)  # a camera 1 m above the base, looking down


class Run:
    """The rig of a running node, and where the node writes to."""

    def __init__(self, folder: Path) -> None:
        self.audit = folder / 'audit'
        facts = folder / 'facts.yaml'
        facts.write_text(FACTS)
        self.rig = Rig()
        self.node = NodeProcess(
            memory__store_file=str(folder / 'memory.db'),
            audit__file=str(self.audit),
            memory__facts_file=str(facts),
            memory__period_s='0.0',
            memory__frame_id='base',
            memory__camera_poses=str([*DOWN, *DOWN]),
            memory__plane='true',
            max_observation_age_ms='2000.0',
        )

    def query(self, **request: object) -> QueryMemory.Response:
        """Ask ~/query_memory."""
        return self.rig.call(QueryMemory, 'oxygen/query_memory', QueryMemory.Request(**request))

    def wait_for_entry(self, **request: object) -> QueryMemory.Response:
        """Ask until the writer has come to it."""
        answers: list[QueryMemory.Response] = []

        def found() -> bool:
            answers.append(self.query(**request))
            return bool(answers[-1].success and answers[-1].entries)

        self.rig.wait_for(found, f'an entry for {request}')
        return answers[-1]


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    run = Run(tmp_path_factory.mktemp('memory'))
    rig = run.rig
    for kind, topic in (
        (Target, 'oxygen/target'),
        (ActionChunk, 'oxygen/action_chunk'),
        (DiagnosticArray, '/diagnostics'),
    ):
        rig.listen(kind, topic)
    publish_calibration(rig)
    for camera in CAMERAS:
        rig.listen(
            Image,
            f'{camera}/image_raw',
            QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT),
        )  # all that the node may have
    try:
        rig.wait_for(lambda: bool(rig.received['oxygen/action_chunk']), 'a first chunk')
        yield run
    finally:
        rig.close()
        print(run.node.close())


def publish_calibration(rig):
    """Publish the calibration of both cameras twice a second."""
    publishers = [
        rig.client.create_publisher(CameraInfo, f'{camera}/camera_info', qos_profile_sensor_data)
        for camera in CAMERAS
    ]
    message = CameraInfo(width=64, height=48)
    message.k = [40.0, 0.0, 32.0, 0.0, 40.0, 24.0, 0.0, 0.0, 1.0]
    rig.client.create_timer(0.5, lambda: [one.publish(message) for one in publishers])


def remember(run):
    """Return the labels of the first update that shows objects."""
    for _ in range(5):
        response = run.rig.call(UpdateSceneGraph, 'oxygen/update_scene_graph')
        assert response.success, response.message
        if response.graph.nodes:
            return [node.label for node in response.graph.nodes]
    raise AssertionError('expected objects within five updates, got none')


def test_a_query_by_label_answers_with_provenance_and_verdict(run):
    label = remember(run)[0]
    answer = run.wait_for_entry(label=label, kind='object')
    entry = answer.entries[0]
    assert entry.citation.startswith('m') and entry.nodes[0].label == label
    assert entry.verdict == 'unverified'
    assert entry.provenance.cameras == list(CAMERAS)
    graph = run.rig.call(GetSceneGraph, 'oxygen/get_scene_graph').graph
    assert {node.verdict for node in graph.nodes} == {'unverified'}


def assert_valid(graph):
    """Fail unless all of a graph is of the vocabulary, within its image, and joined up."""
    words = SceneVocabulary()
    ids = [node.id for node in graph.nodes]
    assert len(set(ids)) == len(ids) and graph.provenance.observation_id > 0
    for node in graph.nodes:
        assert node.label in words.labels and set(node.attributes) <= set(words.attribute_words)
        x, y, width, height = node.box_px
        assert node.camera in CAMERAS and min(x, y) >= 0 and min(width, height) > 0
        assert x + width <= 64 and y + height <= 48
    for edge in graph.edges:
        assert edge.predicate in words.predicates and edge.subject != edge.object
        assert {edge.subject, edge.object} <= set(ids)


def memory_figures(run):
    """Return what diagnostics say of memory from now on: older ones may be on their way."""
    since_ns = time.time_ns()
    run.rig.received['/diagnostics'].clear()

    def found():
        return {
            pair.key: pair.value
            for message in run.rig.received['/diagnostics']
            if ns_of(message.header.stamp) >= since_ns
            for status in message.status
            if status.name.endswith(': memory')
            for pair in status.values
        }

    run.rig.wait_for(lambda: 'scene updates' in found(), 'the figures of memory')
    return found()


def test_every_update_is_a_valid_graph_while_the_robot_moves_and_talks(run):
    before = int(memory_figures(run)['scene updates'])
    talks = [run.rig.ask(f'What is on the table {number}?', max_tokens=64) for number in range(4)]
    for _ in range(8):
        response = run.rig.call(UpdateSceneGraph, 'oxygen/update_scene_graph')
        assert response.success, response.message
        assert_valid(response.graph)
    for talk in talks:
        assert run.rig.wait_for_result(talk).finish_reason in ('stop', 'length')
    figures = memory_figures(run)
    assert int(figures['scene updates']) == before + 8 and figures['scene updates failed'] == '0'


def test_objects_have_positions_by_which_they_are_found(run):
    def located():
        remember(run)
        graph = run.rig.call(GetSceneGraph, 'oxygen/get_scene_graph').graph
        return [node for node in graph.nodes if node.pose.header.frame_id]

    found: list[SceneNode] = []
    run.rig.wait_for(lambda: found.extend(located()) or bool(found), 'an object with a position')
    point = found[0].pose.pose.position
    assert found[0].pose.header.frame_id == 'base' and point.z == 0.0
    x, y, width, height = found[0].box_px
    assert point.x == pytest.approx((x + width / 2 - 32) / 40, abs=1e-4)
    assert point.y == pytest.approx(-(y + height - 24) / 40, abs=1e-4)
    around = {
        'region_low': [point.x - 0.01, point.y - 0.01, -0.01],
        'region_high': [point.x + 0.01, point.y + 0.01, 0.01],
    }
    entry = run.wait_for_entry(frame_id='base', label=found[0].label, **around).entries[0]
    assert entry.nodes[0].id == found[0].id
    assert not run.query(frame_id='other', **around).entries


def test_what_was_seen_at_a_place_is_found_by_its_embedding(run):
    remember(run)
    entry = run.wait_for_entry(kind='object').entries[0]
    here = {'place_run': entry.run, 'place_observation': entry.provenance.observation_id}
    found = run.query(kind='object', **here)
    assert found.success and entry.citation in [other.citation for other in found.entries]
    assert not run.query(place_run=entry.run, place_observation=10**9).entries


def test_pages_are_bounded_and_a_wrong_query_is_refused(run):
    remember(run)
    run.wait_for_entry(kind='object')
    page = run.query(limit=1)
    assert len(page.entries) == 1 and page.next_before
    other = run.query(limit=1, before=page.next_before)
    assert other.entries[0].citation != page.entries[0].citation
    assert 'limit' in run.query(limit=101).message
    assert 'kind' in run.query(kind='secret').message
    assert 'region' in run.query(frame_id='base', region_low=[1.0]).message
    hostile = run.query(words='" OR 1=1; DROP TABLE entry; --')
    assert hostile.success and not hostile.entries


def test_what_is_remembered_enters_a_dialogue_and_is_cited(run):
    instruction = SetInstruction.Request(instruction='bring the teapot')
    assert run.rig.call(SetInstruction, 'oxygen/set_instruction', instruction).success
    known = run.wait_for_entry(words='teapot', kind='instruction').entries[0]
    result = run.rig.wait_for_result(run.rig.ask('Where is the teapot?', max_tokens=8))
    assert known.citation in result.citations
    assert result.verdict == ('unverified' if result.text else '')
    assert all(reason.startswith('unverified: ') for reason in result.reasons)
    assert len(result.reasons) > 0 or not result.text.strip()


def test_diagnostics_show_how_writing_goes(run):
    figures = memory_figures(run)
    assert ':' in figures['audit head'] and int(figures['store written']) > 0
    assert figures['store dropped'] == figures['audit log dropped'] == '0'


def test_ten_targets_are_traced_to_the_stamps_of_their_images(run, capsys):
    """The last test: it ends the node."""
    rig = run.rig
    assert rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
    targets = rig.received['oxygen/target']

    def fresh() -> list[Target]:
        return [target for target in targets if target.chunk_ids and not target.held]

    rig.wait_for(lambda: len(fresh()) >= 10, 'ten targets')
    for service in ('hold', 'takeover'):
        assert rig.call(Trigger, f'oxygen/{service}').success
    assert rig.call(SetBool, 'oxygen/enable', SetBool.Request(data=True)).success
    rig.spin_for(0.3)  # so that the chunks of the newest of them are on their way to the log
    chosen = fresh()[:10]
    run.node.signal(2)
    status, output = run.node.wait()
    assert status == 0, output
    sent = {
        camera: {ns_of(message.header.stamp) for message in rig.received[f'{camera}/image_raw']}
        for camera in CAMERAS
    }
    for target in chosen:
        for chunk_id, observation_id in zip(target.chunk_ids, target.observation_ids):
            capsys.readouterr()
            assert main(['audit', 'show', '--chunk', str(chunk_id), str(run.audit)]) == 0
            record = json.loads(capsys.readouterr().out)
            assert record['kind'] == 'chunk' and record['prefix_hash']
            assert record['observation']['id'] == observation_id
            assert len(record['model_checksum']) == len(record['parameters_hash']) == 64
            assert record['software'].startswith('oxygen_ros ')
            assert list(record['observation']['cameras']) == list(CAMERAS)
            for camera, stamp_ns in record['observation']['cameras'].items():
                assert stamp_ns in sent[camera]
    assert main(['audit', 'verify', str(run.audit)]) == 0
    capsys.readouterr()
    assert main(['audit', 'show', '--kind', 'mode', str(run.audit)]) == 0
    modes = [json.loads(line)['body']['mode'] for line in capsys.readouterr().out.splitlines()]
    # Each change of the burst, though nobody could have seen it by looking now and then.
    assert modes == [
        'active',
        'disarmed',
        'armed',
        'holding',
        'takeover',
        'armed',
        'disarmed',
        'inactive',
    ]
