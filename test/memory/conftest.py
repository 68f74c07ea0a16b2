# SPDX-License-Identifier: Apache-2.0
"""Small formats, vocabularies and provenances for the memory tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from writer_place import Place, RETRY_S

from oxygen_ros.memory.audit.audit_chain import AuditContext
from oxygen_ros.memory.scene.scene_format import SceneFormat
from oxygen_ros.memory.scene.scene_grammar import SceneGrammar
from oxygen_ros.memory.scene.token_constraint import ConstrainedVocabulary
from oxygen_ros.runtime.memory_writer import MemoryWriter
from oxygen_ros.types import Provenance

MakeProvenance = Callable[..., Provenance]


@pytest.fixture(scope='session')
def byte_vocabulary() -> ConstrainedVocabulary:
    """256 byte tokens, then begin, end and padding, in logits of width 264."""
    return ConstrainedVocabulary([bytes([byte]) for byte in range(256)] + [None] * 3, 257, 264)


@pytest.fixture(scope='session')
def scene_format() -> SceneFormat:
    """Three cameras, everything else by default."""
    return SceneFormat(('front', 'left', 'wrist'))


@pytest.fixture(scope='session')
def scene_grammar(
    scene_format: SceneFormat, byte_vocabulary: ConstrainedVocabulary
) -> SceneGrammar:
    """Compile the grammar for byte tokens."""
    return SceneGrammar(scene_format, byte_vocabulary, 512)


@pytest.fixture(scope='session')
def make_provenance() -> MakeProvenance:
    """Return a maker of provenances that name two cameras."""

    def make(
        observation_id: int = 1,
        stamp_ns: int = 1_000,
        cameras: tuple[str, ...] = ('front', 'left'),
    ) -> Provenance:
        return Provenance(
            observation_id,
            stamp_ns,
            cameras,
            (stamp_ns,) * len(cameras),
            stamp_ns,
            'c0ffee' * 10 + 'c0ff',
        )

    return make


@pytest.fixture
def audit_context() -> AuditContext:
    """Return a model, a parameter set and a version."""
    return AuditContext('c0ffee' * 10 + 'c0ff', 'ab' * 32, '0.1.0')


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return an empty place for a memory writer."""
    return Place(tmp_path)


@pytest.fixture
def writer(place: Place) -> Iterator[MemoryWriter]:
    """Return a memory writer that runs."""
    writer = MemoryWriter(place.open_store, place.open_audit, retry_s=RETRY_S)
    writer.start()
    yield writer
    writer.stop()
