# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a robot, in words, and the figures behind: a status for each part of it.

Knows no middleware; who publishes and who listens is added by the node.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ingest import CameraStream, JointStream
from ..memory.writing import SinkStatus, WriterStatus
from ..types import TaskType
from .cameras import CameraInput
from .robot import Robot
from .sensor_hub import SensorHub
from .settings import DiagnosticLimits
from .status import Figures, Finding, Level, RateMeter, Recent, Status


class CameraFindings:
    """Looks at one camera's images; one thread at a time."""

    def __init__(self, stream: CameraStream, sensors: SensorHub) -> None:
        counts = stream.counts
        self._stream = stream
        self._sensors = sensors
        self._max_age_s = sensors.config.max_age_s(stream.name)
        self._lost = Level.ERROR if sensors.config.is_required(stream.name) else Level.WARN
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
            findings.append(Finding(self._lost, 'no image so far'))
        frozen_s, age_s = stream.frozen_s, self.age_s(now_ns)
        if is_active and frozen_s is not None:
            findings.append(
                Finding(
                    self._lost,
                    f'frozen: the same pixels for {frozen_s:.1f} s, however fresh the stamps '
                    '(sensors.frozen_after_s)',
                )
            )
        elif is_active and age_s is not None and age_s > self._max_age_s:
            findings.append(Finding(self._lost, f'newest image is {age_s:.1f} s old'))
        warnings = (
            (self._refused, f'{counts.refused} refused, last: {counts.newest_problem}'),
            (self._replaced, f'{counts.replaced_stamps} stamps were zero or in the future'),
            (self._backward, f'{counts.backward} stamps were older than the one before'),
        )
        findings += [Finding(Level.WARN, text) for recent, text in warnings if recent.read(now_ns)]
        return findings + self._size_findings()

    def _size_findings(self) -> list[Finding]:
        size, first = self._stream.size, self._stream.first_size
        if size is None or first is None or size == first:
            return []
        turned = ', turned' if (size[0] > size[1]) != (first[0] > first[1]) else ''
        change = f'size changed from {first[0]}x{first[1]} to {size[0]}x{size[1]}{turned}'
        return [Finding(Level.WARN, change)]


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
            findings.append(Finding(Level.ERROR, 'no joint state so far'))
        elif age_s is None:
            findings.append(Finding(Level.ERROR, 'no joint state that can be used'))
        elif age_s > self._sensors.config.state_max_age_s:
            findings.append(Finding(Level.ERROR, f'newest joint state is {age_s:.1f} s old'))
        warnings = (
            (self._refused, f'{counts.refused} refused, last: {counts.newest_problem}'),
            (self._replaced, f'{counts.replaced_stamps} stamps were zero or in the future'),
        )
        return findings + [
            Finding(Level.WARN, text) for recent, text in warnings if recent.read(now_ns)
        ]


class CameraStatus:
    """The status of one camera.

    :param silence: returns in words that nobody publishes its images; empty: somebody does.
    """

    def __init__(
        self, source: CameraInput, sensors: SensorHub, silence: Callable[[], str]
    ) -> None:
        self._source = source
        self._images = CameraFindings(source.stream, sensors)
        self._silence = silence
        self._meter: RateMeter | None = None

    def read(self, now_ns: int, is_active: bool, min_rate_hz: float) -> Status:
        """Return the status at a steady time."""
        source, counts = self._source, self._source.counts
        self._meter = self._meter or RateMeter(now_ns)
        rate_hz = self._meter.read(counts.received, now_ns)
        findings = self._images.read(now_ns, is_active)
        silence = '' if rate_hz else self._silence()
        if silence:
            findings.insert(0, Finding(Level.ERROR, silence))
        elif counts.received and rate_hz < min_rate_hz:
            level = Level.WARN if rate_hz else Level.ERROR
            findings.append(Finding(level, f'{rate_hz:.1f} images per second'))
        age_s, size = self._images.age_s(now_ns), source.stream.size or (0, 0)
        return Status(
            findings,
            [
                ('rate (Hz)', rate_hz),
                ('age (s)', 'none' if age_s is None else age_s),
                ('size (px)', f'{size[0]}x{size[1]}'),
                ('decode time (ms)', source.decode_ns * 1e-6),
                ('received', counts.received),
                ('decoded', counts.decoded),
                ('refused', counts.refused),
                ('superseded', source.slot.num_superseded),
                ('missed', source.missed),
                ('frozen', counts.frozen),
                ('size changes', counts.resized),
                ('repeated stamps', counts.repeated),
                ('backward stamps', counts.backward),
                ('replaced stamps', counts.replaced_stamps),
            ],
        )


class JointStatus:
    """The status of the joint states; `silence` as of `CameraStatus`."""

    def __init__(
        self, stream: JointStream, sensors: SensorHub, silence: Callable[[], str]
    ) -> None:
        self._counts = stream.counts
        self._states = JointFindings(stream, sensors)
        self._silence = silence
        self._meter: RateMeter | None = None

    def read(self, now_ns: int) -> Status:
        """Return the status at a steady time."""
        counts = self._counts
        self._meter = self._meter or RateMeter(now_ns)
        rate_hz = self._meter.read(counts.received, now_ns)
        findings = self._states.read(now_ns)
        silence = '' if rate_hz else self._silence()
        if silence:
            findings.insert(0, Finding(Level.ERROR, silence))
        age_s = self._states.age_s(now_ns)
        return Status(
            findings,
            [
                ('rate (Hz)', rate_hz),
                ('age (s)', 'none' if age_s is None else age_s),
                ('received', counts.received),
                ('refused', counts.refused),
                ('backward stamps', counts.backward),
                ('replaced stamps', counts.replaced_stamps),
            ],
        )


