# SPDX-License-Identifier: Apache-2.0
"""What /diagnostics shows of each camera, joints, engine, memory, dialogue, model."""

from __future__ import annotations

from collections.abc import Callable
import time

from rclpy.node import Node

from ...robot.settings import DiagnosticLimits
from ...runtime.runtime import Runtime
from ...types import TaskType
from ..faults import FaultLog
from ..middleware.endpoints import num_publishers, publisher_problems
from ..records.run_memory import RunMemory
from ..requests.dialogue_server import DialogueServer
from ..requests.engine_requests import EngineRequests
from ..requests.scene_graph_server import SceneGraphServer
from ..sensors.inputs import Inputs
from .diagnostics import ERROR, Figures, Finding, Task, WARN
from .record_diagnostics import writer_findings
from .sensor_findings import CameraFindings, JointFindings, Recent

Limits = Callable[[], DiagnosticLimits]


class RateMeter:
    """Turns a growing count into a rate between two readings."""

    def __init__(self) -> None:
        self._time_ns = time.monotonic_ns()
        self._count = 0

    def read(self, count: int) -> float:
        """Return counts per second since the last reading."""
        now_ns = time.monotonic_ns()
        rate = (count - self._count) / max((now_ns - self._time_ns) * 1e-9, 1e-3)
        self._time_ns, self._count = now_ns, count
        return max(rate, 0.0)


def camera_task(node: Node, runtime: Runtime, inputs: Inputs, camera: str, limits: Limits) -> Task:
    """Look at one camera."""
    source = inputs.ingest.inputs[camera]
    subscriptions = inputs.camera_subscriptions[camera]
    images = CameraFindings(source.stream, runtime.sensors)
    meter = RateMeter()

    def task() -> tuple[list[Finding], Figures]:
        counts = source.counts
        rate_hz = meter.read(counts.received)
        now_ns = time.monotonic_ns()
        findings = images.read(now_ns, runtime.engine_thread.is_running)
        if not rate_hz and not num_publishers(node, subscriptions):
            topics = ' or '.join(subscription.topic_name for subscription in subscriptions)
            findings.insert(0, (ERROR, f'nobody publishes {topics}'))
        elif counts.received and rate_hz < limits().min_camera_rate_hz:
            findings.append((WARN if rate_hz else ERROR, f'{rate_hz:.1f} images per second'))
        findings += [
            (ERROR, problem)
            for subscription in subscriptions
            for problem in publisher_problems(node, subscription)
        ]
        age_s, size = images.age_s(now_ns), source.stream.size or (0, 0)
        return findings, [
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
        ]

    return task


def joints_task(node: Node, runtime: Runtime, inputs: Inputs) -> Task:
    """Look at the joint states."""
    counts = inputs.joints.counts
    subscription = inputs.joint_subscription
    states = JointFindings(inputs.joints.stream, runtime.sensors)
    meter = RateMeter()

    def task() -> tuple[list[Finding], Figures]:
        rate_hz = meter.read(counts.received)
        now_ns = time.monotonic_ns()
        findings = states.read(now_ns)
        if not rate_hz and not num_publishers(node, [subscription]):
            findings.insert(0, (ERROR, f'nobody publishes {subscription.topic_name}'))
        findings += [(ERROR, problem) for problem in publisher_problems(node, subscription)]
        age_s = states.age_s(now_ns)
        return findings, [
            ('rate (Hz)', rate_hz),
            ('age (s)', 'none' if age_s is None else age_s),
            ('received', counts.received),
            ('refused', counts.refused),
            ('backward stamps', counts.backward),
            ('replaced stamps', counts.replaced_stamps),
        ]

    return task


