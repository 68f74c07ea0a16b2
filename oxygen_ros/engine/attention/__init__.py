# SPDX-License-Identifier: Apache-2.0
"""Heterogeneous paged attention: shared prefix, own pages, one ragged batch."""

from .base import AttentionBackend, AttentionPlan, MaskKind, Span
from .merge import merge_out
from .reference import ReferenceBackend
from .registry import backend_names, create_backend, register
from .sdpa import SdpaBackend
from .static import static_plan, StaticBackend

__all__ = [
    'AttentionBackend',
    'AttentionPlan',
    'MaskKind',
    'ReferenceBackend',
    'SdpaBackend',
    'Span',
    'StaticBackend',
    'backend_names',
    'create_backend',
    'merge_out',
    'register',
    'static_plan',
]
