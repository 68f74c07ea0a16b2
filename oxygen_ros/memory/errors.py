# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with memory and accounts; none of it may stop the robot."""

from __future__ import annotations


class MemoryFault(Exception):
    """Base of all errors of this package that are not a caller's mistake."""


class StoreUnavailable(MemoryFault):
    """The store cannot be read or written now: full, read-only, locked; trying again may help."""


class StoreDamaged(MemoryFault):
    """The file is not a store of ours, of a newer version, or unreadable; a person must look."""


class QueryTooSlow(MemoryFault):
    """A query ran past its time limit and was stopped; a narrower one may not."""


class AuditUnavailable(MemoryFault):
    """The audit log cannot be written now; trying again may help."""
