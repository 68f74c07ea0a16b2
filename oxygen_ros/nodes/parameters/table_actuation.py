# SPDX-License-Identifier: Apache-2.0
"""Parameters of actuation, limits and the tick."""

from __future__ import annotations

from .spec import ParameterSpec

_INF = float('inf')

ACTUATION: tuple[ParameterSpec, ...] = (
    ParameterSpec('actuation.rate_hz', 50.0, 'Control ticks per second', 'Hz', 1.0, 1000.0),
    ParameterSpec(
        'actuation.space',
        ['joint_position'],
        "What a chunk's numbers mean, for all joints or for each: joint_position, "
        'joint_delta (from one step to the next) or joint_velocity; effort and end '
        'effectors are refused, since joints are what is limited and held',
    ),
    ParameterSpec(
        'actuation.dry_run',
        False,
        'Run all of it, show ~/target, and send nothing to the actuators',
    ),
    ParameterSpec(
        'actuation.controller_manager',
        '',
        'Name of the controller_manager that is asked whether the controllers of the '
        'command topics are active; empty: it is not',
    ),
    ParameterSpec(
        'actuation.groups',
        [''],
        'Command topics by name, such as two arms and two grippers; none: all joints on '
        '~/joint_trajectory',
    ),
    ParameterSpec(
        'actuation.joint_groups', [''], 'The group of each joint, in the order of joints'
    ),
    ParameterSpec(
        'actuation.group_topics',
        [''],
        'The topic of each group; an empty one stands for ~/<group>/joint_trajectory or '
        '~/<group>/commands',
    ),
    ParameterSpec(
        'actuation.group_interfaces',
        [''],
        'What each group sends: trajectory (JointTrajectory, the default) or commands '
        '(Float64MultiArray)',
    ),
    ParameterSpec(
        'actuation.publish',
        'tick',
        "Who gives out targets: the tick's own thread, or, as an unmanaged baseline, "
        'the engine as it finishes',
        choices=('tick', 'engine'),
    ),
    ParameterSpec(
        'actuation.decide_ahead_ms',
        0.35,
        'How long before its deadline a target is decided, at most half a period, so '
        'that at the deadline it is only given out; 0: at the deadline',
        'ms',
        0.0,
        100.0,
    ),
    ParameterSpec(
        'actuation.blend_s', 0.1, 'Longest fade from one chunk to the next', 's', 0.0, 5.0
    ),
    ParameterSpec(
        'actuation.activation_ramp_s',
        1.0,
        'Ramp from the measured joints to the chunk after activation and enable',
        's',
        0.0,
        60.0,
        live=True,
    ),
    ParameterSpec(
        'actuation.recovery_ramp_s',
        0.1,
        'Ramp from a held target back to the chunk',
        's',
        0.0,
        60.0,
        live=True,
    ),
    ParameterSpec(
        'actuation.require_state', True, 'Hold while the joints are not measured', live=True
    ),
    ParameterSpec(
        'tick.process',
        'own',
        "Where the tick runs: in this node's own process, or separate, in that of "
        'tick_node, where it outlives this one',
        choices=('own', 'separate'),
        fixed=True,
    ),
    ParameterSpec(
        'robot_description',
        '',
        'URDF with the limits of the joints; empty: the latched topic robot_description has it',
    ),
    ParameterSpec(
        'limits.source',
        'parameters',
        'Where limits come from: the parameters below, or robot_description as well, '
        'of which the tighter one counts; the node holds until it has come',
        choices=('parameters', 'robot_description'),
    ),
    ParameterSpec(
        'limits.min_position',
        [-_INF],
        'Lowest target: one value, or one for each joint',
        'rad or m',
        live=True,
    ),
    ParameterSpec(
        'limits.max_position', [_INF], 'Highest target, likewise', 'rad or m', live=True
    ),
    ParameterSpec(
        'limits.max_velocity',
        [2.0],
        'Largest speed of a target, likewise',
        'rad/s or m/s',
        live=True,
    ),
    ParameterSpec(
        'limits.max_step',
        [_INF],
        'Largest change between two targets, likewise',
        'rad or m',
        live=True,
    ),
    ParameterSpec(
        'limits.max_tracking_error',
        [_INF],
        'Largest distance of the joints from the last target before the node holds, likewise',
        'rad or m',
        live=True,
    ),
    ParameterSpec(
        'realtime.switch_interval_s',
        0.0005,
        'How long another thread may keep the interpreter',
        's',
        0.00001,
        1.0,
    ),
    ParameterSpec(
        'realtime.fifo_priority',
        0,
        'SCHED_FIFO priority of the tick; 0: leave the scheduler alone',
        low=0,
        high=99,
    ),
    ParameterSpec(
        'realtime.process_priority',
        0,
        'SCHED_RR priority of all else in the process, below that of the tick, so that '
        'no other process takes the core from what the tick may wait for; 0: leave it '
        'alone',
        low=0,
        high=98,
    ),
    ParameterSpec('realtime.cpus', [-1], 'Cores of the tick; -1 stands for all'),
    ParameterSpec('realtime.lock_memory', False, 'Keep the process in memory (mlockall)'),
    ParameterSpec(
        'realtime.keep_heap',
        True,
        'Keep freed memory for the next image instead of giving it back to the system',
    ),
    ParameterSpec(
        'realtime.freeze_gc',
        True,
        'Keep what exists at activation out of garbage collection until deactivation',
    ),
    ParameterSpec('realtime.disable_gc', False, 'No cyclic garbage collection while active'),
)
