# SPDX-License-Identifier: Apache-2.0
"""From message fields to the engine's values: pixels, joint positions, newest-wins slots.

Knows no message class and no middleware, so that the live node and the deterministic replay take
their messages by the same rules.
"""

from .camera_stream import CameraCounts, CameraSink, CameraStream
from .compressed_decoder import decode_compressed
from .errors import ImageError, IngestError, JointStateError
from .image_decoder import decode_image
from .joint_mapper import JointMapper
from .joint_stream import JointCounts, JointStream
from .latest import Latest
from .rules import CameraRules, IngestRules, MessageCounts, Receipt

__all__ = [
    'CameraCounts',
    'CameraRules',
    'CameraSink',
    'CameraStream',
    'ImageError',
    'IngestError',
    'IngestRules',
    'JointCounts',
    'JointMapper',
    'JointStateError',
    'JointStream',
    'Latest',
    'MessageCounts',
    'Receipt',
    'decode_compressed',
    'decode_image',
]
