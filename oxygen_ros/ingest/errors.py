# SPDX-License-Identifier: Apache-2.0
"""What ingest raises: sensor data that must not reach the engine."""

from __future__ import annotations


class IngestError(ValueError):
    """A message is refused; the text names the field, what was expected and what came."""

    def __init__(self, field: str, expected: str, got: object) -> None:
        super().__init__(f'{field}: expected {expected}, got {got}')
        self.field = field


class ImageError(IngestError):
    """An image cannot be used as a colour image."""


class JointStateError(IngestError):
    """A joint state cannot be used as the robot's measured positions."""
