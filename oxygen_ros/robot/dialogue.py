# SPDX-License-Identifier: Apache-2.0
"""Dialogue: questions in, streamed text out, exactly one answer to each question."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
import math

from ..memory.episodes.recall import Recollection
from ..types import FinishReason, SamplingParams, TaskType, TextDelta, TextResult
from .clock import RobotClock
from .faults import FaultLog
from .records import RobotRecords
from .settings import DialogueSettings
from .text_requests import TextRequests

NOT_ACTIVE = 'expected an active node, got one that is not'

_SENTENCE_ENDS = '.!?\n'
_LONGEST_SENTENCE = 240  # characters; cut there at the latest, for speech must not wait for ever


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks."""

    prompt: str
    max_tokens: int = 0  # 0: as the settings say
    temperature: float = 0.0  # 0: greedy


@dataclass(frozen=True, slots=True)
class Answer:
    """The one end of a question."""

    result: TextResult
    ttft_s: float  # from acceptance to the first token; NaN: there was none
    recollection: Recollection
    verdict: str = ''  # what the facts say of the answer
    reasons: Sequence[str] = ()  # and of each sentence, with the source


@dataclass(frozen=True, slots=True)
class Listener:
    """Who asked: is told of the text as it grows, and of the answer once."""

    on_answer: Callable[[Answer], None]
    on_text: Callable[[str, int], None] = lambda text, num_tokens: None  # all so far


@dataclass(slots=True)
class DialogueCounts:
    """What became of the questions since the node was made."""

    accepted: int = 0
    succeeded: int = 0
    cancelled: int = 0
    aborted: int = 0
    refused: int = 0  # of those aborted: never begun
    newest_ttft_s: float = math.nan


class SentenceStream:
    """Cuts the text of one answer into pieces that can be spoken: whole sentences."""

    def __init__(self) -> None:
        self._rest = ''

    def push(self, text: str) -> list[str]:
        """Add text; return the sentences that are whole now."""
        self._rest += text
        pieces: list[str] = []
        while True:
            end = next((i for i, char in enumerate(self._rest) if char in _SENTENCE_ENDS), -1)
            if end < 0 and len(self._rest) < _LONGEST_SENTENCE:
                return pieces
            cut = end + 1 if end >= 0 else _LONGEST_SENTENCE
            piece, self._rest = self._rest[:cut].strip(), self._rest[cut:]
            if piece:
                pieces.append(piece)

    def finish(self) -> list[str]:
        """Return what is left."""
        piece, self._rest = self._rest.strip(), ''
        return [piece] if piece else []


@dataclass(slots=True, eq=False)
class Conversation:
    """One question from acceptance to its answer."""

    question: Question
    listener: Listener
    accepted_ns: int
    sampling: SamplingParams | None = None
    request_id: int | None = None  # None: waiting for its turn
    is_cancelled: bool = False  # before its request was submitted
    text: str = ''
    num_tokens: int = 0
    reported_tokens: int = 0
    recollection: Recollection = field(default_factory=lambda: Recollection(''))
    sentences: SentenceStream = field(default_factory=SentenceStream)


