# SPDX-License-Identifier: Apache-2.0
"""Dialogues that last, and many of them: the node stays as it was and goes on answering."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from action_msgs.msg import GoalStatus
from armed_rig import armed_rig

from oxygen_ros.srv import GetMemoryReport, SetInstruction, UpdateSceneGraph


def endless(rig, monkeypatch):
    """Have no answer end before its last token, until the function that is returned is called."""
    model = rig.node.robot.model
    true, eos = model.logits, list(model.spec.eos_token_ids)
    ended = threading.Event()

    def logits(hidden):
        scores = true(hidden)
        scores[:, eos] = 1e9 if ended.is_set() else -1e9
        return scores

    monkeypatch.setattr(model, 'logits', logits)
    return ended.set


@pytest.mark.slow
def test_a_dialogue_longer_than_results_are_kept_ends_as_any_other(monkeypatch):
    with armed_rig(
        dialogue__result_timeout_s=1, engine__max_text_tokens=4000, kv__num_text_blocks=600
    ) as rig:
        end = endless(rig, monkeypatch)
        talk = rig.ask(max_tokens=3500, temperature=1.0)
        rig.wait_for(lambda: bool(talk.feedback), 'some text')
        rig.spin_for(2.0)  # twice as long as results are kept
        assert talk.result is None
        end()
        result = rig.wait_for_result(talk)
        assert talk.status == GoalStatus.STATUS_SUCCEEDED and talk.num_results == 1
        assert result.finish_reason == 'stop' and result.text


def test_a_cancel_in_the_middle_of_decoding_is_served_at_once_with_the_text_so_far(monkeypatch):
    # So many tokens that the dialogue outlasts any pause of the machine.
    with armed_rig(engine__max_text_tokens=4000, kv__num_text_blocks=600) as rig:
        endless(rig, monkeypatch)
        talk = rig.ask(max_tokens=3500, temperature=1.0)
        rig.wait_for(lambda: len(talk.feedback) > 3, 'some text')
        cancel = talk.handle.cancel_goal_async()
        rig.wait_for(cancel.done, 'the answer to the cancel')
        assert [goal.goal_id for goal in cancel.result().goals_canceling] == [talk.handle.goal_id]
        num_tokens = talk.feedback[-1].num_tokens
        result = rig.wait_for_result(talk)
        assert talk.status == GoalStatus.STATUS_CANCELED
        assert result.text.startswith(talk.feedback[-1].text) and result.text
        assert result.num_tokens < num_tokens + 1000  # of 3500


@pytest.mark.parametrize('num_goals', [20, pytest.param(100, marks=pytest.mark.slow)])
def test_after_many_goals_beside_services_all_still_answer_and_nothing_has_grown(num_goals):
    with armed_rig(memory__period_s=0.2, dialogue__max_concurrent=4) as rig:
        rig.wait_for_result(rig.ask(max_tokens=2))
        group = rig.node.default_callback_group

        def counts():
            node = rig.node
            return [
                len(list(kind))
                for kind in (
                    node.publishers,
                    node.subscriptions,
                    node.services,
                    node.timers,
                    group.entities,
                )
            ]

        before = counts()
        for _ in range(num_goals // 10):
            talks = [rig.ask(max_tokens=2) for _ in range(10)]
            update = rig.call(UpdateSceneGraph, 'oxygen/update_scene_graph')
            assert update.success, update.message
            for talk in talks:
                rig.wait_for_result(talk)
                assert talk.status == GoalStatus.STATUS_SUCCEEDED
        assert counts() == before
        assert rig.call(
            SetInstruction, 'oxygen/set_instruction', SetInstruction.Request(instruction='wave')
        ).success
        assert rig.call(GetMemoryReport, 'oxygen/get_memory_report').success
        rig.wait_for_fresh()
        rig.wait_for(
            lambda: rig.node.robot.engine.text.num_live <= 1,
            'the end of all but a scene graph of the background',
        )
        assert not rig.node.faults.counts and not rig.node.robot.health.reports