def engine_task(
    node: Node, runtime: Runtime, inputs: Inputs, limits: Limits, faults: FaultLog
) -> Task:
    """Look at the engine's thread, at what it has done, and at who instructs it."""
    skew = Recent(lambda: runtime.sensors.skew_refused)
    engine_faults = Recent(lambda: runtime.engine_thread.num_faults)
    callback_faults = Recent(faults.counts.total)

    def task() -> tuple[list[Finding], Figures]:
        thread = runtime.engine_thread
        counters = runtime.engine.counters
        active = thread.is_running
        now_ns = time.monotonic_ns()
        silent_s = (now_ns - thread.heartbeat_ns) * 1e-9
        findings: list[Finding] = []
        if thread.is_lost:
            findings.append((ERROR, 'stopped with its memory in disorder; clean up and configure'))
        elif thread.failed:
            findings.append((ERROR, 'fails again and again'))
        elif active and silent_s > limits().stuck_after_s:
            findings.append((ERROR, f'no sign of life for {silent_s:.1f} s'))
        if engine_faults.read(now_ns):
            newest = runtime.faults[-1].strip().splitlines()[-1] if runtime.faults else ''
            findings.append((WARN, f'{thread.num_faults} faults, last: {newest}'))
        if skew.read(now_ns):
            findings.append(
                (
                    WARN,
                    f'{runtime.sensors.skew_refused} sets of images refused, last: '
                    f'{runtime.sensors.newest_skew} (sensors.max_skew_s)',
                )
            )
        findings += [
            (WARN, problem)
            for problem in publisher_problems(node, inputs.instruction_subscription)
        ]
        if callback_faults.read(now_ns):
            findings.append(
                (WARN, f'{faults.counts.total()} callbacks failed, last: {faults.newest}')
            )
        return findings, [
            ('observations', counters.observations_started),
            ('prefills', counters.prefills),
            ('images encoded', counters.images_encoded),
            ('action passes', counters.action_passes),
            ('decode steps', counters.decode_steps),
            ('text tokens', counters.text_tokens),
            ('preemptions', counters.preemptions),
            ('engine faults', thread.num_faults),
            ('callback faults', faults.counts.total()),
            ('skew refusals', runtime.sensors.skew_refused),
        ]

    return task


def memory_task(runtime: Runtime, scene: SceneGraphServer, memory: RunMemory) -> Task:
    """Look at the KV cache, at the scene graph, and at what is written to disk."""

    def task() -> tuple[list[Finding], Figures]:
        report = runtime.memory_report()
        counts = scene.counts
        findings, written = writer_findings(memory.status)
        if counts.failed > counts.merged:
            findings.append(
                (
                    WARN,
                    f'scene graph: {counts.failed} updates failed, last: {counts.newest_problem}',
                )
            )
        if scene.positions is not None:
            findings += [
                (WARN, f'positions by {camera}: {problem}')
                for camera, problem in scene.positions.problems.items()
            ]
        return findings, [
            ('KV blocks free', report.blocks_free),
            ('KV blocks', report.blocks_total),
            ('KV referenced (bytes)', report.bytes_referenced),
            ('KV isolated (bytes)', report.bytes_isolated),
            ('live prefixes', len(report.prefix_readers)),
            ('objects', scene.num_objects),
            ('scene updates', counts.merged),
            ('scene updates failed', counts.failed),
            ('scene updates skipped', counts.skipped),
            *written,
        ]

    return task


def dialogue_task(dialogue: DialogueServer, requests: EngineRequests) -> Task:
    """Look at the goals."""

    def task() -> tuple[list[Finding], Figures]:
        counts = dialogue.counts
        return [], [
            ('running', dialogue.num_running),
            ('waiting', dialogue.num_waiting),
            ('live requests', requests.count(TaskType.DIALOGUE)),
            ('accepted', counts.accepted),
            ('succeeded', counts.succeeded),
            ('cancelled', counts.cancelled),
            ('aborted', counts.aborted),
            ('refused', counts.refused),
            ('time to first token (s)', counts.newest_ttft_s),
        ]

    return task


def model_task(runtime: Runtime) -> Task:
    """Say which model runs."""
    model = runtime.model

    def task() -> tuple[list[Finding], Figures]:
        return [], [
            ('name', model.spec.name),
            ('checksum', model.checksum),
            ('device', str(model.device)),
            ('dtype', str(model.dtype)),
            ('execution', getattr(model, 'execution', 'eager')),
            ('warm-up (s)', runtime.warm_up_s),
        ]

    return task


def add_tasks(
    add: Callable[[str, Task], None],
    node: Node,
    runtime: Runtime,
    inputs: Inputs,
    limits: Limits,
    faults: FaultLog,
) -> None:
    """Add what is looked at of the way from the sensors through the engine."""
    for camera in runtime.sensors.config.cameras:
        add(f'camera {camera}', camera_task(node, runtime, inputs, camera, limits))
    add('joint states', joints_task(node, runtime, inputs))
    add('engine', engine_task(node, runtime, inputs, limits, faults))
