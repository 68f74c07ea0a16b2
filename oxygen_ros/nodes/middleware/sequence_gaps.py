# SPDX-License-Identifier: Apache-2.0
"""Messages that were published and never came, by the numbers that the middleware gives them.

Upstream: no issue known. The event MESSAGE_LOST does not count what a newer message replaced in a
queue of depth one, and it would cost an event handler (`endpoints.py`). Seen with rmw_fastrtps
9.3.3. It may go when rclpy counts for a subscription what it took and what came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A publisher that starts again counts from one; several on one topic jump to and fro.
_LARGEST_GAP = 1000


class SequenceGaps:
    """Counts what a subscription of depth one missed: replaced by a newer one, or lost on the way.

    Says nothing where the middleware numbers no messages.
    """

    def __init__(self) -> None:
        self.missed = 0
        self._newest: int | None = None

    def take(self, info: Mapping[str, Any]) -> None:
        """Look at the number of a message.

        :param info: rclpy's `MessageInfo`.
        """
        number = info.get('publication_sequence_number')
        if number is None:
            return
        if self._newest is not None and 1 < number - self._newest <= _LARGEST_GAP:
            self.missed += number - self._newest - 1
        self._newest = number
