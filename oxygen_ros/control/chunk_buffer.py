# SPDX-License-Identifier: Apache-2.0
"""The chunk buffer: action chunks in, "the target at time t" out, indexed by time alone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from ..types import ActionChunk
from . import hold_reasons
from .clock import NS_PER_MS, NS_PER_S
from .seam import DeltaSeam, mix, Seam

MAX_LIVE_CHUNKS = 3  # the newest, the one it replaces, and one still fading before that
MAX_PENDING_CHUNKS = 8  # between two ticks; beyond it the oldest makes room


class Sample(NamedTuple):
    """The target at one time; the newest chunk comes first."""

    values: list[float]  # [num_joints], not to be written to; empty when `fault` is set
    chunk_ids: tuple[int, ...]
    observation_ids: tuple[int, ...]
    weights: tuple[float, ...]  # of the chunks, each above 0; they sum to 1
    observation_steady_ns: int  # of the first chunk's observation
    fault: str = ''  # a hold reason: the newest chunk must not be played


@dataclass(slots=True)
class ChunkCounts:
    """What became of the chunks, since the buffer was made."""

    played: int = 0  # became the newest chunk at a tick
    late: int = 0  # dropped: wholly in the past
    old_epoch: int = 0  # dropped: computed before a reset
    out_of_order: int = 0  # dropped: its pass began before that of the newest chunk
    superseded: int = 0  # a newer chunk came before the next tick
    faulty: int = 0  # not finite, wrong length or timing; they hold the robot


class ChunkBuffer:
    """Plays the newest chunk and fades from the chunk before it.

    Any thread may `add`: it appends to a deque, which is atomic, so there is no lock for a tick to
    wait on. Everything else that changes (seams, counts) belongs to the one thread that calls
    `sample`. `reset` replaces one reference and comes from one thread at a time.

    A seam begins at the first tick that sees the new chunk and lasts `blend_ns`, or as long as the
    chunk before it has been played when that is shorter: with a chunk in every tick the newest is
    played at once, and no more than `MAX_LIVE_CHUNKS` are ever mixed.
    """

    def __init__(
        self,
        num_joints: int,
        period_ns: int = 20 * NS_PER_MS,
        blend_ns: int = 100 * NS_PER_MS,
        max_lead_ns: int = NS_PER_S,
        *,
        deltas: tuple[bool, ...] = (),
    ) -> None:
        """Make an empty buffer at epoch 0.

        :param num_joints: values in each step.
        :param period_ns: time between two calls of `sample`, in nanoseconds, above 0.
        :param blend_ns: longest fade from one chunk to the next, in nanoseconds; 0: none.
        :param max_lead_ns: a chunk whose step 0 lies further ahead is refused, in nanoseconds.
        :param deltas: joints of which chunks say how far to move, [num_joints]; for them a sample
            is the change over one period; empty: none.
        :raises ValueError: names the value, what was expected and what came.
        """
        for name, value, least in (
            ('num_joints', num_joints, 1),
            ('period_ns', period_ns, 1),
            ('blend_ns', blend_ns, 0),
            ('max_lead_ns', max_lead_ns, 0),
        ):
            if value < least:
                raise ValueError(f'{name}: expected at least {least}, got {value}')
        self.num_joints = num_joints
        self.counts = ChunkCounts()
        self._period_ns = period_ns
        self._blend_ns = blend_ns
        self._max_lead_ns = max_lead_ns
        self._deltas = deltas
        self._pending: deque[Seam] = deque(maxlen=MAX_PENDING_CHUNKS)
        self._seams: list[Seam] = []  # oldest first
        self._seam_ns = 0  # tick at which the newest chunk was first seen
        self._reset: tuple[int, object] = (0, object())  # epoch, and an identity for each reset
        self._seen_reset = self._reset

    @property
    def epoch(self) -> int:
        """Chunks of an older epoch than this are dropped."""
        return self._reset[0]

    @property
    def has_chunk(self) -> bool:
        """Whether a chunk has been seen by a tick since the last reset."""
        return bool(self._seams) and self._seen_reset is self._reset

    def add(self, chunk: ActionChunk) -> None:
        """Hand over a chunk; the next tick sees it. The values are copied.

        :param chunk: any chunk: late, old, broken ones are dropped or refused by the next tick.
        """
        self._pending.append(
            DeltaSeam.of_deltas(chunk, self._deltas, self._period_ns)
            if self._deltas
            else Seam.of(chunk, self.num_joints)
        )

    def reset(self, epoch: int | None = None) -> int:
        """Forget all chunks, those still being computed included.

        :param epoch: the new epoch; None: the present one plus 1.
        :return: the new epoch, which chunks computed from now on must carry.
        """
        new_epoch = self.epoch + 1 if epoch is None else epoch
        self._reset = (new_epoch, object())
        return new_epoch

    def sample(self, t_ns: int) -> Sample | None:
        """Return the target at a time, linear between the steps of each chunk.

        Before step 0 a chunk counts as resting at step 0; after its last step it is exhausted.

        :param t_ns: the tick's deadline on the steady clock, in nanoseconds, never decreasing.
        :return: the target; None when there is no chunk, or the newest is exhausted.
        """
        self._take(t_ns)
        if not self._seams:
            return None
        newest = self._seams[-1]
        if newest.fault:
            return self._faulty(newest, newest.fault)
        if t_ns > newest.end_ns:
            return None
        if newest.start_ns - t_ns > self._max_lead_ns:
            return self._faulty(newest, hold_reasons.REFUSED_TIMING)
        if len(self._seams) > 1:
            return self._blend(t_ns)
        return Sample(
            newest.values_at(t_ns),
            (newest.chunk_id,),
            (newest.observation_id,),
            (1.0,),
            newest.observation_steady_ns,
        )

    def _blend(self, t_ns: int) -> Sample:
        chunks: list[Seam] = []
        weights: list[float] = []
        rest = 1.0
        for index in range(len(self._seams) - 1, -1, -1):
            seam = self._seams[index]
            share = rest if index == 0 else rest * seam.weight_at(t_ns)
            if share > 0.0:
                chunks.append(seam)
                weights.append(share)
            rest -= share
            if rest <= 0.0:
                del self._seams[:index]
                break
        values = chunks[-1].values_at(t_ns)
        for seam in reversed(chunks[:-1]):
            values = mix(values, seam.values_at(t_ns), seam.weight_at(t_ns))
        return Sample(
            values,
            tuple([seam.chunk_id for seam in chunks]),
            tuple([seam.observation_id for seam in chunks]),
            tuple(weights),
            chunks[0].observation_steady_ns,
        )

    @staticmethod
    def _faulty(seam: Seam, fault: str) -> Sample:
        return Sample(
            [], (seam.chunk_id,), (seam.observation_id,), (1.0,), seam.observation_steady_ns, fault
        )

    def _take(self, t_ns: int) -> None:
        """Sort out what has come since the last tick; at most one chunk becomes the newest."""
        reset = self._reset
        if reset is not self._seen_reset:
            self._seen_reset = reset
            self._seams.clear()
        candidate: Seam | None = None
        while self._pending:
            seam = self._pending.popleft()
            newest = candidate or (self._seams[-1] if self._seams else None)
            epoch = reset[0] if newest is None else max(reset[0], newest.epoch)
            if seam.epoch < epoch:
                self.counts.old_epoch += 1
            elif (
                newest is not None
                and seam.epoch == newest.epoch
                and seam.pass_started_ns < newest.pass_started_ns
            ):
                self.counts.out_of_order += 1
            elif not seam.fault and seam.end_ns < t_ns:
                self.counts.late += 1
            else:
                self.counts.superseded += candidate is not None
                candidate = seam
        if candidate is not None:
            self._begin(candidate, t_ns)

    def _begin(self, seam: Seam, t_ns: int) -> None:
        self.counts.played += 1
        self.counts.faulty += bool(seam.fault)
        # A chunk fades out past its end at its last step, if that was played a moment ago; from
        # a chunk of another epoch, or a broken one, nothing is taken over.
        self._seams = [
            old
            for old in self._seams[1 - MAX_LIVE_CHUNKS :]
            if not old.fault and old.epoch == seam.epoch and old.end_ns + self._blend_ns >= t_ns
        ]
        window_ns = min(self._blend_ns, t_ns - self._seam_ns) if self._seams else 0
        # A chunk that begins in the future is faded in so that it is played fully from step 0.
        seam.fade_in(max(t_ns - self._period_ns, seam.start_ns - window_ns), window_ns)
        self._seams.append(seam)
        self._seam_ns = t_ns
