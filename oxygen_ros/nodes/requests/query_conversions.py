# SPDX-License-Identifier: Apache-2.0
"""Between the service ~/query_memory and the store's own queries and entries."""

from __future__ import annotations

import json
from typing import Any

from builtin_interfaces.msg import Time

import oxygen_ros.msg as msg

from ...memory.episodes.query import MemoryQuery, Region
from ...memory.episodes.reader import MemoryEntry
from ...memory.episodes.records import EntryKind
from ...robot.messages import node_message, provenance_message
from ..messages import make_message, ns_of, stamp_of

_DEFAULT_LIMIT = 20


def query_of(request: Any) -> MemoryQuery:
    """Return what is asked for.

    :raises ValueError: names the field, what was expected and what came.
    """
    kinds = {kind.name.lower(): kind for kind in EntryKind}
    if request.kind and request.kind not in kinds:
        raise ValueError(f'kind: expected one of {", ".join(kinds)}, got {request.kind!r:.80}')
    region = None
    if request.frame_id or request.camera or request.region_low or request.region_high:
        region = Region(
            tuple(request.region_low), tuple(request.region_high), request.frame_id, request.camera
        )
    place = None
    if request.place_observation:
        place = (request.place_run, request.place_observation)
    return MemoryQuery(
        words=request.words,
        kind=kinds.get(request.kind),
        label=request.label,
        predicate=request.predicate,
        other_label=request.other_label,
        region=region,
        place=place,
        start_ns=_time(request.start),
        end_ns=_time(request.end),
        limit=request.limit or _DEFAULT_LIMIT,
        before=request.before or None,
    )


def _time(stamp: Time) -> int | None:
    return ns_of(stamp) or None


def entry_message(entry: MemoryEntry) -> msg.MemoryEntry:
    """Return an entry."""
    known = entry.scene_object
    return msg.MemoryEntry(
        citation=entry.citation,
        kind=entry.kind.name.lower(),
        first=stamp_of(entry.first_ns),
        last=stamp_of(entry.last_ns),
        text=entry.text,
        detail=json.dumps(entry.detail, ensure_ascii=False),
        verdict=entry.verdict,
        run=entry.run,
        provenance=provenance_message(make_message, entry.provenance),
        nodes=[] if known is None else [node_message(make_message, known, entry.verdict)],
    )
