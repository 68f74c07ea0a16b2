# SPDX-License-Identifier: Apache-2.0
"""What the facts say of what the robot says or remembers.

A verdict is `supported` only where a fact says the same, `contradicted` only where a fact excludes
it; everything else is `unverified`. Facts exclude

- another number than theirs, beyond the tolerance (a tenth of the value where it was said to be
  rough), of the same kind of quantity;
- another word for an attribute: a cup whose colour is red is not blue;
- another place: what is on the table is not on the shelf, unless the table is; what is in the box
  is not in the drawer that facts name as a place, unless the box is;
- the reverse of a relation: what is left of the box is not right of it, nor is the box left of it.

What is on, or in, something that is in the kitchen is in the kitchen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ...types import SceneObject, SceneUpdate
from ..episodes.words import quantity, spread
from ..scene.vocabulary import SceneVocabulary
from .facts import Fact, Facts
from .statements import Claim, read_sentence, sentences

INVERSE = {
    'on': 'under',
    'under': 'on',
    'left_of': 'right_of',
    'right_of': 'left_of',
    'behind': 'in_front_of',
    'in_front_of': 'behind',
    'near': 'near',
}
RELATIONS = (*INVERSE, 'in', 'holding')
PLACES = ('on', 'in')
ROUGH = 0.1


class Verdict(str, Enum):
    """What the facts say of a claim."""

    SUPPORTED = 'supported'
    CONTRADICTED = 'contradicted'
    UNVERIFIED = 'unverified'


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict with its reason."""

    verdict: Verdict
    text: str  # the sentence, or what was remembered
    source: str = ''  # of the fact that decided; empty: none did

    def __str__(self) -> str:
        return f'{self.verdict.value}: {self.text}' + (f' [{self.source}]' if self.source else '')


