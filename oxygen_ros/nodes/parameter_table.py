"""The one table of the node's parameters; config/oxygen.yaml and the documentation are made from it."""
from __future__ import annotations

from .parameter_spec import ParameterSpec

_INF = float('inf')

PARAMETERS: tuple[ParameterSpec, ...] = (
    ParameterSpec('autostart', False, 'Configure and activate at the start of the process'),
    ParameterSpec('cameras', ['front', 'left_wrist', 'right_wrist'],
                  'Camera names in the order of the model; images come on <name>/image_raw'),
    ParameterSpec('optional_cameras', [''],
                  'Cameras without which an observation may be made; an empty name stands for none'),
    ParameterSpec('image_transport', 'auto', 'Topics to subscribe to: <name>/image_raw, '
                  '<name>/image_raw/compressed, or both', choices=('auto', 'raw', 'compressed')),
    ParameterSpec('joints', [f'joint_{index}' for index in range(7)],
                  'Joint names in the order of the model, as they stand in joint_states'),
    ParameterSpec('max_observation_age_ms', 400.0, 'A target from an older observation is not sent: '
                  'the node holds', 'ms', 1.0, 60_000.0, live=True),
    ParameterSpec('batching', 'cross_frame', 'Which text requests share a decode step',
                  choices=('cross_frame', 'none')),

    ParameterSpec('model.name', 'tiny', 'Model by name'),
    ParameterSpec('model.device', 'auto', 'auto (a GPU where there is one), cpu, cuda or cuda:N'),
    ParameterSpec('model.dtype', 'float32', 'Type of weights and KV cache',
                  choices=('float32', 'bfloat16')),
    ParameterSpec('model.seed', 0, 'Seed of random weights', low=0),
    ParameterSpec('model.action_dt_s', 0.02, 'Time between two steps of a chunk', 's', 0.001, 1.0),
    ParameterSpec('model.prefix_scope', 'observation', 'What the shared prefix holds',
                  choices=('observation', 'observation+prompt')),
    ParameterSpec('model.num_kv_heads', 1, 'Key and value heads of the tiny model', low=1, high=16),
    ParameterSpec('model.num_denoising_steps', 5, 'Euler steps of an action pass', low=1, high=100),

    ParameterSpec('sensors.camera_max_age_s', 1.0, 'An older image is not used', 's', 0.001, 3600.0),
    ParameterSpec('sensors.state_max_age_s', 1.0, 'Older joint positions are not acted on',
                  's', 0.001, 3600.0),
    ParameterSpec('sensors.assembly_wait_s', 0.02, "Longest wait for the other cameras' images of "
                  'one time step', 's', 0.0, 10.0),
    ParameterSpec('sensors.max_skew_s', 1.0, 'Largest spread of stamps within an observation',
                  's', 0.0001, 3600.0),
    ParameterSpec('sensors.future_tolerance_s', 0.05, 'A stamp further ahead of the node\'s clock '
                  'is replaced by the time of receipt', 's', 0.0, 60.0),

    ParameterSpec('actuation.rate_hz', 50.0, 'Control ticks per second', 'Hz', 1.0, 1000.0),
    ParameterSpec('actuation.mode', 'position', 'What a target means; effort is refused: an arm '
                  'cannot be held by it', choices=('position', 'velocity')),
    ParameterSpec('actuation.blend_s', 0.1, 'Longest fade from one chunk to the next', 's', 0.0, 5.0),
    ParameterSpec('actuation.activation_ramp_s', 1.0, 'Ramp from the measured joints to the chunk '
                  'after activation and enable', 's', 0.0, 60.0, live=True),
    ParameterSpec('actuation.recovery_ramp_s', 0.1, 'Ramp from a held target back to the chunk',
                  's', 0.0, 60.0, live=True),
    ParameterSpec('actuation.require_state', True, 'Hold while the joints are not measured',
                  live=True),

    ParameterSpec('limits.min_position', [-_INF], 'Lowest target: one value, or one for each joint',
                  'rad or m', live=True),
    ParameterSpec('limits.max_position', [_INF], 'Highest target, likewise', 'rad or m', live=True),
    ParameterSpec('limits.max_velocity', [2.0], 'Largest speed of a target, likewise',
                  'rad/s or m/s', live=True),
    ParameterSpec('limits.max_step', [_INF], 'Largest change between two targets, likewise',
                  'rad or m', live=True),
    ParameterSpec('limits.max_tracking_error', [_INF], 'Largest distance of the joints from the '
                  'last target before the node holds, likewise', 'rad or m', live=True),

    ParameterSpec('realtime.switch_interval_s', 0.0005, 'How long another thread may keep the '
                  'interpreter', 's', 0.00001, 1.0),
    ParameterSpec('realtime.fifo_priority', 0, 'SCHED_FIFO priority of the tick; 0: leave the '
                  'scheduler alone', low=0, high=99),
    ParameterSpec('realtime.cpus', [-1], 'Cores of the tick; -1 stands for all'),
    ParameterSpec('realtime.lock_memory', False, 'Keep the process in memory (mlockall)'),
    ParameterSpec('realtime.freeze_gc', True, 'Keep what exists at activation out of garbage '
                  'collection until deactivation'),
    ParameterSpec('realtime.disable_gc', False, 'No cyclic garbage collection while active'),

    ParameterSpec('kv.sharing', 'shared', 'Who reads a prefix: every task, or its own task alone',
                  choices=('shared', 'isolated')),
    ParameterSpec('kv.block_size', 16, 'Size of a KV block', 'tokens', 1, 1024),
    ParameterSpec('kv.max_live_prefixes', 4, 'Prefixes in memory at one time', low=2, high=64),
    ParameterSpec('kv.num_text_blocks', 256, 'Blocks for text', low=1, high=1_000_000),
    ParameterSpec('kv.text_prefix_max_age_s', 0.5, 'A new text request joins a pinned prefix that '
                  'is younger', 's', 0.0, 60.0),

    ParameterSpec('scheduler.policy', 'priority_slicing', 'How work is ordered',
                  choices=('priority_slicing', 'fifo')),
    ParameterSpec('scheduler.micro_slice_s', 0.0035, 'Longest slice of best-effort work',
                  's', 0.0001, 1.0),
    ParameterSpec('scheduler.safety_threshold_s', 0.0025, 'No slice starts when less is left before '
                  'an action is due', 's', 0.0, 1.0),
    ParameterSpec('scheduler.dialogue_patience_s', 0.03, 'Dialogue work unserved for longer goes '
                  'first', 's', 0.001, 60.0),
    ParameterSpec('scheduler.scene_graph_patience_s', 0.1, 'Scene-graph work unserved for longer '
                  'goes first', 's', 0.001, 60.0),
    ParameterSpec('scheduler.oversize_patience', 3, 'Cycles after which a unit longer than any cycle '
                  'runs all the same', low=1, high=1000),

    ParameterSpec('action.mode', 'per_tick', 'When an action pass is made: at each new state or '
                  'prefix, or at each new prefix and every chunk_periods',
                  choices=('per_tick', 'chunked')),
    ParameterSpec('action.chunk_periods', 8, 'Ticks after which a chunked pass is made on an old '
                  'prefix too', low=1, high=10_000),

    ParameterSpec('engine.deterministic', False, 'Bit-identical results whatever else is live'),
    ParameterSpec('engine.attention_backend', 'sdpa', 'Attention by name',
                  choices=('reference', 'sdpa')),
    ParameterSpec('engine.reuse_vision', True, 'Keep the features of an image that comes again'),
    ParameterSpec('engine.observation_period_s', 0.1, 'Shortest time between two observations',
                  's', 0.0, 60.0),
    ParameterSpec('engine.max_text_requests', 64, 'Live text requests; more are refused',
                  low=1, high=10_000),
    ParameterSpec('engine.max_admitted', 16, 'Text requests that hold a prefix at one time',
                  low=1, high=1000),
    ParameterSpec('engine.max_decode_batch', 16, 'Rows of a decode step', low=1, high=1000),
    ParameterSpec('engine.max_text_tokens', 512, 'Prompt and answer of one request together',
                  'tokens', 1, 1_000_000),
    ParameterSpec('engine.seed', 0, 'Seed of the action noise', low=0),
    ParameterSpec('engine.num_threads', 1, 'CPU threads of a pass; 0: as torch chooses',
                  low=0, high=256),
    ParameterSpec('engine.stuck_after_s', 2.0, 'An engine that gives no sign of life for longer is '
                  'reported', 's', 0.1, 600.0),

    ParameterSpec('dialogue.max_tokens', 64, 'Longest answer where the goal names none',
                  'tokens', 1, 1_000_000, live=True),
    ParameterSpec('dialogue.max_concurrent', 8, 'Goals that are answered at one time',
                  low=1, high=1000, live=True),
    ParameterSpec('dialogue.policy', 'queue', 'What happens to a goal beyond max_concurrent: it '
                  'waits, is refused, or takes the place of the oldest',
                  choices=('queue', 'refuse', 'supersede'), live=True),
    ParameterSpec('dialogue.max_queued', 32, 'Goals that may wait; more are refused',
                  low=0, high=10_000, live=True),
    ParameterSpec('dialogue.max_prompt_bytes', 2000, 'Longest prompt or instruction (UTF-8)',
                  'bytes', 1, 1_000_000, live=True),
    ParameterSpec('dialogue.result_timeout_s', 900, 'How long a result is kept for its client',
                  's', 1, 86_400),

    ParameterSpec('memory.period_s', 2.0, 'Time between two scene-graph updates in the background; '
                  '0: only on request', 's', 0.0, 3600.0),
    ParameterSpec('memory.prompt', 'List the objects and their relations.',
                  'Prompt of a scene-graph update'),
    ParameterSpec('memory.vocabulary_file', '', 'YAML file of labels, attributes and predicates; '
                  'empty: the built-in words'),
    ParameterSpec('memory.max_new_objects', 6, 'Objects in one update', low=1, high=64),
    ParameterSpec('memory.max_new_relations', 4, 'Relations in one update', low=0, high=64),
    ParameterSpec('memory.max_attributes', 2, 'Attributes of one object', low=0, high=8),
    ParameterSpec('memory.max_age_s', 60.0, 'An object unseen for longer is forgotten',
                  's', 0.1, 31_536_000.0),
    ParameterSpec('memory.max_misses', 5, 'An object not found in so many updates of its camera is '
                  'forgotten', low=1, high=1000),
    ParameterSpec('memory.max_objects', 256, 'Objects remembered', low=1, high=100_000),
    ParameterSpec('memory.max_relations', 512, 'Relations remembered', low=1, high=100_000),

    ParameterSpec('diagnostics.max_jitter_p99_ms', 2.0, 'Tick lateness above which actuation is '
                  'warned of (99th percentile of a second)', 'ms', 0.001, 10_000.0, live=True),
    ParameterSpec('diagnostics.max_held_ratio', 0.1, 'Share of held ticks in a second above which '
                  'actuation is warned of', '', 0.0, 1.0, live=True),
    ParameterSpec('diagnostics.min_camera_rate_hz', 1.0, 'Image rate below which a camera is warned '
                  'of', 'Hz', 0.0, 1000.0, live=True),
)
