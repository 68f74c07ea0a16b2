# SPDX-License-Identifier: Apache-2.0
"""The engine keeps memory whole, and ends each request once, under any sequence of calls."""

from harness import FakeSensors, Harness, MS
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import invariant, precondition, rule, RuleBasedStateMachine

from oxygen_ros.engine.config import KVConfig
from oxygen_ros.types import FinishReason, TaskType


class EngineMachine(RuleBasedStateMachine):
    """The whole engine under any sequence of calls.

    The model is real; memory is short, so that requests are preempted, and slots are few, so that
    they wait.
    """

    def __init__(self):
        super().__init__()
        self.harness = Harness(
            sensors=FakeSensors(2, period_ns=60 * MS),
            max_text_tokens=48,
            max_admitted=5,
            place_queries=4,
            kv=KVConfig(
                block_size=4, num_text_blocks=20, max_live_prefixes=3, text_prefix_max_age_s=0.1
            ),
        )
        self.submitted = 0

    @rule(
        task=strategies.sampled_from([TaskType.DIALOGUE, TaskType.SCENE_GRAPH]),
        tokens=strategies.integers(1, 40),
    )
    def add(self, task, tokens):
        self.submitted += 1
        self.harness.ask('q', max_tokens=tokens, task=task, request_id=self.submitted)

    @rule(cycles=strategies.integers(1, 6))
    def grow_and_see_new_observations(self, cycles):
        self.harness.run(cycles)

    @rule(units=strategies.integers(1, 3))
    def suspend(self, units):
        self.harness.engine.scheduler._micro_slice_ns = units * MS

    @precondition(lambda self: self.submitted)
    @rule(data=strategies.data())
    def cancel(self, data):
        request_id = data.draw(strategies.integers(1, self.submitted))
        had_ended = request_id in self.harness.results
        assert self.harness.engine.cancel_text(request_id) != had_ended
        result = self.harness.results[request_id]
        assert had_ended or result.finish_reason is FinishReason.CANCELLED

    @rule()
    def time_jumps(self):
        self.harness.engine.reset_observations()

    @invariant()
    def memory_is_whole_and_an_action_fits(self):
        engine = self.harness.engine
        engine.check_integrity()
        pool = engine.manager.pool
        assert pool.num_action_runs <= 2
        assert pool.num_free_runs >= pool.reserved_runs - pool.num_action_runs

    def teardown(self):
        engine = self.harness.engine
        engine.stop()
        engine.check_integrity()
        assert engine.manager.pool.num_free == engine.manager.pool.num_blocks
        assert sorted(self.harness.results) == list(range(1, self.submitted + 1))


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(
    max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
