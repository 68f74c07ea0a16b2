# SPDX-License-Identifier: Apache-2.0
"""What one run of the node leaves on disk: its notes for the store, its records for the audit log.

Everything is handed on in the executor's thread and written by the writer's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
import threading
import time

from ... import __version__
from ...memory.audit.audit_chain import AuditContext, AuditRecord, read_key
from ...memory.audit.audit_log import AuditLog
from ...memory.checks.facts import load_facts
from ...memory.checks.grounding import flagged, GroundingCheck
from ...memory.episodes.recorder import MemoryRecorder
from ...memory.episodes.records import Note
from ...memory.episodes.store import EpisodicStore
from ...memory.scene.vocabulary import SceneVocabulary
from ...robot.memory_settings import RecordSettings
from ...runtime.memory_writer import MemoryWriter, WriterStatus
from ...runtime.runtime import Runtime
from ...types import ActionChunk, FloatArray, SamplingParams, SceneUpdate, TextResult
from ..clocks import ClockBridge
from ..faults import FaultLog

_NEVER_ON = ('oxygen_engine', 'oxygen_tick')  # names of threads that must not be kept
_MAX_REASONS = 16  # of one answer
_STOP_TIMEOUT_S = 0.8  # a process that is told to end has about 3 s in all


class RunMemory:
    """Records what happens, where the settings name a store or an audit log.

    Belongs to the executor's thread. Made at configure; each activation is a run of its own.

    :raises ValueError: the facts or the key cannot be read.
    """

    def __init__(
        self,
        settings: RecordSettings,
        vocabulary: SceneVocabulary,
        runtime: Runtime,
        clock: ClockBridge,
        faults: FaultLog,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._clock = clock
        self._faults = faults
        self._key = read_key(settings.audit_key_file) if settings.audit_key_file else None
        self._check: GroundingCheck | None = None
        if settings.facts_file:
            self._check = GroundingCheck(load_facts(settings.facts_file), vocabulary)
        self._writer: MemoryWriter | None = None
        self._recorder: MemoryRecorder | None = None
        self._status: WriterStatus | None = None
        self._mode: tuple[str, int, str] | None = None  # the newest, with stamp and reason
        self._parameters: Mapping[str, object] = {}
        self._tick_parameters: Mapping[str, object] = {}  # of a tick in another process
        self._callback_faults: Counter[str] = Counter()
        self._num_engine_faults = 0

    def now_ns(self) -> int:
        """Return ROS time."""
        return time.monotonic_ns() + self._clock.offset_ns()

    def count_tokens(self, text: str) -> int:
        """Return the tokens that a text takes in a prompt; any thread."""
        return len(self._runtime.model.text_prompt(text))

    def text_room(self, prompt: str, sampling: SamplingParams) -> int:
        """Return the tokens that a request leaves free for what is remembered."""
        return (
            self._runtime.config.engine.max_text_tokens
            - sampling.max_tokens
            - self.count_tokens(prompt)
        )

    # Life.

    def start(self, parameters: Mapping[str, object]) -> None:
        """Begin a run; its first record is the parameter set."""
        settings = self._settings
        if not settings.store_file and not settings.audit_folder:
            return
        self._writer = MemoryWriter(
            self._open_store if settings.store_file else None,
            self._open_audit if settings.audit_folder else None,
        )
        self._writer.start()
        self._recorder = MemoryRecorder(
            self._put,
            AuditContext(self._runtime.model.checksum, software=f'oxygen_ros {__version__}'),
        )
        self._callback_faults = Counter(self._faults.counts)
        self._num_engine_faults = self._runtime.engine_thread.num_faults
        self.parameters(parameters)
        self._recorder.mode('active', self.now_ns())
        if self._mode is not None:
            self._recorder.mode(*self._mode)

    def stop(self, reason: str) -> bool:
        """Write what waits and end the run; False: something was left."""
        writer, recorder = self._writer, self._recorder
        if writer is None or recorder is None:
            return True
        self.watch()
        recorder.mode('inactive', self.now_ns(), reason)
        self._writer = self._recorder = None
        ended = writer.stop(_STOP_TIMEOUT_S)
        self._status = writer.status()
        return ended

    def _open_store(self, run: int | None) -> EpisodicStore:
        return EpisodicStore(
            self._settings.store_file,
            self._settings.store_rules,
            started_ns=self.now_ns(),
            software=f'oxygen_ros {__version__}',
            resume_run=run,
        )

    def _open_audit(self) -> AuditLog:
        return AuditLog(self._settings.audit_folder, self._settings.audit_rules(self._key))

    def _put(self, item: Note | AuditRecord) -> None:
        assert threading.current_thread().name not in _NEVER_ON, (
            'expected the thread of the executor, got that of the engine or the tick'
        )
        if self._writer is not None:
            self._writer.put(item)

    @property
    def status(self) -> WriterStatus | None:
        """How writing goes, or went in the newest run; None: nothing is written."""
        return self._status if self._writer is None else self._writer.status()

    # What happens.

    def chunk(self, chunk: ActionChunk) -> None:
        """Record an action chunk."""
        if self._recorder is not None:
            self._recorder.chunk(chunk)

    def utterance(
        self, result: TextResult, question: str, cited: Sequence[int]
    ) -> tuple[str, list[str]]:
        """Record the end of an answer.

        :return: what the facts say of it and of each sentence; both empty without facts.
        """
        verdict, reasons = '', list[str]()
        if self._check is not None and result.text:
            grounding = self._check.check_text(result.text)
            verdict = grounding.verdict.value
            reasons = [str(finding) for finding in grounding.findings[:_MAX_REASONS]]
        if self._recorder is not None:
            self._recorder.utterance(
                result,
                result.ended_ns + self._clock.offset_ns(),
                question=question,
                verdict=verdict,
                reasons=reasons,
                cited=cited,
            )
        return verdict, reasons

    def scene(self, update: SceneUpdate, text: str, place: FloatArray | None) -> dict[int, str]:
        """Record a scene update; return what the facts say of each object, by its id.

        :param place: embedding of the observation's place.
        """
        verdicts = {} if self._check is None else flagged(self._check.check_scene(update))
        if self._recorder is not None:
            self._recorder.scene(update, text, place=place, verdicts=verdicts)
        return verdicts

    def instruction(self, text: str, source: str) -> None:
        """Record what the robot was told, and which way."""
        if self._recorder is not None:
            self._recorder.instruction(text, self.now_ns(), source)

    def parameters(self, parameters: Mapping[str, object]) -> None:
        """Record the parameter set after a change; what follows carries its hash."""
        self._parameters = parameters
        if self._tick_parameters:
            parameters = {**parameters, 'tick_process': self._tick_parameters}
        if self._recorder is not None:
            self._recorder.parameters(parameters, self.now_ns())

    def tick_parameters(self, parameters: Mapping[str, object]) -> None:
        """Take the set of a tick in another process, which is part of the whole."""
        if parameters != self._tick_parameters:
            self._tick_parameters = parameters
            self.parameters(self._parameters)

    def mode(self, mode: str, stamp_ns: int, reason: str) -> None:
        """Record a change of who drives, by which request; before a run, its beginning is told."""
        self._mode = (mode, stamp_ns, reason)
        if self._recorder is not None:
            self._recorder.mode(mode, stamp_ns, reason)

    def watch(self) -> None:
        """Record new faults; called several times a second."""
        recorder, thread = self._recorder, self._runtime.engine_thread
        if recorder is None:
            return
        num_new, self._num_engine_faults = (
            thread.num_faults - self._num_engine_faults,
            thread.num_faults,
        )
        if num_new:
            for report in list(self._runtime.faults)[-num_new:]:
                recorder.fault('engine', self.now_ns(), report[-2_000:])
        counts = Counter(self._faults.counts)
        for name, num in (counts - self._callback_faults).items():
            detail = f'{name}: {num} more, the newest of all callbacks: {self._faults.newest}'
            recorder.fault('callback', self.now_ns(), detail[:2_000])
        self._callback_faults = counts
