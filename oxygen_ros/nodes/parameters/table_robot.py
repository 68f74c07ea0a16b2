# SPDX-License-Identifier: Apache-2.0
"""Parameters of cameras, joints and what is asked of the sensors."""

from __future__ import annotations

from .spec import ParameterSpec

ROBOT: tuple[ParameterSpec, ...] = (
    ParameterSpec('autostart', False, 'Configure and activate at the start of the process'),
    ParameterSpec(
        'cameras',
        ['front', 'left_wrist', 'right_wrist'],
        'Camera names in the order of the model; images come on <name>/image_raw',
    ),
    ParameterSpec(
        'optional_cameras',
        [''],
        'Cameras without which an observation may be made; an empty name stands for none',
    ),
    ParameterSpec(
        'image_transport',
        'auto',
        'Topics to subscribe to: <name>/image_raw, <name>/image_raw/compressed, or both',
        choices=('auto', 'raw', 'compressed'),
    ),
    ParameterSpec(
        'joints',
        [f'joint_{index}' for index in range(7)],
        'Joint names in the order of the model, as they stand in joint_states',
    ),
    ParameterSpec(
        'max_observation_age_ms',
        400.0,
        'A target from an older observation is not sent: the node holds',
        'ms',
        1.0,
        60_000.0,
        live=True,
    ),
    ParameterSpec(
        'batching',
        'cross_frame',
        'Which text requests share a decode step',
        choices=('cross_frame', 'none'),
    ),
    ParameterSpec(
        'record_file',
        '',
        'At deactivation, write the timeline of the engine and the fate of the images '
        'there (JSON); empty: do not',
    ),
    ParameterSpec(
        'engine_node',
        'oxygen',
        'For tick_node: name of the node whose chunks it plays, and in whose name it '
        'publishes and serves',
        fixed=True,
    ),
    ParameterSpec(
        'sensors.camera_max_age_s',
        [1.0],
        'An older image is not used: one value, or one for each camera',
        's',
        0.001,
        3600.0,
    ),
    ParameterSpec(
        'sensors.frozen_after_s',
        2.0,
        'A camera whose pixels stay the same for longer, however fresh its stamps, '
        'counts as lost; 0: never (simulated cameras, which have no noise)',
        's',
        0.0,
        3600.0,
    ),
    ParameterSpec(
        'sensors.state_max_age_s',
        1.0,
        'Older joint positions are not acted on',
        's',
        0.001,
        3600.0,
    ),
    ParameterSpec(
        'sensors.assembly_wait_s',
        0.02,
        "Longest wait for the other cameras' images of one time step",
        's',
        0.0,
        10.0,
    ),
    ParameterSpec(
        'sensors.max_skew_s',
        1.0,
        'Largest spread of stamps within an observation',
        's',
        0.0001,
        3600.0,
    ),
    ParameterSpec(
        'sensors.future_tolerance_s',
        0.05,
        "A stamp further ahead of the node's clock is replaced by the time of receipt",
        's',
        0.0,
        60.0,
    ),
)
