# SPDX-License-Identifier: Apache-2.0
"""Random orders of send, cancel, supersede and deactivate: one terminal state for each goal."""

from __future__ import annotations

from collections import Counter
import random

import pytest

pytest.importorskip('rclpy', reason='the node is a ROS node')
from action_msgs.msg import GoalStatus
from rig import overrides, Rig

from oxygen_ros.nodes.oxygen_node import OxygenNode

TERMINAL = {
    'stop': GoalStatus.STATUS_SUCCEEDED,
    'length': GoalStatus.STATUS_SUCCEEDED,
    'cancelled': GoalStatus.STATUS_CANCELED,
    'superseded': GoalStatus.STATUS_ABORTED,
    'refused': GoalStatus.STATUS_ABORTED,
    'error': GoalStatus.STATUS_ABORTED,
}


@pytest.mark.parametrize('policy', ['queue', 'refuse', 'supersede'])
@pytest.mark.parametrize('num_steps', [40, pytest.param(500, marks=pytest.mark.slow)])
def test_every_goal_gets_exactly_one_terminal_state_and_nothing_leaks(policy, num_steps):
    rig = Rig()
    node = OxygenNode(
        context=rig.context,
        parameter_overrides=overrides(
            dialogue__policy=policy, dialogue__max_concurrent=3, dialogue__max_queued=4
        ),
    )
    rig.executor.add_node(node)
    chance = random.Random(f'{policy} {num_steps}')
    talks = []
    try:
        node.trigger_configure()
        node.trigger_activate()
        for _ in range(num_steps):
            action = chance.choice(['send', 'send', 'send', 'cancel', 'cancel', 'wait', 'restart'])
            if action == 'send':
                talks.append(rig.ask(max_tokens=chance.choice([1, 8, 60])))
            elif action == 'cancel' and talks:
                talks[-chance.randint(1, min(4, len(talks)))].handle.cancel_goal_async()
            elif action == 'wait':
                rig.spin_for(chance.choice([0.0, 0.01, 0.05]))
            elif action == 'restart' and chance.random() < 0.3:
                node.trigger_deactivate()
                if chance.random() < 0.5:
                    rig.spin_for(0.01)
                node.trigger_activate()
        rig.wait_for(lambda: all(talk.result is not None for talk in talks), 'all results')
        rig.spin_for(0.2)
        assert [talk.num_results for talk in talks] == [1] * len(talks)
        for talk in talks:
            assert talk.status == TERMINAL[talk.result.finish_reason], talk.result
        reasons = Counter(talk.result.finish_reason for talk in talks)
        assert set(reasons) & {'stop', 'length'}, reasons
        assert not node.faults.counts
        assert not node.robot.health.reports
        rig.wait_for(lambda: node.robot.engine.text.num_live == 0, 'the end of all requests')
        node.trigger_deactivate()
        node.robot.engine.check_integrity()
        report = node.robot.memory_report()
        assert report.blocks_free == report.blocks_total
    finally:
        node.trigger_shutdown()
        rig.executor.remove_node(node)
        node.destroy_node()
        rig.close()
