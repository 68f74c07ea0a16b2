# SPDX-License-Identifier: Apache-2.0
"""Values that cross layers: plain frozen data, numpy only.

Two clocks appear, never mixed: `*_stamp_ns` is ROS time as a sensor or a message states it,
`*_steady_ns` is this machine's steady clock (`time.monotonic_ns`), on which all control runs. The
offset between the two is fixed when a message is received.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

CONTROL_RATE_HZ = 50.0  # of ticks and of the grid of action passes, where nothing else is said


class TaskType(IntEnum):
    """What a request does; the smaller the value, the higher its priority."""

    PHYSICAL_ACTION = 0
    DIALOGUE = 1
    SCENE_GRAPH = 2


class FinishReason(str, Enum):
    """Why a text request ended; exactly one is given to each request."""

    STOP = 'stop'  # end-of-text token, stop string, or a complete grammar
    LENGTH = 'length'  # its token limit
    CANCELLED = 'cancelled'  # the client asked for it
    SUPERSEDED = 'superseded'  # a newer request took its place
    REFUSED = 'refused'  # it could never have been served; the message says why
    ERROR = 'error'  # the engine failed; the message says why


@dataclass(frozen=True, slots=True)
class CameraFrame:
    """One decoded image.

    `image` is [height, width, 3] uint8 RGB and must not be written after construction.
    """

    camera: str
    stamp_ns: int  # header stamp (ROS time)
    steady_ns: int  # the stamp on the steady clock
    image: NDArray[np.uint8]  # [height, width, 3] RGB

    @property
    def key(self) -> tuple[str, int]:
        """Identity of the image: the same key means the same pixels."""
        return (self.camera, self.stamp_ns)


@dataclass(frozen=True, slots=True)
class RobotState:
    """Measured joint positions, ordered as the model's joints."""

    stamp_ns: int  # header stamp (ROS time)
    steady_ns: int  # the stamp on the steady clock
    positions: FloatArray  # [num_joints], SI units


@dataclass(frozen=True, slots=True)
class Observation:
    """The cameras (and the state) of one time step, in the model's camera order."""

    observation_id: int  # from 1, counts up
    stamp_ns: int  # newest camera stamp (ROS time)
    steady_ns: int  # the same on the steady clock
    frames: tuple[CameraFrame, ...]
    state: RobotState | None = None
    instruction: str = ''


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a result comes from."""

    observation_id: int
    stamp_ns: int
    cameras: tuple[str, ...]
    camera_stamps_ns: tuple[int, ...]
    state_stamp_ns: int  # 0: none used
    model_checksum: str
    prefix_hash: str = ''  # `engine.input_hash`; empty: not taken


@dataclass(frozen=True, slots=True)
class ActionChunk:
    """Future targets of all joints from one action pass.

    Step i is meant for steady time `start_steady_ns + i * step_ns`.
    """

    chunk_id: int  # from 1, counts up
    epoch: int  # a chunk of an older epoch than the buffer's is dropped
    values: FloatArray  # [action_horizon, action_dim], SI units
    start_steady_ns: int
    start_stamp_ns: int  # the same in ROS time
    step_ns: int
    observation_steady_ns: int
    pass_started_ns: int  # steady
    pass_ended_ns: int  # steady
    provenance: Provenance

    @property
    def inference_delay_ns(self) -> int:
        """From step 0's time to the end of the pass."""
        return self.pass_ended_ns - self.start_steady_ns


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text of a running request."""

    request_id: int
    task: TaskType
    text: str  # the text since the last delta
    num_tokens: int  # all tokens so far
    steady_ns: int


@dataclass(frozen=True, slots=True)
class TextResult:
    """The one terminal state of a text request."""

    request_id: int
    task: TaskType
    text: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason
    message: str
    submitted_ns: int  # steady
    first_token_ns: int | None  # steady
    ended_ns: int  # steady
    provenance: Provenance | None  # None: ended before it had a prefix
    # [width], of the observation, by a scene graph's dense read
    place: FloatArray | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are chosen and when decoding ends.

    :raises ValueError: names the field, what was expected and what came.
    """

    max_tokens: int = 64
    temperature: float = 0.0  # 0: greedy
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f'max_tokens: expected at least 1, got {self.max_tokens}')
        if not 0.0 <= self.temperature <= 10.0:
            raise ValueError(f'temperature: expected 0 to 10, got {self.temperature}')
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f'top_p: expected above 0 and at most 1, got {self.top_p}')
        if any(not stop for stop in self.stop):
            raise ValueError('stop: expected non-empty strings, got an empty one')


@dataclass(frozen=True, slots=True)
class SceneObject:
    """One object of the scene graph."""

    object_id: int
    label: str
    attributes: tuple[str, ...] = ()
    confidence: float = float('nan')
    camera: str = ''
    box_px: tuple[float, float, float, float] | None = None  # x, y, width, height
    frame_id: str = ''
    position_m: tuple[float, float, float] | None = None
    first_seen_ns: int = 0  # ROS time
    last_seen_ns: int = 0  # ROS time
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class SceneRelation:
    """One relation between two objects."""

    subject_id: int
    predicate: str
    object_id: int
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class SceneUpdate:
    """The scene graph after an update."""

    update_id: int
    stamp_ns: int
    objects: tuple[SceneObject, ...] = ()
    relations: tuple[SceneRelation, ...] = ()
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What one control tick asks of the joints."""

    tick: int
    deadline_ns: int  # steady
    values: NDArray[np.float64]  # [action_dim]
    held: bool
    hold_reason: str = ''
    chunk_ids: tuple[int, ...] = ()
    observation_ids: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    observation_age_ns: int | None = None
