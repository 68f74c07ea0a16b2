"""Control: from action chunks to one bounded target per tick. numpy only; no ROS, no threads."""
from . import hold_reasons
from .arming import Arming, ArmReply, ArmState, ArmView
from .cadence import Cadence
from .chunk_buffer import ChunkBuffer, ChunkCounts, Sample
from .clock import Clock, SteadyClock, VirtualClock
from .limits import ActuationMode, JointLimits, Limiter, parse_mode
from .realtime import apply_realtime, RealtimeItem, RealtimeReport, RealtimeSettings
from .statistics import TickFigures, TickStatistics
from .tick import ControlTick, Decision, TickConfig

__all__ = [
    'ActuationMode', 'ArmReply', 'ArmState', 'ArmView', 'Arming', 'Cadence', 'ChunkBuffer',
    'ChunkCounts', 'Clock', 'ControlTick', 'Decision', 'JointLimits', 'Limiter', 'RealtimeItem',
    'RealtimeReport', 'RealtimeSettings', 'Sample', 'SteadyClock', 'TickConfig', 'TickFigures',
    'TickStatistics', 'VirtualClock', 'apply_realtime', 'hold_reasons', 'parse_mode',
]
