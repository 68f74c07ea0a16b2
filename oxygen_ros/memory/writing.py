# SPDX-License-Identifier: Apache-2.0
"""How writing to store and audit log goes."""

from __future__ import annotations

from dataclasses import dataclass

from .audit.audit_chain import Link


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """How writing goes."""

    is_ok: bool
    fault: str  # why not; empty when it is
    num_waiting: int
    num_written: int
    num_rejected: int  # could not be written, whatever the disk
    rejection: str  # why the newest of these; empty: none
    num_dropped: dict[str, int]  # for want of room, by kind


@dataclass(frozen=True, slots=True)
class WriterStatus:
    """How writing goes, for diagnostics; None: not configured."""

    store: SinkStatus | None
    audit: SinkStatus | None
    audit_head: Link | None  # noted elsewhere, it proves the log up to it

    @property
    def is_ok(self) -> bool:
        """Whether everything that is configured can be written."""
        return all(sink is None or sink.is_ok for sink in (self.store, self.audit))
