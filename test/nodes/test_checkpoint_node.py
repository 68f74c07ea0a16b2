# SPDX-License-Identifier: Apache-2.0
"""A checkpoint's folder through the node: bound to the robot, or refused with all that differs.

That text and adapter leave actions bit-equal is shown in models/test_checkpoints_in_engine.py.
"""

from __future__ import annotations

from pathlib import Path
import sys
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from own_domain import DOMAIN
import rclpy
from rclpy.context import Context
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from rig import CAMERAS, JOINTS, NodeProcess, overrides, Rig

sys.path.insert(0, str(Path(__file__).parents[1] / 'models'))
from checkpoints import adapter_folder

from oxygen_ros.demo.checkpoint import CheckpointInputs
from oxygen_ros.models.checkpoint import load_checkpoint
from oxygen_ros.models.errors import CheckpointError
from oxygen_ros.models.make_checkpoint import small_config, write_checkpoint
from oxygen_ros.models.vla_config import Family
from oxygen_ros.msg import ActionChunk, SceneGraph
from oxygen_ros.nodes.oxygen_node import OxygenNode
from oxygen_ros.setting import SettingError

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
KEYS = ('front', 'wrist')


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small pi0.5 for the rig's joints, with cameras of other names."""
    path = tmp_path_factory.mktemp('checkpoint') / 'pi05'
    write_checkpoint(path, small_config(Family.PI05, KEYS, len(JOINTS)))
    return path


def test_chunks_words_and_scene_graphs_come_from_the_checkpoint(folder: Path) -> None:
    checksum = load_checkpoint(folder).checksum
    pairs = ','.join(f'{camera}={key}' for camera, key in zip(CAMERAS, KEYS, strict=True))
    rig = Rig()
    node = NodeProcess(
        model__checkpoint=str(folder),
        model__camera_map=f'[{pairs}]',
        model__adapter=str(adapter_folder()),
        memory__period_s='1.0',
        action__mode='per_tick',
    )
    try:
        rig.listen(ActionChunk, 'oxygen/action_chunk')
        rig.listen(SceneGraph, 'oxygen/scene_graph', LATCHED)
        chunks, graphs = rig.received['oxygen/action_chunk'], rig.received['oxygen/scene_graph']
        rig.wait_for(lambda: len(chunks) > 3 and bool(graphs), 'chunks and a scene graph')
        answer = rig.wait_for_result(rig.ask(max_tokens=8))
    finally:
        rig.close()
        output = node.close()
    assert answer.finish_reason in ('stop', 'length')
    for result in (*chunks, *graphs, answer):
        assert result.provenance.model_checksum == checksum
        assert result.provenance.cameras == list(CAMERAS)
    assert (chunks[0].action_horizon, chunks[0].action_dim) == (16, len(JOINTS))
    # One pass a prefix: the state is part of it, so a second would say the same.
    passes = [chunk.provenance.observation_id for chunk in chunks]
    assert len(set(passes)) == len(passes)
    assert output.count('action.mode: chunked and not per_tick') == 1


def test_the_demo_binds_a_recordings_cameras_by_name_or_in_order(folder: Path) -> None:
    inputs = CheckpointInputs(folder)
    assert (inputs.cameras, len(inputs.joints)) == (KEYS, len(JOINTS))
    assert inputs.bind(('wrist', 'front'), JOINTS) == (('front', 'wrist'), ())
    assert inputs.bind(('wrist',), JOINTS) == (('wrist',), ())
    assert inputs.bind(('a', 'b', 'c'), JOINTS) == (('a', 'b'), ('a=front', 'b=wrist'))
    with pytest.raises(CheckpointError, match='joints: expected 3 for the state, got 1'):
        inputs.bind(KEYS, ('one',))


def configure(**parameters: Any) -> tuple[TransitionCallbackReturn, list[str]]:
    """Configure a node; return what came of it and the errors it logged."""
    context = Context()
    rclpy.init(context=context, domain_id=DOMAIN)
    try:
        node = OxygenNode(
            'checked',
            context=context,
            use_global_arguments=False,
            parameter_overrides=overrides(**parameters),
        )
        errors: list[str] = []
        logger = node.get_logger()
        node.get_logger = lambda: logger  # type: ignore[method-assign]
        logger.error = errors.append  # type: ignore[method-assign, assignment]
        result = node.trigger_configure()
        node.destroy_node()
    finally:
        context.try_shutdown()
    return result, errors


def test_a_robot_that_is_not_the_models_is_refused_with_the_whole_list(folder: Path) -> None:
    result, errors = configure(
        model__checkpoint=str(folder), joints=['a', 'b'], model__camera_map=['camera_0=rear']
    )
    assert result is TransitionCallbackReturn.FAILURE
    (line,) = errors
    assert line.startswith('configure: the checkpoint does not fit this robot: ')
    for part in (
        'camera camera_0: expected one of front, wrist, got rear',
        'camera camera_1: expected one of front, wrist, got camera_1',
        'joints: expected 3 for the state, got 2',
        'joints: expected 3 for the action, got 2',
    ):
        assert part in line


def test_missing_statistics_are_refused_when_configured(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if 'preprocessor_step' not in path.name:
            (tmp_path / path.name).symlink_to(path)
    result, errors = configure(model__checkpoint=str(tmp_path), cameras=list(KEYS))
    assert result is TransitionCallbackReturn.FAILURE
    assert len(errors) == 1 and 'normalizer_processor.safetensors' in errors[0]


@pytest.mark.parametrize(
    ('parameters', 'message'),
    [
        ({'model__checkpoint': '/none'}, 'model.checkpoint: expected a folder, got /none'),
        ({'model__adapter': '/none'}, 'model.adapter: expected together with model.checkpoint'),
        ({'model__camera_map': ['a=b']}, 'model.camera_map: expected together with'),
    ],
)
def test_a_parameter_that_cannot_hold_is_refused_at_the_start(
    parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        configure(**parameters)
