# SPDX-License-Identifier: Apache-2.0
"""The hash of what a prefix is computed from: what it covers, and that it fits into slices."""

from dataclasses import replace
import hashlib

from harness import FakeSensors, Harness, tiny
import numpy as np
import pytest

from oxygen_ros.engine.prefixes.input_hash import ImageHash, input_hash, PIECE_BYTES
from oxygen_ros.engine.scheduling.work import UnitKind
from oxygen_ros.engine.spec import PrefixScope
from oxygen_ros.types import CameraFrame, TaskType

FRAME = CameraFrame('front', 5, 7, np.arange(48, dtype=np.uint8).reshape(4, 4, 3))


def expected(harness, observation_id, prompt=()):
    """What an auditor computes from the images alone."""
    frames = harness.sensors.make(observation_id, 0).frames
    return input_hash(
        harness.model.checksum,
        [(frame, hashlib.sha256(frame.image.tobytes()).hexdigest()) for frame in frames],
        prompt,
    )


def test_chunks_and_texts_carry_the_hash_of_their_own_images():
    harness = Harness(sensors=FakeSensors(2), hash_inputs=True)
    harness.ask('question', max_tokens=3)
    harness.ask('scene', max_tokens=3, task=TaskType.SCENE_GRAPH)
    harness.finish_text().run(15)
    found = {
        chunk.provenance.observation_id: chunk.provenance.prefix_hash for chunk in harness.chunks
    }
    assert len(found) >= 3 and len(set(found.values())) == len(found)
    for observation_id, digest in found.items():
        assert digest == expected(harness, observation_id)
    for result in harness.results.values():
        assert result.provenance.prefix_hash == expected(harness, result.provenance.observation_id)


def test_the_prompt_within_the_prefix_is_covered():
    harness = Harness(tiny(scope=PrefixScope.OBSERVATION_PROMPT), hash_inputs=True)
    harness.engine.set_instruction('wave')
    harness.run_until(lambda: harness.chunks)
    provenance = harness.chunks[0].provenance
    assert provenance.prefix_hash == expected(
        harness, provenance.observation_id, harness.model.prefix_prompt('wave', None)
    )
    assert provenance.prefix_hash != expected(harness, provenance.observation_id)


def test_nothing_is_hashed_unless_asked_for():
    harness = Harness().run(10)
    assert harness.chunks and not harness.engine.counters.units[UnitKind.HASH]
    assert {chunk.provenance.prefix_hash for chunk in harness.chunks} == {''}


def test_a_large_image_is_hashed_in_pieces_that_are_units():
    class LargeSensors(FakeSensors):
        def image(self, observation_id, camera):
            return np.full((1000, 1200, 3), 40 * camera, dtype=np.uint8)

    harness = Harness(sensors=LargeSensors(2, num_observations=1), hash_inputs=True)
    pieces = -(-1000 * 1200 * 3 // PIECE_BYTES)
    assert pieces == 4
    harness.engine.scheduler._micro_slice_ns = 1  # one unit a slice
    harness.run_until(lambda: harness.chunks)
    assert harness.engine.counters.units[UnitKind.HASH] == 2 * pieces
    assert harness.chunks[0].provenance.prefix_hash == expected(harness, 1)


def hash_of(frame):
    """Return the hash of an image, piece by piece."""
    pieces = ImageHash(frame)
    while not pieces.is_done:
        pieces.update()
    return pieces.hexdigest()


@pytest.mark.parametrize(
    'other',
    [
        replace(FRAME, camera='left'),
        replace(FRAME, image=FRAME.image.reshape(2, 8, 3)),
        replace(FRAME, image=FRAME.image ^ np.uint8(1)),
    ],
    ids=['camera', 'shape', 'pixels'],
)
def test_it_tells_what_the_model_can_see_and_no_stamps(other):
    def digest(frame, checksum='sum', prompt=()):
        return input_hash(checksum, [(frame, hash_of(frame))], prompt)

    assert digest(other) != digest(FRAME)
    assert digest(FRAME, 'other') != digest(FRAME) != digest(FRAME, prompt=(1,))
    assert digest(replace(FRAME, stamp_ns=6)) == digest(FRAME)


def test_an_image_that_is_a_view_is_hashed_as_it_is_seen():
    view = replace(FRAME, image=FRAME.image[:, ::-1])
    assert hash_of(view) == hashlib.sha256(view.image.tobytes()).hexdigest()
