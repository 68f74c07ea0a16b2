# SPDX-License-Identifier: Apache-2.0
"""What one run of a robot leaves on disk, what it remembers from there, what its facts say.

Everything is handed on in the owner's thread and written by the shell's writer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from .. import __version__
from ..engine.model import VLAModel
from ..memory.audit.audit_chain import AuditContext, AuditRecord, read_key
from ..memory.audit.audit_log import AuditLog
from ..memory.checks.facts import load_facts
from ..memory.checks.grounding import flagged, GroundingCheck
from ..memory.episodes.reader import MemoryReader
from ..memory.episodes.recall import recall, Recollection
from ..memory.episodes.recorder import MemoryRecorder
from ..memory.episodes.records import Note
from ..memory.episodes.store import EpisodicStore
from ..memory.errors import StoreUnavailable
from ..memory.scene.vocabulary import SceneVocabulary
from ..memory.writing import WriterStatus
from ..types import ActionChunk, FloatArray, SamplingParams, SceneUpdate, TextResult
from .clock import RobotClock, ros_now_ns
from .faults import EngineHealth, FaultLog
from .memory_settings import RecordSettings

Answer = TypeVar('Answer')

_MAX_REASONS = 16  # of one answer
_STOP_TIMEOUT_S = 0.8  # a process that is told to end has about 3 s in all
_SOFTWARE = f'oxygen_ros {__version__}'


class Writer(Protocol):
    """Writes notes and records; `put` never waits."""

    def start(self) -> None:
        """Begin to write."""
        ...

    def put(self, item: Note | AuditRecord) -> bool:
        """Take something to write; False where it was dropped."""
        ...

    def stop(self, timeout_s: float = ...) -> bool:
        """Write what waits and end; False where something was left."""
        ...

    def status(self) -> WriterStatus:
        """Return how writing goes."""
        ...


OpenStore = Callable[[int | None], EpisodicStore]
OpenAudit = Callable[[], AuditLog]
MakeWriter = Callable[[OpenStore | None, OpenAudit | None], Writer]


class StoreReader(Protocol):
    """Reads the store without keeping the owner's thread from its work."""

    @property
    def is_busy(self) -> bool:
        """Whether as many jobs wait as may."""
        ...

    def ask(
        self,
        work: Callable[[MemoryReader], Answer],
        on_answer: Callable[[Answer], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """Have work done on a reader; one of the two is called in the owner's thread."""
        ...

    def end(self) -> None:
        """Refuse what waits and read no more."""
        ...


class RobotRecords:
    """Records what happens, where the settings name a store or an audit log.

    Belongs to the owner's thread. Made at configure; each activation is a run of its own.

    :param make_writer: makes what writes a run.
    :param reader: reads the store; None: there is none.
    :raises ValueError: the facts or the key cannot be read.
    """

    def __init__(
        self,
        settings: RecordSettings,
        vocabulary: SceneVocabulary,
        model: VLAModel,
        max_text_tokens: int,
        clock: RobotClock,
        health: EngineHealth,
        faults: FaultLog,
        make_writer: MakeWriter,
        reader: StoreReader | None,
    ) -> None:
        self.reader = reader
        self._settings = settings
        self._model = model
        self._max_text_tokens = max_text_tokens
        self._clock = clock
        self._health = health
        self._faults = faults
        self._make_writer = make_writer
        self._key = read_key(settings.audit_key_file) if settings.audit_key_file else None
        self._check: GroundingCheck | None = None
        if settings.facts_file:
            self._check = GroundingCheck(load_facts(settings.facts_file), vocabulary)
        self._writer: Writer | None = None
        self._recorder: MemoryRecorder | None = None
        self._status: WriterStatus | None = None
        self._mode: tuple[str, int, str] | None = None  # the newest, with stamp and reason
        self._parameters: Mapping[str, object] = {}
        self._tick_parameters: Mapping[str, object] = {}  # of a tick in another process
        self._callback_faults: Counter[str] = Counter()
        self._num_engine_faults = 0

    # Life.

    def start(self, parameters: Mapping[str, object]) -> None:
        """Begin a run; its first record is the parameter set."""
        settings = self._settings
        if not settings.store_file and not settings.audit_folder:
            return
        self._writer = self._make_writer(
            self._open_store if settings.store_file else None,
            self._open_audit if settings.audit_folder else None,
        )
        self._writer.start()
        self._recorder = MemoryRecorder(
            self._put, AuditContext(self._model.checksum, software=_SOFTWARE)
        )
        self._callback_faults = Counter(self._faults.counts)
        self._num_engine_faults = self._health.num_faults
        self.parameters(parameters)
        self._recorder.mode('active', ros_now_ns(self._clock))
        if self._mode is not None:
            self._recorder.mode(*self._mode)

    def stop(self, reason: str) -> bool:
        """Write what waits and end the run; False: something was left."""
        writer, recorder = self._writer, self._recorder
        if writer is None or recorder is None:
            return True
        self.watch()
        recorder.mode('inactive', ros_now_ns(self._clock), reason)
        self._writer = self._recorder = None
        ended = writer.stop(_STOP_TIMEOUT_S)
        self._status = writer.status()
        return ended

    def _open_store(self, run: int | None) -> EpisodicStore:
        return EpisodicStore(
            self._settings.store_file,
            self._settings.store_rules,
            started_ns=ros_now_ns(self._clock),
            software=_SOFTWARE,
            resume_run=run,
        )

    def _open_audit(self) -> AuditLog:
        return AuditLog(self._settings.audit_folder, self._settings.audit_rules(self._key))

    def _put(self, item: Note | AuditRecord) -> None:
        if self._writer is not None:
            self._writer.put(item)

    @property
    def status(self) -> WriterStatus | None:
        """How writing goes, or went in the newest run; None: nothing is written."""
        return self._status if self._writer is None else self._writer.status()

    # What is remembered.

    def recall(
        self, question: str, sampling: SamplingParams, on_found: Callable[[Recollection], None]
    ) -> None:
        """Look for what is remembered of a question, as far as its request leaves room for it.

        `on_found` is told once: of nothing where there is no store, or trouble with it, for an
        answer is owed all the same.
        """
        room = self._max_text_tokens - sampling.max_tokens - self._count_tokens(question)
        budget = min(self._settings.recall_tokens, room)
        reader = self.reader
        if reader is None or budget <= 0 or reader.is_busy:
            on_found(Recollection(''))
            return
        now_ns = ros_now_ns(self._clock)

        def failed(error: Exception) -> None:
            # A store that is not made yet, or trouble of the disk: the writer reports these.
            if not isinstance(error, StoreUnavailable):
                self._faults.note('recall', error)
            on_found(Recollection(''))

        reader.ask(
            lambda found: recall(found, question, now_ns, budget, self._count_tokens),
            on_found,
            failed,
        )

    def _count_tokens(self, text: str) -> int:
        """Return the tokens that a text takes in a prompt; any thread."""
        return len(self._model.text_prompt(text))

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
            self._recorder.instruction(text, ros_now_ns(self._clock), source)

    def parameters(self, parameters: Mapping[str, object]) -> None:
        """Record the parameter set after a change; what follows carries its hash."""
        self._parameters = parameters
        if self._tick_parameters:
            parameters = {**parameters, 'tick_process': self._tick_parameters}
        if self._recorder is not None:
            self._recorder.parameters(parameters, ros_now_ns(self._clock))

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
        recorder, health = self._recorder, self._health
        if recorder is None:
            return
        num_new, self._num_engine_faults = (
            health.num_faults - self._num_engine_faults,
            health.num_faults,
        )
        if num_new:
            for report in list(health.reports)[-num_new:]:
                recorder.fault('engine', ros_now_ns(self._clock), report[-2_000:])
        counts = Counter(self._faults.counts)
        for name, num in (counts - self._callback_faults).items():
            detail = f'{name}: {num} more, the newest of all callbacks: {self._faults.newest}'
            recorder.fault('callback', ros_now_ns(self._clock), detail[:2_000])
        self._callback_faults = counts
