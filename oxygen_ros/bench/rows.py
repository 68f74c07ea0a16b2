# SPDX-License-Identifier: Apache-2.0
"""The rows of the benchmark: settings of one engine, never other code."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.config import ActionConfig, Batching, EngineConfig, KVConfig, Policy, Sharing


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One row: how the same model on the same kernels is run."""

    name: str
    sharing: Sharing
    policy: Policy
    batching: Batching
    publish: str = 'tick'  # who publishes targets

    def engine_config(
        self,
        action: ActionConfig,
        *,
        max_live_prefixes: int,
        text_prefix_max_age_s: float,
        observation_period_s: float,
    ) -> EngineConfig:
        """Return the engine's settings of this row."""
        kv = KVConfig(
            sharing=self.sharing,
            max_live_prefixes=max_live_prefixes,
            num_text_blocks=512,
            text_prefix_max_age_s=text_prefix_max_age_s,
        )
        return EngineConfig(
            kv=kv,
            action=action,
            policy=self.policy,
            batching=self.batching,
            observation_period_s=observation_period_s,
        )

    def parameters(self) -> dict[str, object]:
        """Return the same as parameters of the node."""
        return {
            'baseline.kv_sharing': self.sharing.value,
            'baseline.scheduler_policy': self.policy.value,
            'baseline.batching': self.batching.value,
            'baseline.publish': self.publish,
        }


ROWS = {
    row.name: row
    for row in (
        BenchRow('isolated_fifo', Sharing.ISOLATED, Policy.FIFO, Batching.NONE),
        BenchRow('shared_fifo', Sharing.SHARED, Policy.FIFO, Batching.NONE),
        BenchRow('shared_batched', Sharing.SHARED, Policy.FIFO, Batching.CROSS_FRAME),
        BenchRow('full', Sharing.SHARED, Policy.PRIORITY_SLICING, Batching.CROSS_FRAME),
        BenchRow('unmanaged', Sharing.ISOLATED, Policy.FIFO, Batching.NONE, publish='engine'),
    )
}