class Dialogue:
    """Answers questions; belongs to the owner's thread and never blocks it.

    While the robot is not active, a question is taken and refused, for a plain rejection could
    not say why.

    :param counts: of the node's whole life.
    :param records: what is remembered of a question, and what is kept of its answer.
    :param speak: takes each sentence of an answer once it is whole.
    """

    def __init__(
        self,
        settings: DialogueSettings,
        requests: TextRequests,
        records: RobotRecords,
        clock: RobotClock,
        faults: FaultLog,
        speak: Callable[[str], None],
    ) -> None:
        self.counts = DialogueCounts()
        self.settings = settings  # of the next question on
        self._requests = requests
        self._records = records
        self._clock = clock
        self._faults = faults
        self._speak = speak
        self._is_active = False
        self._running: list[Conversation] = []
        self._waiting: deque[Conversation] = deque()

    @property
    def num_running(self) -> int:
        """Questions that the engine is answering."""
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        """Questions that wait for their turn."""
        return len(self._waiting)

    def start(self) -> None:
        """Take questions from now on."""
        self._is_active = True

    def stop(self) -> None:
        """Take no more questions; end those that wait. The engine ends those that run."""
        self._is_active = False
        while self._waiting:
            self._end(self._waiting.popleft(), FinishReason.ERROR, 'the node was deactivated')

    # A question's life.

    def ask(
        self, question: Question, listener: Listener, is_cancelled: bool = False
    ) -> Conversation:
        """Take a question; its listener hears of the answer once, maybe before this returns.

        :param is_cancelled: who asked has thought better of it already.
        """
        talk = Conversation(question, listener, self._clock.now_ns())
        talk.is_cancelled = is_cancelled
        self.counts.accepted += 1
        problem = self._read(talk)
        if problem or not self._is_active:
            self._begin(talk, Recollection(''), problem)
            return talk
        assert talk.sampling is not None
        self._records.recall(
            question.prompt, talk.sampling, lambda found: self._begin(talk, found)
        )
        return talk

    def cancel(self, talk: Conversation) -> None:
        """End a question with what was decoded so far; nothing happens if it has ended."""
        if talk.request_id is not None:
            self._requests.cancel(talk.request_id)
            return
        talk.is_cancelled = True
        if talk in self._waiting:
            self._waiting.remove(talk)
            self._end(talk, FinishReason.CANCELLED, '')

    def _read(self, talk: Conversation) -> str:
        """Check what was asked; return why it is refused, or nothing."""
        question, settings = talk.question, self.settings
        size = len(question.prompt.encode())
        if not question.prompt.strip():
            return 'prompt: expected a text, got none'
        if size > settings.max_prompt_bytes:
            return f'prompt: expected at most {settings.max_prompt_bytes} bytes, got {size}'
        try:
            talk.sampling = SamplingParams(
                max_tokens=question.max_tokens or settings.max_tokens,
                temperature=question.temperature,
                seed=self.counts.accepted,
            )
        except ValueError as error:
            return str(error)
        return ''

    def _begin(self, talk: Conversation, found: Recollection, problem: str = '') -> None:
        try:
            talk.recollection = found
            if not self._is_active:
                self._end(talk, FinishReason.REFUSED, NOT_ACTIVE)
                return
            if talk.is_cancelled:  # while the memory was searched
                self._end(talk, FinishReason.CANCELLED, '')
                return
            if not problem and len(self._running) >= self.settings.max_concurrent:
                problem = self._place(talk)
                if not problem:
                    return
            if problem:
                self._end(talk, FinishReason.REFUSED, problem)
            else:
                self._submit(talk)
        except Exception as error:  # noqa: B902, BLE001 a question is owed its end
            self._faults.note('dialogue', error)
            self._drop(talk)
            self._end(talk, FinishReason.ERROR, f'{type(error).__name__}: {error}')

    def _place(self, talk: Conversation) -> str:
        """Place a question beyond `max_concurrent`; return why that is impossible, or nothing."""
        settings = self.settings
        if settings.policy == 'refuse':
            return f'expected at most {settings.max_concurrent} goals at once, got one more'
        if settings.policy == 'supersede':
            oldest = self._running[0]
            assert oldest.request_id is not None
            self._requests.cancel(oldest.request_id, FinishReason.SUPERSEDED, 'a newer goal came')
            self._running.remove(oldest)  # its result is on its way; its place is free now
            self._submit(talk)
            return ''
        if len(self._waiting) >= settings.max_queued:
            return f'expected at most {settings.max_queued} waiting goals, got one more'
        self._waiting.append(talk)
        return ''

    def _submit(self, talk: Conversation) -> None:
        assert talk.sampling is not None
        talk.request_id = self._requests.submit(
            TaskType.DIALOGUE,
            talk.recollection.text + talk.question.prompt,
            talk.sampling,
            on_result=lambda result: self._on_result(talk, result),
            on_delta=lambda delta: self._on_delta(talk, delta),
        )
        self._running.append(talk)

    def _on_delta(self, talk: Conversation, delta: TextDelta) -> None:
        talk.text += delta.text
        talk.num_tokens = delta.num_tokens
        for sentence in talk.sentences.push(delta.text):
            self._speak(sentence)

    def _on_result(self, talk: Conversation, result: TextResult) -> None:
        self._drop(talk)
        for sentence in talk.sentences.finish():
            self._speak(sentence)
        verdict, reasons = self._records.utterance(
            result, talk.question.prompt, talk.recollection.cited
        )
        self._answer(talk, result, verdict, reasons)
        while (
            self._is_active and self._waiting and len(self._running) < self.settings.max_concurrent
        ):
            self._submit(self._waiting.popleft())

    def _drop(self, talk: Conversation) -> None:
        if talk in self._running:
            self._running.remove(talk)

    def _end(self, talk: Conversation, reason: FinishReason, message: str) -> None:
        """End a question that the engine has never seen."""
        result = TextResult(
            0,
            TaskType.DIALOGUE,
            '',
            (),
            reason,
            message,
            talk.accepted_ns,
            None,
            self._clock.now_ns(),
            None,
        )
        self._answer(talk, result)

    def _answer(
        self,
        talk: Conversation,
        result: TextResult,
        verdict: str = '',
        reasons: Sequence[str] = (),
    ) -> None:
        first_ns, counts = result.first_token_ns, self.counts
        ttft_s = math.nan if first_ns is None else (first_ns - talk.accepted_ns) * 1e-9
        reason = result.finish_reason
        if reason in (FinishReason.STOP, FinishReason.LENGTH):
            counts.succeeded += 1
            counts.newest_ttft_s = ttft_s
        elif reason is FinishReason.CANCELLED:
            counts.cancelled += 1
        else:
            counts.aborted += 1
            counts.refused += reason is FinishReason.REFUSED
        talk.listener.on_answer(Answer(result, ttft_s, talk.recollection, verdict, reasons))

    def report_text(self) -> None:
        """Tell each listener the text so far where it has grown; called after events came."""
        for talk in self._running:
            if talk.num_tokens != talk.reported_tokens:
                talk.reported_tokens = talk.num_tokens
                talk.listener.on_text(talk.text, talk.num_tokens)
