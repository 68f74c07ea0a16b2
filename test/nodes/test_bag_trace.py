# SPDX-License-Identifier: Apache-2.0
"""From a published target of a replayed recording back to the very images it came from."""

from __future__ import annotations

from hashlib import sha256
import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from rclpy.parameter import Parameter
from rig import overrides, Rig

from oxygen_ros.cli import main
from oxygen_ros.engine.prefixes.input_hash import input_hash
from oxygen_ros.ingest import decode_compressed, decode_image
from oxygen_ros.msg import ActionChunk, Target
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.nodes.sources.bag_player import BagPlayer
from oxygen_ros.replay.bag import Bag, open_bag
from oxygen_ros.replay.layout import BagLayout, discover
from oxygen_ros.replay.playing import read_stamp, StampShift
from oxygen_ros.types import CameraFrame

NUM_TARGETS = 10


class Recorded:
    """The recording itself: its images by camera and header stamp, as they were recorded."""

    def __init__(self, bag: Bag, layout: BagLayout) -> None:
        self.bag = bag
        topics = {camera.topic: camera.camera for camera in layout.camera_topics}
        self.images = {
            (topics[message.topic], read_stamp(message.data)): message
            for message in bag.messages(topics)
        }

    def frame(self, camera: str, stamp_ns: int) -> CameraFrame:
        """Return an image, decoded."""
        image: Any = self.bag.deserialize(self.images[camera, stamp_ns])
        pixels = (
            decode_compressed(image.format, image.data)
            if hasattr(image, 'format')
            else decode_image(
                image.encoding,
                image.height,
                image.width,
                image.step,
                image.is_bigendian,
                image.data,
            )
        )
        return CameraFrame(camera, stamp_ns, 0, np.asarray(pixels))


def play(rig, path, layout, audit):
    """Play the recording to a node with an audit log; return ten targets and the model's sum."""
    node = OxygenNode(
        context=rig.context,
        parameter_overrides=overrides(
            cameras=list(layout.cameras),
            joints=list(layout.joint_names),
            audit__file=str(audit),
            max_observation_age_ms=2000.0,
        ),
    )
    rig.executor.add_node(node)
    player = None
    try:
        node.trigger_configure()
        node.trigger_activate()
        player = BagPlayer(
            context=rig.context,
            parameter_overrides=[Parameter('bag', value=str(path)), Parameter('loop', value=True)],
        )
        rig.executor.add_node(player)
        targets = rig.received['oxygen/target']

        def fresh():
            return [target for target in targets if target.chunk_ids and not target.held]

        # Spread over the recording, so that they come of several observations.
        rig.wait_for(lambda: len(fresh()) >= 6 * NUM_TARGETS, 'targets')
        chosen = fresh()[: 6 * NUM_TARGETS : 6]
        # A chunk that is published is on its way to the log.
        named = {chunk_id for target in chosen for chunk_id in target.chunk_ids}
        rig.wait_for(
            lambda: named <= {chunk.chunk_id for chunk in rig.received['oxygen/action_chunk']},
            'their chunks',
        )
        return chosen, node.robot.model.checksum
    finally:
        node.trigger_shutdown()
        for made in filter(None, (player, node)):
            rig.executor.remove_node(made)
            made.destroy_node()


def test_ten_targets_of_a_recording_lead_to_its_own_stamps_and_pixels(
    shared, tmp_path, monkeypatch, capsys
):
    path = shared / 'data' / 'bags' / 'real' / 'bridge_3cam_mcap'
    moved: dict[int, int] = {}  # stamp as it was played: as it was recorded
    original = StampShift.moved

    def note(shift, topic, recorded_ns, stamp_ns):
        new_ns = original(shift, topic, recorded_ns, stamp_ns)
        moved[new_ns] = stamp_ns
        return new_ns

    monkeypatch.setattr(StampShift, 'moved', note)
    rig = Rig(cameras=())
    rig.robot.paused.add('joint_states')
    for kind, topic in ((Target, 'oxygen/target'), (ActionChunk, 'oxygen/action_chunk')):
        rig.listen(kind, topic)
    try:
        with open_bag(path) as bag:
            layout = discover(bag)
            recorded = Recorded(bag, layout)
            targets, checksum = play(rig, path, layout, tmp_path / 'audit')
            assert len(targets) == NUM_TARGETS
            observations = set()
            for target in targets:
                for chunk_id, observation_id in zip(target.chunk_ids, target.observation_ids):
                    capsys.readouterr()
                    assert (
                        main(['audit', 'show', '--chunk', str(chunk_id), str(tmp_path / 'audit')])
                        == 0
                    )
                    record = json.loads(capsys.readouterr().out)
                    assert record['observation']['id'] == observation_id
                    observations.add(observation_id)
                    stamps = record['observation']['cameras']
                    assert list(stamps) == list(layout.cameras)
                    frames = [
                        recorded.frame(camera, moved[stamp_ns])
                        for camera, stamp_ns in stamps.items()
                    ]
                    assert record['prefix_hash'] == input_hash(
                        checksum,
                        [(frame, sha256(frame.image.tobytes()).hexdigest()) for frame in frames],
                        (),
                    )
            assert len(observations) > 1
    finally:
        rig.close()
    assert main(['audit', 'verify', str(tmp_path / 'audit')]) == 0
