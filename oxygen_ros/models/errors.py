# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a checkpoint."""

from ..errors import OxygenError


class CheckpointError(OxygenError, ValueError):
    """A checkpoint cannot be used; the message says where, what was expected and what came."""
