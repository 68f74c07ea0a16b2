# SPDX-License-Identifier: Apache-2.0
"""What is wrong with cameras and joint states, in words; knows no node."""

from __future__ import annotations

from collections.abc import Callable

from ...ingest import CameraStream, JointStream
from ...runtime.sensor_hub import SensorHub
from .diagnostics import ERROR, Finding, WARN

_RECENT_NS = 10_000_000_000


class Recent:
    """Whether a count has grown lately: what was wrong and is over is no finding for ever.

    :param count: returns it; it may start again from zero.
    """

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._seen = 0
        self._grew_ns: int | None = None

    def read(self, now_ns: int) -> bool:
        """Return whether it has grown within the last 10 seconds of reading."""
        count = self._count()
        if count > self._seen:
            self._grew_ns = now_ns
        self._seen = count
        return self._grew_ns is not None and now_ns - self._grew_ns <= _RECENT_NS


class CameraFindings:
    """Looks at one camera's images; one thread at a time."""

    def __init__(self, stream: CameraStream, sensors: SensorHub) -> None:
        counts = stream.counts
        self._stream = stream
        self._sensors = sensors
        self._max_age_s = sensors.config.max_age_s(stream.name)
        self._lost = ERROR if sensors.config.is_required(stream.name) else WARN
        self._refused = Recent(lambda: counts.refused)
        self._replaced = Recent(lambda: counts.replaced_stamps)
        self._backward = Recent(lambda: counts.backward)

    def age_s(self, now_ns: int) -> float | None:
        """Return the age of the newest image that can be used."""
        frame = self._sensors.frame(self._stream.name)
        return None if frame is None else (now_ns - frame.steady_ns) * 1e-9

    def read(self, now_ns: int, is_active: bool) -> list[Finding]:
        """Return what is wrong.

        :param now_ns: on the steady clock.
        :param is_active: images are decoded, so that an old one is a fault.
        """
        stream, counts = self._stream, self._stream.counts
        findings: list[Finding] = []
        if not counts.received:
            findings.append((self._lost, 'no image so far'))
        frozen_s, age_s = stream.frozen_s, self.age_s(now_ns)
        if is_active and frozen_s is not None:
            findings.append(
                (
                    self._lost,
                    f'frozen: the same pixels for {frozen_s:.1f} s, however '
                    'fresh the stamps (sensors.frozen_after_s)',
                )
            )
        elif is_active and age_s is not None and age_s > self._max_age_s:
            findings.append((self._lost, f'newest image is {age_s:.1f} s old'))
        if self._refused.read(now_ns):
            findings.append((WARN, f'{counts.refused} refused, last: {counts.newest_problem}'))
        if self._replaced.read(now_ns):
            findings.append((WARN, f'{counts.replaced_stamps} stamps were zero or in the future'))
        if self._backward.read(now_ns):
            findings.append((WARN, f'{counts.backward} stamps were older than the one before'))
        return findings + self._size_findings()

    def _size_findings(self) -> list[Finding]:
        size, first = self._stream.size, self._stream.first_size
        if size is None or first is None or size == first:
            return []
        turned = ', turned' if (size[0] > size[1]) != (first[0] > first[1]) else ''
        return [(WARN, f'size changed from {first[0]}x{first[1]} to {size[0]}x{size[1]}{turned}')]


class JointFindings:
    """Looks at the joint states; one thread at a time."""

    def __init__(self, stream: JointStream, sensors: SensorHub) -> None:
        counts = stream.counts
        self._counts = counts
        self._sensors = sensors
        self._refused = Recent(lambda: counts.refused)
        self._replaced = Recent(lambda: counts.replaced_stamps)

    def age_s(self, now_ns: int) -> float | None:
        """Return the age of the newest measured positions."""
        state = self._sensors.newest_state()
        return None if state is None else (now_ns - state.steady_ns) * 1e-9

    def read(self, now_ns: int) -> list[Finding]:
        """Return what is wrong; the time is on the steady clock."""
        counts = self._counts
        findings: list[Finding] = []
        age_s = self.age_s(now_ns)
        if not counts.received:
            findings.append((ERROR, 'no joint state so far'))
        elif age_s is None:
            findings.append((ERROR, 'no joint state that can be used'))
        elif age_s > self._sensors.config.state_max_age_s:
            findings.append((ERROR, f'newest joint state is {age_s:.1f} s old'))
        if self._refused.read(now_ns):
            findings.append((WARN, f'{counts.refused} refused, last: {counts.newest_problem}'))
        if self._replaced.read(now_ns):
            findings.append((WARN, f'{counts.replaced_stamps} stamps were zero or in the future'))
        return findings
