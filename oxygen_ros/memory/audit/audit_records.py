# SPDX-License-Identifier: Apache-2.0
"""How what happened becomes records of the audit log, and how it is found there again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
import hashlib
import json
from pathlib import Path
from typing import Any

from ...types import ActionChunk, Provenance, SceneUpdate, TextResult
from .audit_chain import AuditContext, AuditRecord, plain
from .audit_verify import read_records


def parameters_hash(parameters: Mapping[str, object]) -> str:
    """Return SHA-256 over a parameter set, whatever order it comes in."""
    text = json.dumps(plain(parameters), sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


def observed(provenance: Provenance | None) -> dict[str, object] | None:
    """Return the observation behind a result, as records name it."""
    if provenance is None:
        return None
    return {
        'id': provenance.observation_id,
        'stamp_ns': provenance.stamp_ns,
        'cameras': dict(zip(provenance.cameras, provenance.camera_stamps_ns)),
        'state_stamp_ns': provenance.state_stamp_ns,
    }


def _prefix_hash(provenance: Provenance | None) -> str:
    return '' if provenance is None else provenance.prefix_hash


def chunk_record(chunk: ActionChunk, context: AuditContext) -> AuditRecord:
    """Return the record of an action chunk; its values are bound by their hash."""
    body = {
        'chunk_id': chunk.chunk_id,
        'epoch': chunk.epoch,
        'shape': list(chunk.values.shape),
        'values_sha256': hashlib.sha256(chunk.values.astype('<f4').tobytes()).hexdigest(),
        'step_ns': chunk.step_ns,
        'pass_us': (chunk.pass_ended_ns - chunk.pass_started_ns) // 1_000,
        'inference_delay_us': chunk.inference_delay_ns // 1_000,
    }
    return AuditRecord(
        'chunk',
        chunk.start_stamp_ns,
        body,
        observed(chunk.provenance),
        _prefix_hash(chunk.provenance),
        context,
    )


def utterance_record(
    result: TextResult,
    stamp_ns: int,
    context: AuditContext,
    verdict: str = '',
    reasons: Sequence[str] = (),
    cited: Sequence[int] = (),
) -> AuditRecord:
    """Return the record of what was said, with what the facts say of it.

    :param stamp_ns: ROS time at the end of the request.
    """
    body = {
        'request_id': result.request_id,
        'text': result.text,
        'finish_reason': result.finish_reason.value,
        'message': result.message,
        'num_tokens': len(result.tokens),
        'verdict': verdict,
        'reasons': list(reasons[:16]),
        'cited': list(cited[:64]),
    }
    return AuditRecord(
        'utterance',
        stamp_ns,
        body,
        observed(result.provenance),
        _prefix_hash(result.provenance),
        context,
    )


def scene_record(
    update: SceneUpdate,
    text: str,
    context: AuditContext,
    verdicts: Mapping[int, str] | None = None,
) -> AuditRecord:
    """Return the record of a scene update: what the model wrote, and what it was merged to."""
    # The graph itself is long and in the store; its hash binds what was answered from it.
    graph = [
        [
            known.object_id,
            known.label,
            list(known.attributes),
            known.camera,
            plain(known.box_px),
            known.frame_id,
            plain(known.position_m),
        ]
        for known in update.objects
    ]
    edges = [[edge.subject_id, edge.predicate, edge.object_id] for edge in update.relations]
    digest = hashlib.sha256(json.dumps([graph, edges]).encode()).hexdigest()
    body = {
        'update_id': update.update_id,
        'text': text,
        'num_objects': len(graph),
        'num_relations': len(edges),
        'graph_sha256': digest,
        'verdicts': {
            str(key): verdict
            for key, verdict in list((verdicts or {}).items())[:256]
            if verdict == 'contradicted'
        },
    }
    return AuditRecord(
        'scene',
        update.stamp_ns,
        body,
        observed(update.provenance),
        _prefix_hash(update.provenance),
        context,
    )


def event_record(kind: str, stamp_ns: int, context: AuditContext, **body: object) -> AuditRecord:
    """Return the record of an instruction, a change of parameters or of mode, or a fault."""
    return AuditRecord(kind, stamp_ns, body, None, '', context)


def find_records(
    paths: Iterable[Path],
    key: bytes | None = None,
    *,
    observation_id: int | None = None,
    chunk_id: int | None = None,
    kind: str = '',
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield records that match all that is given, each with the run that it belongs to.

    A run is named by the segment that it began with; ids count from 1 in each. Only records
    before the first bad one of a file are looked at: verify first.

    :raises OSError: a file cannot be read.
    """
    run = 0
    for path in paths:
        for fields in read_records(path, key):
            body = fields.get('body') or {}
            if fields.get('kind') == 'segment' and body.get('starts_run'):
                run = body.get('segment', 0)
            observation = fields.get('observation') or {}
            if (
                (observation_id is None or observation.get('id') == observation_id)
                and (chunk_id is None or body.get('chunk_id') == chunk_id)
                and kind in ('', fields.get('kind'))
            ):
                yield run, fields
