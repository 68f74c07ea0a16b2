# SPDX-License-Identifier: Apache-2.0
"""Parameters of memory, audit log and diagnostics."""

from __future__ import annotations

from .spec import ParameterSpec

MEMORY: tuple[ParameterSpec, ...] = (
    ParameterSpec(
        'memory.period_s',
        2.0,
        'Time between two scene-graph updates in the background; 0: only on request',
        's',
        0.0,
        3600.0,
    ),
    ParameterSpec(
        'memory.prompt', 'List the objects and their relations.', 'Prompt of a scene-graph update'
    ),
    ParameterSpec(
        'memory.vocabulary_file',
        '',
        'YAML file of labels, attributes and predicates; empty: the built-in words',
    ),
    ParameterSpec('memory.max_new_objects', 6, 'Objects in one update', low=1, high=64),
    ParameterSpec('memory.max_new_relations', 4, 'Relations in one update', low=0, high=64),
    ParameterSpec('memory.max_attributes', 2, 'Attributes of one object', low=0, high=8),
    ParameterSpec(
        'memory.max_age_s',
        60.0,
        'An object unseen for longer is forgotten',
        's',
        0.1,
        31_536_000.0,
    ),
    ParameterSpec(
        'memory.max_misses',
        5,
        'An object not found in so many updates of its camera is forgotten',
        low=1,
        high=1000,
    ),
    ParameterSpec('memory.max_objects', 256, 'Objects remembered', low=1, high=100_000),
    ParameterSpec('memory.max_relations', 512, 'Relations remembered', low=1, high=100_000),
    ParameterSpec(
        'memory.temperature',
        1.0,
        'Sampling temperature of an update, each with a seed of its own; 0: greedy, of '
        'which random weights make an empty graph',
        low=0.0,
        high=10.0,
    ),
    ParameterSpec(
        'memory.place_queries',
        16,
        'Vectors of the dense read that gives an update the embedding of its place; 0: none',
        low=0,
        high=256,
    ),
    ParameterSpec(
        'memory.frame_id',
        '',
        'Frame of the positions of objects, one that does not move with a camera; '
        'empty: objects have none',
    ),
    ParameterSpec(
        'memory.camera_poses',
        [0.0],
        'Where the cameras stand in that frame: x, y, z (m) and quaternion x, y, z, w '
        'of each optical frame, one after another in the order of cameras; 0 alone: '
        'they are looked up by TF',
        'm',
    ),
    ParameterSpec(
        'memory.depth_cameras',
        [''],
        'Cameras with a depth image on <name>/depth/image_raw that fits their image; '
        'an empty name stands for none',
    ),
    ParameterSpec(
        'memory.plane', False, 'Where there is no depth, take objects to stand on a level plane'
    ),
    ParameterSpec(
        'memory.plane_height_m',
        0.0,
        'Height of that plane in memory.frame_id',
        'm',
        -1_000.0,
        1_000.0,
    ),
    ParameterSpec(
        'memory.store_file',
        '',
        'SQLite file of what was seen, said and told; empty: nothing is kept on disk',
    ),
    ParameterSpec(
        'memory.retention_bytes',
        268_435_456,
        'Largest size of all files of the store together',
        'bytes',
        8_388_608,
        1_099_511_627_776,
    ),
    ParameterSpec(
        'memory.retention_age_s',
        2_592_000.0,
        'Entries of the store older than this before the newest are let go of',
        's',
        1.0,
        3_153_600_000.0,
    ),
    ParameterSpec(
        'memory.retention_chunk_age_s',
        3_600.0,
        'The same for summaries of action chunks',
        's',
        1.0,
        3_153_600_000.0,
    ),
    ParameterSpec(
        'memory.recall_tokens',
        96,
        'Most tokens of what is remembered in the prompt of a dialogue, where there is '
        'a store; 0: none',
        'tokens',
        0,
        100_000,
    ),
    ParameterSpec(
        'memory.facts_file',
        '',
        'YAML file of facts that answers and objects are checked against; empty: they '
        'are not checked',
    ),
    ParameterSpec(
        'audit.file', '', "Folder of the audit log's files, audit-*.jsonl; empty: no log is kept"
    ),
    ParameterSpec(
        'audit.fsync',
        'interval',
        'When the disk must have the log: after each write, each interval, or when the '
        'system likes',
        choices=('always', 'interval', 'never'),
    ),
    ParameterSpec('audit.fsync_interval_s', 1.0, 'That interval', 's', 0.01, 3_600.0),
    ParameterSpec(
        'audit.key_file', '', 'File with the key of a keyed log (HMAC); empty: plain hashes'
    ),
    ParameterSpec(
        'latency.rate_hz',
        10.0,
        'Reports on ~/latency per second; 0: none',
        'Hz',
        0.0,
        100.0,
        live=True,
    ),
    ParameterSpec(
        'diagnostics.rate_hz',
        1.0,
        'Statuses on /diagnostics per second; 0: none',
        'Hz',
        0.0,
        10.0,
        live=True,
    ),
    ParameterSpec(
        'diagnostics.max_jitter_p99_ms',
        2.0,
        'Tick lateness above which actuation is warned of (99th percentile of a second)',
        'ms',
        0.001,
        10_000.0,
        live=True,
    ),
    ParameterSpec(
        'diagnostics.max_held_ratio',
        0.1,
        'Share of held ticks in a second above which actuation is warned of',
        '',
        0.0,
        1.0,
        live=True,
    ),
    ParameterSpec(
        'diagnostics.min_camera_rate_hz',
        1.0,
        'Image rate below which a camera is warned of',
        'Hz',
        0.0,
        1000.0,
        live=True,
    ),
)
