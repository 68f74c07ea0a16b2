# SPDX-License-Identifier: Apache-2.0
"""What the node keeps on disk, and by which facts it checks, from the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...memory.audit.audit_log import AuditRules
from ...memory.episodes.connection import StoreRules


@dataclass(frozen=True, slots=True)
class RecordSettings:
    """Store, audit log and facts; an empty path: there is none."""

    store_file: str
    store_rules: StoreRules
    recall_tokens: int  # 0: nothing of the store goes into a prompt
    facts_file: str
    audit_folder: str
    audit_fsync: str
    audit_fsync_interval_s: float
    audit_key_file: str

    def audit_rules(self, key: bytes | None) -> AuditRules:
        """Return the rules of the log, with its key."""
        return AuditRules(self.audit_fsync, self.audit_fsync_interval_s, key=key)


def record_settings(reader: Mapping[str, Any]) -> RecordSettings:
    """Read the parameters.

    :raises ValueError: names the field, what was expected and what came.
    """
    return RecordSettings(
        store_file=reader['memory.store_file'],
        store_rules=StoreRules(
            max_bytes=reader['memory.retention_bytes'],
            max_age_s=reader['memory.retention_age_s'],
            chunk_max_age_s=reader['memory.retention_chunk_age_s'],
        ),
        recall_tokens=reader['memory.recall_tokens'],
        facts_file=reader['memory.facts_file'],
        audit_folder=reader['audit.file'],
        audit_fsync=reader['audit.fsync'],
        audit_fsync_interval_s=reader['audit.fsync_interval_s'],
        audit_key_file=reader['audit.key_file'],
    )
