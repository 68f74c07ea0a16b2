# SPDX-License-Identifier: Apache-2.0
"""Which observations show a place that looks like another's, by their embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import heapq
import sqlite3

import numpy as np

from ...types import FloatArray

NUM_NEAR = 16  # observations that a query by place looks at
_BATCH = 1_024  # embeddings compared at once
_MAX_BYTES = 256 << 20  # of embeddings that one search reads, the newest


@dataclass(frozen=True, slots=True, order=True)
class NearPlace:
    """An observation whose place looks like the one that was asked for."""

    similarity: float  # cosine, -1 to 1
    row: int  # of the observation in the store; counts up with time
    run: int
    observation_id: int
    stamp_ns: int  # ROS time


def nearest_places(
    connection: sqlite3.Connection,
    run: int,
    observation_id: int,
    num_places: int = NUM_NEAR,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> list[NearPlace]:
    """Return the observations whose place is most like that of one, the likest first.

    The one itself is among them where it lies in the time asked for. Embeddings compare within
    one model alone, so those of other weights are left out.

    :param start_ns: only observations at or after this (ROS time).
    :param end_ns: only observations at or before this (ROS time).
    :return: empty where the observation is unknown or has no place.
    """
    asked = connection.execute(
        'SELECT place, model_checksum FROM observation WHERE run = ? AND observation_id = ? '
        'AND place IS NOT NULL',
        (run, observation_id),
    ).fetchone()
    if asked is None or not asked['place']:
        return []
    vector = _unit(np.frombuffer(asked['place'], dtype='<f4')[None])[0]
    cursor = connection.cursor()
    cursor.row_factory = None  # plain tuples: there may be very many
    rows = cursor.execute(
        'SELECT id, place FROM observation '
        'WHERE length(place) = ? AND model_checksum = ? AND stamp_ns BETWEEN ? AND ? '
        'ORDER BY id DESC LIMIT ?',
        (
            len(asked['place']),
            asked['model_checksum'],
            -(2**63) if start_ns is None else start_ns,
            2**63 - 1 if end_ns is None else end_ns,
            _MAX_BYTES // len(asked['place']),
        ),
    )
    likest = heapq.nlargest(num_places, _likest(rows, vector, num_places))
    return [
        NearPlace(similarity, row, *found)
        for similarity, row in likest
        for found in connection.execute(  # none: retention has just let it go
            'SELECT run, observation_id, stamp_ns FROM observation WHERE id = ?', (row,)
        )
    ]


def _likest(
    rows: sqlite3.Cursor, vector: FloatArray, num_places: int
) -> Iterator[tuple[float, int]]:
    """Yield the likest of each batch; the others cannot be among the likest of all."""
    while batch := rows.fetchmany(_BATCH):
        ids, blobs = zip(*batch)
        similarity = _unit(np.frombuffer(b''.join(blobs), '<f4').reshape(len(ids), -1)) @ vector
        for index in np.argsort(-similarity, kind='stable')[:num_places]:
            yield float(similarity[index]), ids[index]


def _unit(places: FloatArray) -> FloatArray:
    length = np.linalg.norm(places, axis=1, keepdims=True)
    unit: FloatArray = places / np.maximum(length, np.float32(1e-12))
    return unit
