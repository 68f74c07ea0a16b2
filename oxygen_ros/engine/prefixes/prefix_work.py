# SPDX-License-Identifier: Apache-2.0
"""Building a perceptual prefix in slices: cameras through vision, then prefill by layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ...types import Observation
from ..attention import MaskKind, Span
from ..kv.prefix import PrefixBuilder
from ..model_runner import ModelRunner
from ..scheduling.work import Rank, UnitKey, UnitKind
from .input_hash import ImageHash, input_hash


class FeatureCache:
    """Vision features of each camera's last image.

    A camera whose image has not changed since the last observation is not encoded again. The key
    is camera and stamp, so the features are exactly those of the image.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._features: dict[str, tuple[tuple[str, int], Tensor]] = {}

    def get(self, key: tuple[str, int]) -> Tensor | None:
        """Return the features of an image, [tokens_per_image, width], or None."""
        entry = self._features.get(key[0])
        return entry[1] if entry is not None and entry[0] == key else None

    def put(self, key: tuple[str, int], features: Tensor) -> None:
        """Keep the features of a camera's newest image, in place of its last one."""
        if self._enabled:
            self._features[key[0]] = (key, features)

    def clear(self) -> None:
        """Forget all: clocks of cameras jumped, so a stamp may come again with other pixels."""
        self._features.clear()


class PrefixWork:
    """The work from an observation to the K/V of its prefix.

    :param rank: PREFIX for the shared one; a text request's own (isolated caches) runs at the
        request's rank.
    :param complete: called once at the end; registers the prefix.
    :param hashed: note the hash of the inputs in the provenance.
    """

    def __init__(
        self,
        runner: ModelRunner,
        features: FeatureCache,
        observation: Observation,
        prompt_tokens: tuple[int, ...],
        builder: PrefixBuilder,
        complete: Callable[[PrefixWork], None],
        rank: Rank = Rank.PREFIX,
        hashed: bool = False,
    ) -> None:
        self.observation = observation
        self.builder = builder
        self.arrived_ns = observation.steady_ns
        self._runner = runner
        self._features = features
        self.rank = rank
        self._prompt_tokens = prompt_tokens
        self._complete = complete
        self._pending = list(observation.frames)
        # One after another, before the images go to the model
        self._hashes = [ImageHash(frame) for frame in observation.frames] if hashed else []
        self._encoded: list[Tensor] = []
        self._image: Tensor | None = None  # preprocessed, waiting for the vision tower
        self._hidden: Tensor | None = None
        self._layer = 0
        self._done = False
        self._num_tokens = len(observation.frames) * runner.spec.tokens_per_image + len(
            prompt_tokens
        )
        self._positions = runner.positions(0, self._num_tokens)
        self._plan = runner.plan(
            [
                Span(
                    num_tokens=self._num_tokens,
                    prefix_block=0,
                    prefix_tokens=0,
                    block_table=builder.block_table,
                    num_own=0,
                    mask=MaskKind.BIDIRECTIONAL,
                )
            ]
        )
        self._attend = runner.attend(self._plan)

    def next_unit(self) -> UnitKey | None:
        if self._done:
            return None
        if (image_hash := self._unfinished_hash) is not None:
            return UnitKey(UnitKind.HASH, image_hash.next_bytes)
        if self._image is not None:
            return UnitKey(UnitKind.VISION, self._runner.spec.tokens_per_image)
        if self._pending:
            return UnitKey(UnitKind.INGEST, self._pending[0].image.size)
        return UnitKey(
            UnitKind.WRITE_KV if self._at_last_layer else UnitKind.PREFILL, self._num_tokens
        )

    @property
    def _unfinished_hash(self) -> ImageHash | None:
        return next((one for one in self._hashes if not one.is_done), None)

    @property
    def _at_last_layer(self) -> bool:
        return self._layer == self._runner.spec.num_layers - 1

    def run_unit(self) -> None:
        assert not self._done
        if (image_hash := self._unfinished_hash) is not None:
            self._runner.counters.units[UnitKind.HASH] += 1
            image_hash.update()
        elif self._image is not None:
            self._encode(self._image)
        elif self._pending:
            self._ingest()
        else:
            self._prefill_layer()

    def _ingest(self) -> None:
        frame = self._pending[0]
        features = self._features.get(frame.key)
        if features is None:
            self._image = self._runner.preprocess(frame)
        else:
            self._runner.counters.images_reused += 1
            self._encoded.append(features)
            self._pending.pop(0)

    def _encode(self, image: Tensor) -> None:
        frame = self._pending.pop(0)
        features = self._runner.encode_image(image)
        self._runner.ledger.encoded(frame.key)
        self._features.put(frame.key, features)
        self._encoded.append(features)
        self._image = None

    def _prefill_layer(self) -> None:
        if self._hidden is None:
            parts = list(self._encoded)
            if self._prompt_tokens:
                parts.append(self._runner.embed(self._prompt_tokens))
            self._hidden = torch.cat(parts)  # [num_tokens, width]
        if not self._at_last_layer:
            self._hidden = self._runner.layer(
                UnitKind.PREFILL, self._layer, self._hidden, self._positions, self._attend
            )
            self._layer += 1
            return
        self._runner.write_layer(self._layer, self._hidden, self._positions, self._plan)
        self._done = True
        self._hidden = None
        self._encoded.clear()
        self._runner.counters.prefills += 1
        if self._hashes:
            self._note_hash()
        self._complete(self)

    def _note_hash(self) -> None:
        digests = (image_hash.hexdigest() for image_hash in self._hashes)
        self.builder.provenance = replace(
            self.builder.provenance,
            prefix_hash=input_hash(
                self.builder.provenance.model_checksum,
                zip(self.observation.frames, digests),
                self._prompt_tokens,
            ),
        )