class EngineStatus:
    """The status of the engine, and of the callbacks around it."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._skew = Recent(lambda: robot.sensors.skew_refused)
        self._engine_faults = Recent(lambda: robot.health.num_faults)
        self._callback_faults = Recent(robot.faults.counts.total)

    def read(self, now_ns: int, limits: DiagnosticLimits) -> Status:
        """Return the status at a steady time."""
        robot, health, faults = self._robot, self._robot.health, self._robot.faults
        silent_s = (now_ns - health.heartbeat_ns) * 1e-9
        findings: list[Finding] = []
        if health.is_lost:
            text = 'stopped with its memory in disorder; clean up and configure'
            findings.append(Finding(Level.ERROR, text))
        elif health.failed:
            findings.append(Finding(Level.ERROR, 'fails again and again'))
        elif health.is_running and silent_s > limits.stuck_after_s:
            findings.append(Finding(Level.ERROR, f'no sign of life for {silent_s:.1f} s'))
        newest = health.reports[-1].strip().splitlines()[-1] if health.reports else ''
        sensors = robot.sensors
        warnings = (
            (self._engine_faults, f'{health.num_faults} faults, last: {newest}'),
            (
                self._skew,
                f'{sensors.skew_refused} sets of images refused, last: {sensors.newest_skew} '
                '(sensors.max_skew_s)',
            ),
            (
                self._callback_faults,
                f'{faults.counts.total()} callbacks failed, last: {faults.newest}',
            ),
        )
        findings += [Finding(Level.WARN, text) for recent, text in warnings if recent.read(now_ns)]
        counters = robot.engine.counters
        return Status(
            findings,
            [
                ('observations', counters.observations_started),
                ('prefills', counters.prefills),
                ('images encoded', counters.images_encoded),
                ('action passes', counters.action_passes),
                ('decode steps', counters.decode_steps),
                ('text tokens', counters.text_tokens),
                ('preemptions', counters.preemptions),
                ('engine faults', health.num_faults),
                ('callback faults', faults.counts.total()),
                ('skew refusals', sensors.skew_refused),
            ],
        )


def memory_status(robot: Robot) -> Status:
    """Look at the KV cache, at the scene graph, and at what is written to disk."""
    report, counts = robot.memory_report(), robot.scene.counts
    findings, written = writer_status(robot.records.status)
    if counts.failed > counts.merged:
        problem = f'{counts.failed} updates failed, last: {counts.newest_problem}'
        findings.append(Finding(Level.WARN, f'scene graph: {problem}'))
    if robot.scene.positions is not None:
        findings += [
            Finding(Level.WARN, f'positions by {camera}: {problem}')
            for camera, problem in robot.scene.positions.problems.items()
        ]
    return Status(
        findings,
        [
            ('KV blocks free', report.blocks_free),
            ('KV blocks', report.blocks_total),
            ('KV referenced (bytes)', report.bytes_referenced),
            ('KV isolated (bytes)', report.bytes_isolated),
            ('live prefixes', len(report.prefix_readers)),
            ('objects', robot.scene.num_objects),
            ('scene updates', counts.merged),
            ('scene updates failed', counts.failed),
            ('scene updates skipped', counts.skipped),
            *written,
        ],
    )


def writer_status(status: WriterStatus | None) -> Status:
    """Look at writing; nothing where nothing is written."""
    findings: list[Finding] = []
    figures: Figures = []
    if status is not None:
        for name, sink in (('store', status.store), ('audit log', status.audit)):
            if sink is not None:
                findings += [
                    Finding(Level.WARN, f'{name}: {problem}') for problem in _problems(sink)
                ]
                figures += [
                    (f'{name} written', sink.num_written),
                    (f'{name} waiting', sink.num_waiting),
                    (f'{name} dropped', sum(sink.num_dropped.values())),
                    (f'{name} rejected', sink.num_rejected),
                ]
        # Kept by whoever records diagnostics, it proves the log up to it.
        if status.audit_head is not None:
            figures.append(('audit head', f'{status.audit_head.seq}:{status.audit_head.digest}'))
    return Status(findings, figures)


def _problems(sink: SinkStatus) -> list[str]:
    problems = [] if sink.is_ok else [sink.fault]
    if sink.num_dropped:
        dropped = ', '.join(f'{num} {kind}' for kind, num in sorted(sink.num_dropped.items()))
        problems.append(f'dropped for want of room: {dropped}')
    if sink.num_rejected:
        problems.append(f'{sink.num_rejected} could not be written, last: {sink.rejection}')
    return problems


def dialogue_status(robot: Robot) -> Status:
    """Look at the questions."""
    dialogue, counts = robot.dialogue, robot.dialogue.counts
    return Status(
        [],
        [
            ('running', dialogue.num_running),
            ('waiting', dialogue.num_waiting),
            ('live requests', robot.requests.count(TaskType.DIALOGUE)),
            ('accepted', counts.accepted),
            ('succeeded', counts.succeeded),
            ('cancelled', counts.cancelled),
            ('aborted', counts.aborted),
            ('refused', counts.refused),
            ('time to first token (s)', counts.newest_ttft_s),
        ],
    )


def model_status(robot: Robot, warm_up_s: float) -> Status:
    """Say which model runs."""
    model = robot.model
    return Status(
        [],
        [
            ('name', model.spec.name),
            ('checksum', model.checksum),
            ('device', str(model.device)),
            ('dtype', str(model.dtype)),
            ('execution', getattr(model, 'execution', 'eager')),
            ('warm-up (s)', warm_up_s),
        ],
    )
