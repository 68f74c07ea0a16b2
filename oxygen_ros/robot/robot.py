# SPDX-License-Identifier: Apache-2.0
"""One robot below ROS: messages in; targets, chunks, answers and scene graphs out.

No ROS, no thread and no clock of its own: a shell hands them in. The node drives it by threads on
the steady clock, a replay by a recording on a virtual one, the benchmark by made sensors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..control import ArmState
from ..engine.engine import Engine, EngineEvent
from ..engine.kv.memory_report import memory_report, MemoryReport
from ..engine.model import VLAModel
from ..ingest import CameraSink, JointStream, Receipt
from ..models.registry import create_model
from ..types import ActionChunk, RobotState, TextResult
from .actuation import Actuation
from .cameras import CameraInputs
from .dialogue import Dialogue
from .faults import EngineHealth
from .positions import FixedPoses, ScenePositions
from .records import RobotRecords
from .scene_memory import SceneMemory
from .sensor_hub import SensorHub
from .settings import fit_to_model, Publish, RobotSettings
from .shell import Shell
from .text_requests import TextRequests


def load_model(settings: RobotSettings) -> tuple[RobotSettings, VLAModel, str]:
    """Make the model that the settings name.

    :return: the settings that the model can follow, the model, and what differs; empty: nothing.
    :raises ValueError: the settings cannot be met by this model.
    """
    if settings.num_threads:
        torch.set_num_threads(settings.num_threads)
    model = create_model(settings.model.source, settings.model.options)
    settings, note = fit_to_model(settings, model.spec)
    return settings, model, note


class Robot:
    """Made at configure; `start` and `finish` enclose a run.

    One thread owns it: all is called there but what says otherwise. One thread at a time drives
    `engine`, one decodes images (`cameras.decode_newest`), one ticks (`actuation`).

    :raises ValueError: the settings cannot be met by this model.
    """

    def __init__(self, settings: RobotSettings, model: VLAModel, shell: Shell) -> None:
        self.settings = settings
        self.model = model
        self.health = EngineHealth(heartbeat_ns=shell.clock.now_ns())
        self.faults = shell.faults
        self.log = shell.log
        self.cost_model = shell.cost_model
        self.started_ns = 0  # deadline of the first tick, steady; set by who drives
        self._shell = shell
        self.clock = shell.clock
        self._outlets = shell.outlets
        self._commands: deque[Callable[[Engine], None]] = deque()
        self._events: deque[EngineEvent] = deque()
        self._calls: deque[Callable[[], None]] = deque()
        self._is_draining = False
        self._num_faults_logged = 0
        self.sensors = SensorHub(settings.sensors, shell.wake_engine)
        self.joints = JointStream(settings.joints, settings.ingest, self.sensors.put_state)
        sink = CameraSink(
            self.sensors.put_frame,
            self.sensors.drop_frame,
            self._camera_jumped,
            self._camera_resized,
        )
        self.cameras = CameraInputs(
            settings.sensors.cameras,
            settings.ingest,
            shell.clock,
            sink,
            shell.faults,
            shell.wake_ingest,
        )
        self.actuation = Actuation(
            settings.joints,
            settings.tick,
            settings.limits,
            settings.blend_s,
            self.sensors.newest_state,
            shell.clock,
            shell.outlets,
            self._on_mode,
            shell.log,
            shell.faults,
        )
        self.engine = Engine(
            model,
            settings.engine,
            shell.work_clock,
            shell.cost_model,
            self.sensors,
            self._emit,
            self._poll,
        )
        self.requests = TextRequests(self.post, shell.clock)
        store_file = settings.records.store_file
        self.records = RobotRecords(
            settings.records,
            settings.memory.scene_format.vocabulary,
            model,
            settings.engine.max_text_tokens,
            shell.clock,
            self.health,
            shell.faults,
            shell.make_writer,
            shell.make_reader(store_file, self.call_soon) if store_file else None,
        )
        self.dialogue = Dialogue(
            settings.dialogue,
            self.requests,
            self.records,
            shell.clock,
            shell.faults,
            shell.outlets.utterance,
        )
        self.scene = SceneMemory(
            settings.memory,
            model,
            settings.engine.max_text_tokens,
            self.sensors,
            self.requests,
            self.records,
            self._make_positions(),
            shell.clock,
            shell.faults,
            shell.outlets.scene,
        )

    def _make_positions(self) -> ScenePositions | None:
        positions = self.settings.memory.positions
        if not positions.frame_id:
            return None
        poses = self._shell.poses
        if positions.camera_poses:
            poses = FixedPoses(positions.camera_poses)
        assert poses is not None  # the shell has them where the settings do not
        return ScenePositions(positions, poses)

    @property
    def ticks_here(self) -> bool:
        """Whether targets are decided in this process."""
        return self.settings.publish is not Publish.ELSEWHERE

    # Life.

    def start(self, parameters: Mapping[str, object]) -> None:
        """Begin a run: all counts from zero, targets from the measured joints.

        Whoever drives the engine starts it afterwards.

        :param parameters: of the run, for the audit log.
        """
        self._events.clear()
        self.engine.reset_statistics()
        self.sensors.restart()
        self.cameras.begin()
        self.engine.action.epoch = self.actuation.restart()
        self._run_calls()
        self.records.start(parameters)
        self.dialogue.start()
        self.scene.start()

    def refuse_requests(self) -> None:
        """Take no more questions and updates: the run is about to end."""
        self.dialogue.stop()
        self.scene.stop()

    def finish(self, reason: str) -> bool:
        """End a run, once nothing drives the engine and nothing ticks; every request ends.

        :return: False: not all was written.
        """
        self._commands.clear()
        self.actuation.arming.disarm()
        self.drain()
        self.requests.fail_all('the engine has stopped')
        return self.records.stop(reason)

    def close(self) -> None:
        """Free what reads the store; every question that waits for it ends."""
        if self.records.reader is not None:
            self.records.reader.end()
        self._run_calls()

    def reconfigure(self, settings: RobotSettings, parameters: Mapping[str, object]) -> None:
        """Use settings of which only live ones differ."""
        before, self.settings = self.settings, settings
        if not settings.ticks_like(before):
            self.actuation.reconfigure(settings.tick, settings.limits)
        self.dialogue.settings = settings.dialogue
        self.records.parameters(parameters)

    # Messages in, each with the time of its header (ns, ROS time).

    def _receipt(self) -> Receipt:
        return Receipt(self.clock.now_ns(), self.clock.offset_ns())

    def take_image(self, camera: str, message: Any, stamp_ns: int, missed: int = 0) -> None:
        """Take a camera's image, with the fields of a sensor_msgs Image or CompressedImage.

        :param missed: images since the one before it that never came.
        """
        self.cameras.inputs[camera].missed += missed
        self.cameras.offer(camera, message, stamp_ns, self._receipt())

    def take_joints(self, names: Sequence[str], positions: Sequence[float], stamp_ns: int) -> None:
        """Take measured joint positions, or count why they cannot be used."""
        self.joints.counts.received += 1
        self.joints.take(names, positions, stamp_ns, self._receipt())

    def take_instruction(self, instruction: str, source: str) -> str:
        """Take what the arm shall do from the next observation on.

        :param source: which way it came, for the records.
        :return: why it is refused; empty: it is not.
        """
        limit = self.settings.dialogue.max_prompt_bytes
        size = len(instruction.encode())
        if size > limit:
            return f'instruction: expected at most {limit} bytes, got {size}'
        self.post(lambda engine: engine.set_instruction(instruction))
        self.records.instruction(instruction, source)
        return ''

    def take_instruction_of_topic(self, instruction: str) -> None:
        """Take an instruction whose sender hears nothing of a refusal: it is logged."""
        problem = self.take_instruction(instruction, 'topic instruction')
        if problem:
            self.log.warning(problem, throttle_duration_sec=5.0)

    def take_camera_info(self, camera: str, info: Any) -> None:
        """Take a camera's calibration, with the fields of a sensor_msgs CameraInfo."""
        if self.scene.positions is not None:
            self.scene.positions.take_info(camera, info)

    def take_depth(self, camera: str, message: Any, stamp_ns: int) -> None:
        """Take a depth image, with the fields of a sensor_msgs Image."""
        if self.scene.positions is not None:
            self.scene.positions.take_depth(camera, message, stamp_ns)

    def time_jumped(self, cause: str) -> None:
        """Drop what was received and computed: ROS time does not go on from where it was."""
        self.cameras.forget()
        self.joints.begin()
        self._reset(cause)

    def _camera_jumped(self, camera: str) -> None:
        self._reset(f'stamps of {camera} jumped back')

    def _reset(self, cause: str) -> None:
        self.log.warning(
            f'{cause}: chunks and images from before are dropped', throttle_duration_sec=5.0
        )
        self.actuation.buffer.reset()
        self.sensors.clear()

        def command(engine: Engine) -> None:
            # That of now: while inactive this waits for an activation, which begins a newer one.
            engine.action.epoch = self.actuation.buffer.epoch
            engine.reset_observations()

        self.post(command)

    def _camera_resized(self, camera: str) -> None:
        width, height = self.cameras.inputs[camera].stream.size or (0, 0)
        self.log.warning(
            f'{camera}: images are no longer {width}x{height}: what was computed from them is '
            'dropped',
            throttle_duration_sec=5.0,
        )
        self.post(lambda engine: engine.reset_observations())

    # Between threads.

    def post(self, command: Callable[[Engine], None]) -> None:
        """Have a command run between two slices, in order of posting; any thread."""
        self._commands.append(command)
        self._shell.wake_engine()

    def _poll(self) -> None:
        while self._commands:
            self._commands.popleft()(self.engine)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Have a call made in the owner's thread; any thread."""
        self._calls.append(call)
        self._shell.wake()

    def _run_calls(self) -> None:
        while self._calls:
            self._calls.popleft()()

    def _emit(self, event: EngineEvent) -> None:
        if isinstance(event, ActionChunk):
            self.actuation.buffer.add(event)
            if self.settings.publish is Publish.ENGINE:
                self._send_from_engine()
        self._events.append(event)
        self._shell.wake()

    def _send_from_engine(self) -> None:
        """Send the target of this period, as late as the engine comes to it."""
        now_ns, period_ns = self.clock.now_ns(), self.settings.tick.period_ns
        if now_ns >= self.started_ns:
            tick = (now_ns - self.started_ns) // period_ns
            self.actuation.send(self.started_ns + tick * period_ns, tick)

    def _on_mode(self, state: ArmState, stamp_ns: int, request: str) -> None:
        if self.ticks_here:  # else the other process reports it
            self._outlets.mode(state, stamp_ns, request)
            self.call_soon(lambda: self.records.mode(state.value, stamp_ns, request))

    # Results out.

    def drain(self) -> None:
        """Publish and forward what came since the last call, in order."""
        if self._is_draining:  # a virtual clock's engine emits within it
            return
        self._is_draining = True
        try:
            self._run_calls()
            while self._events:
                event = self._events.popleft()
                if isinstance(event, ActionChunk):
                    self._outlets.chunk(event)
                    self.records.chunk(event)
                    continue
                if isinstance(event, TextResult):
                    self._outlets.text(event)
                self.requests.take(event)
            self.dialogue.report_text()
        finally:
            self._is_draining = False
        health = self.health
        if health.num_faults != self._num_faults_logged and health.reports:
            self._num_faults_logged = health.num_faults
            self.log.error(f'engine failed ({health.num_faults} in all):\n{health.reports[-1]}')

    def watch(self) -> None:
        """Look after requests and records; called several times a second during a run."""
        if self.health.failed:
            self.requests.fail_all('the engine has failed')
        self.records.watch()

    # Readings.

    def memory_report(self) -> MemoryReport:
        """Return how the KV cache is used.

        Read without a lock: counts may be of two neighbouring moments.
        """
        return memory_report(self.engine.manager, self.clock.now_ns())

    @property
    def newest_state(self) -> RobotState | None:
        """The newest measured joints, however old."""
        return self.sensors.newest_state()
