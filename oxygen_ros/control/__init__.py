# SPDX-License-Identifier: Apache-2.0
"""Control: from action chunks to one bounded target per tick. numpy only; no ROS, no threads."""

from . import hold_reasons
from .action_space import ActionSpace, parse_action_spaces
from .arming import Arming, ArmReply, ArmState, ArmView
from .cadence import Cadence
from .chunk_buffer import ChunkBuffer, ChunkCounts, Sample
from .clock import Clock, SteadyClock
from .limit_settings import LimitSettings, LimitSource
from .limits import ActuationMode, JointLimits, Limiter
from .realtime import apply_to_process, apply_to_thread, RealtimeSettings, release_process
from .realtime_report import RealtimeItem, RealtimeReport
from .robot_description import limits_of_description
from .statistics import TickFigures, TickStatistics
from .tick import ControlTick, Decision
from .tick_config import TickConfig

__all__ = [
    'ActionSpace',
    'ActuationMode',
    'ArmReply',
    'ArmState',
    'ArmView',
    'Arming',
    'Cadence',
    'ChunkBuffer',
    'ChunkCounts',
    'Clock',
    'ControlTick',
    'Decision',
    'JointLimits',
    'LimitSettings',
    'LimitSource',
    'Limiter',
    'RealtimeItem',
    'RealtimeReport',
    'RealtimeSettings',
    'Sample',
    'SteadyClock',
    'TickConfig',
    'TickFigures',
    'TickStatistics',
    'apply_to_process',
    'apply_to_thread',
    'hold_reasons',
    'limits_of_description',
    'parse_action_spaces',
    'release_process',
]
