# SPDX-License-Identifier: Apache-2.0
"""Action chunks as they come from an engine in another process: checked, and in one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
import math
import time

import numpy as np

import oxygen_ros.msg as msg

from ...control import ChunkBuffer
from ...errors import OxygenError
from ...types import ActionChunk, Provenance
from ..messages import ns_of

_MAX_SPAN_S = 60.0  # of a step, a pass, a delay; more is a mistake of units
_FUTURE_TOLERANCE_NS = 10_000_000


class ChunkMessageError(OxygenError):
    """A chunk contradicts itself, or is not for these joints."""


@dataclass(slots=True)
class ChunkInputCounts:
    """What became of the messages since activation."""

    received: int = 0
    refused: int = 0
    outlived: int = 0  # from a run of the engine that has ended meanwhile
    restarts: int = 0  # the engine began anew: another process, activation or epoch
    newest_problem: str = ''


def chunk_of(message: msg.ActionChunk, joints: Sequence[str]) -> ActionChunk:
    """Return the chunk in a message.

    :param joints: that the action has to have, in this order.
    :raises ChunkMessageError: names the field, what was expected and what came.
    """
    horizon, dim = message.action_horizon, message.action_dim
    if dim != len(joints):
        raise ChunkMessageError(f'action_dim: expected {len(joints)}, got {dim}')
    if list(message.joint_names) != list(joints):
        raise ChunkMessageError(
            f'joint_names: expected {list(joints)}, got {list(message.joint_names)}'
        )
    if not horizon or len(message.values) != horizon * dim:
        raise ChunkMessageError(
            f'values: expected {horizon} times {dim}, with at least one step, '
            f'got {len(message.values)}'
        )
    for name, least in (
        ('action_dt_s', 1e-6),
        ('pass_s', 0.0),
        ('inference_delay_s', -_MAX_SPAN_S),
    ):
        value = getattr(message, name)
        if not (math.isfinite(value) and least <= value <= _MAX_SPAN_S):
            raise ChunkMessageError(
                f'{name}: expected {least:g} to {_MAX_SPAN_S:g} s, got {value:g}'
            )
    start_ns, start_stamp_ns = message.start_steady_ns, ns_of(message.header.stamp)
    provenance = _provenance_of(message.provenance)
    ended_ns = start_ns + round(message.inference_delay_s * 1e9)
    return ActionChunk(
        chunk_id=message.chunk_id,
        epoch=message.epoch,
        values=np.array(message.values, dtype=np.float32).reshape(horizon, dim),
        start_steady_ns=start_ns,
        start_stamp_ns=start_stamp_ns,
        step_ns=round(message.action_dt_s * 1e9),
        observation_steady_ns=start_ns + provenance.stamp_ns - start_stamp_ns,
        pass_started_ns=ended_ns - round(message.pass_s * 1e9),
        pass_ended_ns=ended_ns,
        provenance=provenance,
    )


def _provenance_of(message: msg.Provenance) -> Provenance:
    return Provenance(
        observation_id=message.observation_id,
        stamp_ns=ns_of(message.stamp),
        cameras=tuple(message.cameras),
        camera_stamps_ns=tuple(ns_of(stamp) for stamp in message.camera_stamps),
        state_stamp_ns=ns_of(message.state_stamp),
        model_checksum=message.model_checksum,
    )


class ChunkInput:
    """Takes action_chunk and feeds the buffer; belongs to the executor's thread.

    A restarted engine counts chunks and epochs from the beginning. So the buffer's epochs are
    counted here, one for each run of the engine: an activation, or the time between two resets.
    """

    def __init__(self, joints: Sequence[str], buffer: ChunkBuffer) -> None:
        self.counts = ChunkInputCounts()
        self._joints = list(joints)
        self._buffer = buffer
        self._newest: ActionChunk | None = None

    def restart(self) -> None:
        """Count from zero and take any run of the engine, at activation."""
        self.counts = ChunkInputCounts()
        self._newest = None

    def offer(self, message: msg.ActionChunk) -> None:
        """Hand a chunk on, or count why it cannot be used."""
        counts = self.counts
        counts.received += 1
        try:
            chunk = chunk_of(message, self._joints)
            if chunk.pass_ended_ns > time.monotonic_ns() + _FUTURE_TOLERANCE_NS:
                raise ChunkMessageError(
                    'start_steady_ns: expected the steady clock of this '
                    'machine, got a pass that ends in the future'
                )
        except ChunkMessageError as error:
            counts.refused += 1
            counts.newest_problem = str(error)
            return
        newest = self._newest
        if newest is not None and chunk.pass_started_ns < newest.pass_started_ns:
            counts.outlived += 1
            return
        self._newest = chunk
        if newest is not None and not _follows(chunk, newest):
            counts.restarts += 1
            # This chunk only announces the run. The tick holds until the next one and goes over
            # to it by a ramp, as it does after a reset in the engine's own process.
            self._buffer.reset()
            return
        self._buffer.add(replace(chunk, epoch=self._buffer.epoch))


def _follows(chunk: ActionChunk, newest: ActionChunk) -> bool:
    """Return whether a chunk is of the same run of the engine as the one before it."""
    return chunk.epoch == newest.epoch and chunk.chunk_id > newest.chunk_id
