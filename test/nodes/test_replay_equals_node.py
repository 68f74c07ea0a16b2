# SPDX-License-Identifier: Apache-2.0
"""One recording through the node over DDS, on /clock, and through the robot below ROS: equal."""

from __future__ import annotations

import functools
from pathlib import Path
import shutil
import sys
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='needs the node')
from builtin_interfaces.msg import Time
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rig import Rig
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import String

from oxygen_ros.commands.replay_settings import make_replay, replay_settings
from oxygen_ros.memory.audit.audit_chain import segment_paths
from oxygen_ros.memory.audit.audit_records import find_records
from oxygen_ros.msg import ActionChunk, SceneGraph, Target
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.replay.bag import open_bag
from oxygen_ros.replay.layout import discover_cameras
from oxygen_ros.replay.output_types import exact_bytes, output_types
from oxygen_ros.replay.outputs import CHUNK, SCENE, TARGET, UTTERANCE

sys.path.append(str(Path(__file__).resolve().parents[1] / 'replay'))
from made_bags import make_bag, Plan

MS = 1_000_000
FACTS = 'facts:\n  - {entity: table, attribute: height, value: 0.75, unit: m, source: survey}\n'
WORDS = 'labels: [cup, box, table]\nattributes: {colour: [red]}\npredicates: [near]\n'
# The second question finds what the scene graph has seen until then in the store.
QUESTIONS = ((0.1, 'How high is the table?'), (0.45, 'Where are cup, box and table?'))
CASES = {
    'generated': (0.9, 0.3),
    'real/bridge_3cam_mcap': (1.2, 0.35),
    'real/donkey_compressed_mcap': (1.0, 0.4),
}
TOPICS: dict[str, tuple[type, str]] = {
    CHUNK: (ActionChunk, 'oxygen_ros/msg/ActionChunk'),
    SCENE: (SceneGraph, 'oxygen_ros/msg/SceneGraph'),
    TARGET: (Target, 'oxygen_ros/msg/Target'),
    UTTERANCE: (String, 'std_msgs/msg/String'),
}
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class NodeRun:
    """The node on /clock, which is moved on only once it has taken what came before."""

    def __init__(self, layout: Any, parameters: dict[str, Any], start_ns: int) -> None:
        self.rig = Rig(cameras=(), joints=())
        self.rig.robot.paused.add('joint_states')  # the recording's alone
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.node = OxygenNode(
            context=self.rig.context,
            parameter_overrides=[*overrides, Parameter('use_sim_time', value=True)],
        )
        self.rig.executor.add_node(self.node)
        self.received: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
        self.subscriptions = [
            self.rig.client.create_subscription(
                kind,
                topic,
                lambda data, topic=topic, msgtype=msgtype: self.received[topic].append(
                    exact_bytes(data, msgtype)
                ),
                QoSProfile(depth=1000),
                raw=True,
            )
            for topic, (kind, msgtype) in TOPICS.items()
        ]
        create = self.rig.client.create_publisher
        self.clock = create(Clock, '/clock', 10)
        self.publishers = {
            camera.topic: create(
                CompressedImage if camera.compressed else Image, camera.plays_on, 10
            )
            for camera in layout.camera_topics
        }
        self.publishers[layout.joint_topic] = create(JointState, 'joint_states', 10)
        self.publishers[layout.instruction_topic] = create(String, 'instruction', LATCHED)
        self.talks: list[Any] = []
        self.now_ns = start_ns

    def begin(self) -> None:
        self.set_time(self.now_ns)  # first: time that begins is a jump
        assert self.node.trigger_configure().name == 'SUCCESS'
        self.rig.wait_for(
            lambda: all(
                publisher.get_subscription_count() for publisher in self.publishers.values()
            ),
            'the subscriptions of the node',
        )
        # Each end of a topic learns of the other by itself; what is published before is not heard.
        publishers = [
            publisher for publisher in self.node.publishers if publisher.topic_name in TOPICS
        ]
        assert len(publishers) == len(TOPICS)
        self.rig.wait_for(
            lambda: (
                all(publisher.get_subscription_count() for publisher in publishers)
                and all(entry.get_publisher_count() for entry in self.subscriptions)
            ),
            'the topics of the node',
        )
        assert self.node.trigger_activate().name == 'SUCCESS'

    @property
    def live(self) -> Any:
        assert self.node._plane is not None
        return self.node._plane.live

    def set_time(self, ros_ns: int) -> None:
        """Let time pass, in steps that are no jumps."""
        while self.now_ns < ros_ns or self.node.get_clock().now().nanoseconds != ros_ns:
            self.now_ns = min(ros_ns, self.now_ns + 500 * MS)
            message = Clock(clock=Time(sec=self.now_ns // 10**9, nanosec=self.now_ns % 10**9))
            self.rig.wait_for(functools.partial(self._shows, message), 'a time')

    def _shows(self, message: Clock) -> bool:
        """Publish a time; return whether the node has heard of it."""
        self.clock.publish(message)
        return bool(self.node.get_clock().now().to_msg() == message.clock)

    def put(self, topic: str, data: bytes) -> None:
        before = self.live.num_events
        self.publishers[topic].publish(data)
        self.rig.wait_for(lambda: self.live.num_events > before, f'{topic} to be taken')

    def ask(self, text: str) -> None:
        before = self.live.num_events
        self.talks.append(self.rig.ask(text, max_tokens=0))
        self.rig.wait_for(lambda: self.live.num_events > before, 'the question to be taken')

    def end(self, counts: dict[str, int]) -> None:
        """End the run where it has come to, and wait for what it still has to publish."""
        self.rig.wait_for(self.live.is_idle, 'what is due')
        assert self.node.trigger_deactivate().name == 'SUCCESS'
        for talk in self.talks:
            self.rig.wait_for_result(talk)
        self.rig.wait_for(
            lambda: all(len(self.received[topic]) >= count for topic, count in counts.items()),
            timeout_s=10.0,
            what=f'{counts}, got { {topic: len(got) for topic, got in self.received.items()} }',
        )

    def close(self) -> None:
        self.node.trigger_shutdown()
        self.rig.executor.remove_node(self.node)
        self.node.destroy_node()
        self.rig.close()


def decoded(data: bytes, msgtype: str) -> Any:
    """Return a message, to be shown."""
    return output_types().deserialize_cdr(data, msgtype)


def audit_of(folder: Path) -> list[Any]:
    """Return the records of a run but for when the file was opened and closed."""
    return [
        (record['kind'], record['stamp_ns'], record['body'])
        for kind in ('parameters', 'mode', 'chunk', 'scene', 'utterance', 'instruction', 'fault')
        for _, record in find_records(segment_paths(folder), kind=kind)
    ]


@pytest.mark.parametrize('name', CASES)
def test_replay_equals_node(name, request, tmp_path):
    duration_s, scene_period_s = CASES[name]
    if name == 'generated':
        path = make_bag(tmp_path / 'bag', Plan(num_frames=18))
    else:
        path = request.getfixturevalue('shared') / 'data' / 'bags' / name
    facts = tmp_path / 'facts.yaml'
    facts.write_text(FACTS)
    words = tmp_path / 'words.yaml'
    words.write_text(WORDS)
    kept = tmp_path / 'kept'
    parameters = {
        'memory.store_file': str(kept / 'memory.db'),
        'memory.facts_file': str(facts),
        'memory.vocabulary_file': str(words),
        'audit.file': str(kept / 'audit'),
        'engine.clock': 'ros',
        'engine.deterministic': True,
        'model.seed': 2,  # whose scene graphs have objects
        'memory.temperature': 1.0,
    }
    with open_bag(path) as bag:
        layout = discover_cameras(bag)
        kept.mkdir()
        settings = replay_settings(
            layout,
            parameters,
            questions=QUESTIONS,
            scene_period=scene_period_s,
            duration=duration_s,
        )
        replay = make_replay(bag, layout, settings)
        result = replay.run()
        expected_audit = audit_of(kept / 'audit')
        shutil.rmtree(kept)
        kept.mkdir()
        run = NodeRun(layout, dict(settings.parameters), replay.start_ns)
        try:
            run.begin()
            play(run, bag, layout, replay.start_ns, round(replay.duration_s * 1e9))
            run.end({topic: len(result.of(topic)) for topic in TOPICS})
        finally:
            run.close()
    store = output_types()
    for topic, (_, msgtype) in TOPICS.items():
        expected = [bytes(store.serialize_cdr(message, msgtype)) for message in result.of(topic)]
        # The node ends in a hold, which a replay has no use for.
        got = run.received[topic][: len(expected)] if topic == TARGET else run.received[topic]
        assert len(expected), topic
        for index, (new, old) in enumerate(zip(got, expected)):
            difference = f'{topic} {index}: {decoded(old, msgtype)} {decoded(new, msgtype)}'
            assert new == old, difference
        assert len(got) == len(expected), topic
    texts = [text['text'] for text in result.texts if text['task'] == 'dialogue']
    assert [talk.result.text for talk in run.talks] == texts
    assert run.talks[1].result.citations
    audit = audit_of(kept / 'audit')
    assert {kind for kind, _, _ in audit} >= {'parameters', 'mode', 'chunk', 'scene', 'utterance'}
    assert audit == expected_audit


def play(run: NodeRun, bag: Any, layout: Any, start_ns: int, end_ns: int) -> None:
    """Give the node what the replay was given, in its order."""
    questions = list(QUESTIONS)

    def ask_before(time_ns: float) -> None:
        while questions and questions[0][0] * 1e9 <= time_ns:
            time_s, text = questions.pop(0)
            run.set_time(start_ns + round(time_s * 1e9))
            run.ask(text)

    for message in bag.messages(layout.topics.keys(), start_ns):
        time_ns = message.stamp_ns - start_ns
        if time_ns > end_ns:
            break
        ask_before(time_ns - 1)  # at the same time messages come first
        run.set_time(message.stamp_ns)
        run.put(message.topic, bytes(message.data))
    ask_before(end_ns)
    run.set_time(start_ns + end_ns)
