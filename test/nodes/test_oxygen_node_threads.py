# SPDX-License-Identifier: Apache-2.0
"""Who computes: one thread owns the model, after its warm-up; logging is left alone."""

from __future__ import annotations

import json
from pathlib import Path
import subprocess
import sys
import threading

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from armed_rig import armed_rig

from oxygen_ros.srv import UpdateSceneGraph

ROOT = Path(__file__).resolve().parents[2]
METHODS = (
    'encode_image',
    'embed_tokens',
    'run_layer',
    'keys_values',
    'run_text_layer',
    'logits',
    'begin_action',
    'denoise_step',
    'finish_action',
)


def test_every_call_of_the_model_comes_from_one_thread_and_none_within_another(monkeypatch):
    with armed_rig(memory__period_s=0.2) as rig:
        model = rig.node.robot.model
        calls, inside, nested = {}, [], []

        def watched(name, true):
            def call(*args, **kwargs):
                if inside and inside[-1] != threading.get_ident():
                    nested.append(name)
                inside.append(threading.get_ident())
                calls.setdefault(name, set()).add(threading.current_thread().name)
                try:
                    return true(*args, **kwargs)
                finally:
                    inside.pop()

            return call

        methods = [name for name in METHODS if hasattr(model, name)]
        for name in methods:
            monkeypatch.setattr(model, name, watched(name, getattr(model, name)))
        talks = [rig.ask(max_tokens=8) for _ in range(3)]
        assert rig.call(UpdateSceneGraph, 'oxygen/update_scene_graph').success
        for talk in talks:
            rig.wait_for_result(talk)
        rig.wait_for(
            lambda: {'encode_image', 'run_text_layer', 'denoise_step'} <= set(calls),
            'all kinds of work',
        )
        assert set().union(*calls.values()) == {'oxygen_engine'}, calls
        assert not nested


def test_the_warm_up_is_over_before_anything_is_published_and_is_not_in_the_figures():
    with armed_rig() as rig:
        runtime = rig.node.robot
        assert rig.node._plane.live.warm_up_s > 0.0
        first = next(target for target in rig.targets if target.chunk_ids)
        assert min(first.observation_ids) > 0  # those of the warm-up are negative
        num_started = runtime.engine.counters.observations_started
        assert num_started <= runtime.sensors._num_observations
        rows = runtime.engine.timeline.snapshot()
        assert len(rows) and rows[:, 1].min() >= runtime.started_ns - 1_000_000_000


@pytest.mark.slow
def test_importing_the_node_leaves_the_programs_logging_alone():
    code = """
import json, logging, sys
before = logging.getLogger().level, len(logging.getLogger().handlers), logging.root.manager.disable
import oxygen_ros.nodes.oxygen_node
from oxygen_ros.models.registry import create_model
create_model('tiny')
after = logging.getLogger().level, len(logging.getLogger().handlers), logging.root.manager.disable
print(json.dumps([before, after, 'cv_bridge' in sys.modules]))
"""
    output = subprocess.run(
        [sys.executable, '-c', code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120.0,
        check=True,
    ).stdout
    before, after, has_cv_bridge = json.loads(output.splitlines()[-1])
    assert before == after and not has_cv_bridge