@dataclass(frozen=True, slots=True)
class Grounding:
    """The verdict on a whole text."""

    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """Contradicted if anything in it is; supported only if all of it is."""
        return overall(finding.verdict for finding in self.findings)


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on several claims together."""
    found = set(verdicts)
    if Verdict.CONTRADICTED in found:
        return Verdict.CONTRADICTED
    return Verdict.SUPPORTED if found == {Verdict.SUPPORTED} else Verdict.UNVERIFIED


class GroundingCheck:
    """Checks texts and scenes against facts. May be called by any thread."""

    def __init__(self, facts: Facts, vocabulary: SceneVocabulary) -> None:
        self._facts = facts
        self._vocabulary = vocabulary
        self._containers = {
            value
            for fact in facts.facts
            if fact.attribute == 'in' and isinstance(fact.value, tuple)
            for value in fact.value
        }
        self._entities = facts.entities | set(vocabulary.labels)

    def check_text(self, text: str) -> Grounding:
        """Check every sentence of a text; one that cannot be read is unverified."""
        return Grounding(
            tuple(
                self._check(sentence, read_sentence(sentence, self._entities))
                for sentence in sentences(text)
            )
        )

    def check_scene(self, update: SceneUpdate) -> dict[int, Finding]:
        """Check every object of a scene with its relations; findings by object id."""
        objects = {known.object_id: known for known in update.objects}
        claims = {
            object_id: [Claim(known.label, '', word) for word in known.attributes]
            for object_id, known in objects.items()
        }
        for edge in update.relations:
            if edge.subject_id in objects and edge.object_id in objects:
                claims[edge.subject_id].append(
                    Claim(
                        objects[edge.subject_id].label,
                        edge.predicate,
                        objects[edge.object_id].label,
                    )
                )
        return {
            object_id: self._check(_described(known), claims[object_id])
            for object_id, known in objects.items()
        }

    def _check(self, text: str, claims: list[Claim]) -> Finding:
        results = [self._check_claim(claim) for claim in claims]
        verdict = overall(verdict for verdict, _ in results)
        source = next((fact.source for found, fact in results if fact and found is verdict), '')
        return Finding(verdict, text, source)

    def _check_claim(self, claim: Claim) -> tuple[Verdict, Fact | None]:
        verdict, fact = self._look_up(self._named(claim))
        if claim.is_negated and verdict is not Verdict.UNVERIFIED:
            verdict = (
                Verdict.SUPPORTED if verdict is Verdict.CONTRADICTED else Verdict.CONTRADICTED
            )
        return verdict, fact

    def _named(self, claim: Claim) -> Claim:
        """Find out which attribute a word is a value of."""
        value = str(claim.value)
        if claim.attribute:
            return claim
        if self._facts.about(claim.entity, value):
            return replace(claim, attribute=value, value='true')
        return replace(
            claim, attribute=(self._vocabulary.group_of(value) or self._facts.attribute_of(value))
        )

    def _look_up(self, claim: Claim) -> tuple[Verdict, Fact | None]:
        if claim.attribute in RELATIONS and isinstance(claim.value, str):
            return self._look_up_relation(claim.entity, claim.attribute, claim.value)
        verdicts = [
            (_compare(claim, fact), fact)
            for fact in self._facts.about(claim.entity, claim.attribute)
        ]
        for wanted in (Verdict.SUPPORTED, Verdict.CONTRADICTED):
            for verdict, fact in verdicts:
                if verdict is wanted:
                    return verdict, fact
        return Verdict.UNVERIFIED, None

    def _look_up_relation(
        self, subject: str, predicate: str, other: str
    ) -> tuple[Verdict, Fact | None]:
        same = self._relation(subject, predicate, other)
        if same is not None:
            return Verdict.SUPPORTED, same
        # 'near' is its own reverse; it excludes nothing.
        against = self._relation(other, predicate, subject) if predicate != 'near' else None
        if against is None and predicate in PLACES:
            return self._look_up_place(subject, predicate, other)
        return (Verdict.CONTRADICTED, against) if against else (Verdict.UNVERIFIED, None)

    def _look_up_place(
        self, subject: str, predicate: str, other: str
    ) -> tuple[Verdict, Fact | None]:
        chain = self._chain(subject)
        if other in chain:
            # On the tray that is on the table: on the table or not, as one likes to say it.
            return (Verdict.SUPPORTED if predicate == 'in' else Verdict.UNVERIFIED), chain[other]
        known = self._facts.about(subject, predicate)
        if known and (predicate == 'on' or other in self._containers):
            return Verdict.CONTRADICTED, known[0]
        return Verdict.UNVERIFIED, None

    def _chain(self, subject: str) -> dict[str, Fact]:
        """Return all places that a thing is on or in, one within the other, with the last fact."""
        chain: dict[str, Fact] = {}
        waiting = [subject]
        while waiting:
            thing = waiting.pop()
            for fact in (fact for place in PLACES for fact in self._facts.about(thing, place)):
                # Of several places that may be right, none is certain to lead on.
                if isinstance(fact.value, tuple) and len(fact.value) == 1:
                    if fact.value[0] not in chain:
                        waiting.append(fact.value[0])
                    chain.setdefault(fact.value[0], fact)
        return chain

    def _relation(self, subject: str, predicate: str, other: str) -> Fact | None:
        """Return a fact that states a relation, in either direction."""
        ways = [(subject, predicate, other)]
        if predicate in INVERSE:
            ways.append((other, INVERSE[predicate], subject))
        for one, attribute, value in ways:
            for fact in self._facts.about(one, attribute):
                if isinstance(fact.value, tuple) and value in fact.value:
                    return fact
        return None


def _described(known: SceneObject) -> str:
    return ' '.join([*known.attributes, known.label])


def _compare(claim: Claim, fact: Fact) -> Verdict:
    if isinstance(fact.value, tuple):
        if not isinstance(claim.value, str):
            return Verdict.UNVERIFIED
        return Verdict.SUPPORTED if claim.value in fact.value else Verdict.CONTRADICTED
    if isinstance(claim.value, str):
        return Verdict.UNVERIFIED
    said, known = quantity(claim.value, claim.unit), quantity(fact.value, fact.unit)
    if said is None or known is None or said.measure != known.measure:
        return Verdict.UNVERIFIED
    if claim.at_least:
        agrees = known.value >= said.value
    else:
        tolerance = spread(fact.tolerance, fact.unit)
        if claim.is_about:
            tolerance = max(tolerance, ROUGH * abs(known.value))
        agrees = abs(said.value - known.value) <= tolerance + 1e-9 * (1.0 + abs(known.value))
    return Verdict.SUPPORTED if agrees else Verdict.CONTRADICTED


def flagged(findings: Mapping[int, Finding]) -> dict[int, str]:
    """Return the verdicts by object id, as the store and the message take them."""
    return {object_id: finding.verdict.value for object_id, finding in findings.items()}
