# SPDX-License-Identifier: Apache-2.0
"""Parameters of KV cache, scheduler, engine and dialogue."""

from __future__ import annotations

from .spec import ParameterSpec

ENGINE: tuple[ParameterSpec, ...] = (
    ParameterSpec(
        'kv.sharing',
        'shared',
        'Who reads a prefix: every task, or its own task alone',
        choices=('shared', 'isolated'),
    ),
    ParameterSpec('kv.block_size', 8, 'Size of a KV block', 'tokens', 1, 1024),
    ParameterSpec('kv.max_live_prefixes', 4, 'Prefixes in memory at one time', low=2, high=64),
    ParameterSpec('kv.num_text_blocks', 256, 'Blocks for text', low=1, high=1_000_000),
    ParameterSpec(
        'kv.text_prefix_max_age_s',
        0.5,
        'A new text request joins a pinned prefix that is younger',
        's',
        0.0,
        60.0,
    ),
    ParameterSpec(
        'scheduler.policy',
        'priority_slicing',
        'How work is ordered',
        choices=('priority_slicing', 'fifo'),
    ),
    ParameterSpec(
        'scheduler.micro_slice_s', 0.0035, 'Longest slice of best-effort work', 's', 0.0001, 1.0
    ),
    ParameterSpec(
        'scheduler.safety_threshold_s',
        0.0025,
        'No slice starts when less is left before an action is due',
        's',
        0.0,
        1.0,
    ),
    ParameterSpec(
        'scheduler.dialogue_patience_s',
        0.03,
        'Dialogue work unserved for longer goes first',
        's',
        0.001,
        60.0,
    ),
    ParameterSpec(
        'scheduler.scene_graph_patience_s',
        0.03,
        'Scene-graph work unserved for longer goes first',
        's',
        0.001,
        60.0,
    ),
    ParameterSpec(
        'scheduler.oversize_patience',
        3,
        'Cycles after which a unit longer than any cycle runs all the same',
        low=1,
        high=1000,
    ),
    ParameterSpec(
        'action.mode',
        'per_tick',
        'When an action pass is made: at each new state or prefix, or at each new '
        'prefix and every chunk_periods',
        choices=('per_tick', 'chunked'),
    ),
    ParameterSpec(
        'action.chunk_periods',
        8,
        'Ticks after which a chunked pass is made on an old prefix too',
        low=1,
        high=10_000,
    ),
    ParameterSpec('engine.deterministic', False, 'Bit-identical results whatever else is live'),
    ParameterSpec(
        'engine.attention_backend', 'sdpa', 'Attention by name', choices=('reference', 'sdpa')
    ),
    ParameterSpec(
        'engine.jump_forward',
        True,
        'Take tokens that the grammar of a scene graph forces without sampling them, '
        'several in a step',
    ),
    ParameterSpec('engine.reuse_vision', True, 'Keep the features of an image that comes again'),
    ParameterSpec(
        'engine.observation_period_s',
        0.1,
        'Shortest time between two observations',
        's',
        0.0,
        60.0,
    ),
    ParameterSpec(
        'engine.max_text_requests', 64, 'Live text requests; more are refused', low=1, high=10_000
    ),
    ParameterSpec(
        'engine.max_admitted', 16, 'Text requests that hold a prefix at one time', low=1, high=1000
    ),
    ParameterSpec('engine.max_decode_batch', 16, 'Rows of a decode step', low=1, high=1000),
    ParameterSpec(
        'engine.max_text_tokens',
        512,
        'Prompt and answer of one request together',
        'tokens',
        1,
        1_000_000,
    ),
    ParameterSpec('engine.seed', 0, 'Seed of the action noise', low=0),
    ParameterSpec(
        'engine.num_threads', 1, 'CPU threads of a pass; 0: as torch chooses', low=0, high=256
    ),
    ParameterSpec(
        'engine.stuck_after_s',
        2.0,
        'An engine that gives no sign of life for longer is reported',
        's',
        0.1,
        600.0,
    ),
    ParameterSpec(
        'dialogue.max_tokens',
        64,
        'Longest answer where the goal names none',
        'tokens',
        1,
        1_000_000,
        live=True,
    ),
    ParameterSpec(
        'dialogue.max_concurrent',
        8,
        'Goals that are answered at one time',
        low=1,
        high=1000,
        live=True,
    ),
    ParameterSpec(
        'dialogue.policy',
        'queue',
        'What happens to a goal beyond max_concurrent: it waits, is refused, or takes '
        'the place of the oldest',
        choices=('queue', 'refuse', 'supersede'),
        live=True,
    ),
    ParameterSpec(
        'dialogue.max_queued',
        32,
        'Goals that may wait; more are refused',
        low=0,
        high=10_000,
        live=True,
    ),
    ParameterSpec(
        'dialogue.max_prompt_bytes',
        2000,
        'Longest prompt or instruction (UTF-8)',
        'bytes',
        1,
        1_000_000,
        live=True,
    ),
    ParameterSpec(
        'dialogue.result_timeout_s',
        900,
        'How long a result is kept for its client',
        's',
        1,
        86_400,
    ),
)
