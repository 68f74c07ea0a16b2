# SPDX-License-Identifier: Apache-2.0
"""Names of the reasons for which a tick holds: stable, for messages, diagnostics and tests."""

from __future__ import annotations

from typing import Final

# No fresh target.
NO_CHUNK: Final = 'no_chunk'
CHUNK_EXHAUSTED: Final = 'chunk_exhausted'
STALE_OBSERVATION: Final = 'stale_observation'

# No trustworthy measurement of the joints.
NO_STATE: Final = 'no_state'
STALE_STATE: Final = 'stale_state'
BAD_STATE: Final = 'bad_state'

# The joints' limits are not known yet.
NO_LIMITS: Final = 'no_limits'

# The target was refused.
REFUSED_NONFINITE: Final = 'refused_nonfinite'
REFUSED_LENGTH: Final = 'refused_length'
REFUSED_TIMING: Final = 'refused_timing'
TRACKING_ERROR: Final = 'tracking_error'

# Somebody asked for it.
STOPPED: Final = 'stopped'
HOLD_REQUESTED: Final = 'hold_requested'
TAKEOVER: Final = 'takeover'
DEACTIVATED: Final = 'deactivated'
SHUTDOWN: Final = 'shutdown'
ERROR: Final = 'error'

DESCRIPTIONS: Final[dict[str, str]] = {
    NO_CHUNK: 'no action chunk since activation or the last reset',
    CHUNK_EXHAUSTED: 'the newest chunk has been played to its end',
    STALE_OBSERVATION: 'the newest chunk comes from an observation that is too old',
    NO_STATE: 'the joints have never been measured',
    STALE_STATE: 'the measured joints are too old',
    BAD_STATE: 'the measured joints are not finite or not as many as the model has',
    NO_LIMITS: 'the limits of robot_description have not come',
    REFUSED_NONFINITE: 'the chunk or the target holds a NaN or an infinity',
    REFUSED_LENGTH: 'the chunk or the target does not have one value per joint',
    REFUSED_TIMING: 'the chunk has no step length, or lies too far in the future',
    TRACKING_ERROR: 'the joints do not follow: target and measurement are too far apart',
    STOPPED: 'stop was called; disarm, then enable, to go on',
    HOLD_REQUESTED: 'hold was called; enable to go on',
    TAKEOVER: 'an operator drives the robot; enable to take it back',
    DEACTIVATED: 'the node is being deactivated',
    SHUTDOWN: 'the process is ending',
    ERROR: 'the node met an error',
}
