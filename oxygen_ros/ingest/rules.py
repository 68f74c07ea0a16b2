# SPDX-License-Identifier: Apache-2.0
"""What is asked of every message before its content is looked at: when it was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ..setting import check, setting

# Stamps that go back by less are messages out of order; by more, time itself has jumped.
TIME_JUMP_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class IngestRules:
    """Settings of ingest, of joint states and images alike.

    :raises SettingError: names the parameter, what was expected and what came.
    """

    PREFIX: ClassVar[str] = 'sensors'

    future_tolerance_s: float = setting(
        0.05,
        "A stamp further ahead of the node's clock is replaced by the time of receipt",
        's',
        low=0.0,
        high=60.0,
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class CameraRules(IngestRules):
    """Settings of the ingest of images."""

    frozen_after_s: float = setting(
        2.0,
        'A camera whose pixels do not change for longer counts as lost, even if its stamps are '
        'fresh; 0: never (for simulated cameras, which have no noise)',
        's',
        low=0.0,
        high=3600.0,
    )


@dataclass(slots=True)
class MessageCounts:
    """What became of the messages of a topic."""

    received: int = 0
    refused: int = 0  # nothing could be made of it
    newest_problem: str = ''


class Receipt(NamedTuple):
    """When a message came."""

    steady_ns: int
    offset_ns: int  # ROS time minus steady time at that moment


class Stamp(NamedTuple):
    """When the content of a message was measured."""

    stamp_ns: int  # ROS time
    steady_ns: int  # the same on the steady clock, never later than the receipt
    replaced: bool  # the message's own could not be meant


def trusted_stamp(stamp_ns: int, receipt: Receipt, future_tolerance_ns: int) -> Stamp:
    """Return a message's stamp, or the time of receipt where it is zero or in the future.

    What lies ahead by less than the tolerance keeps its stamp, but is not younger than new: a
    latency is never negative.
    """
    receipt_ns = receipt.steady_ns + receipt.offset_ns
    if stamp_ns <= 0 or stamp_ns > receipt_ns + future_tolerance_ns:
        return Stamp(receipt_ns, receipt.steady_ns, True)
    return Stamp(stamp_ns, min(stamp_ns - receipt.offset_ns, receipt.steady_ns), False)
