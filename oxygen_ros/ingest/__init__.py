"""From message fields to the engine's values: pixels, joint positions, newest-wins slots.

Knows no message class and no middleware, so that the live node and the deterministic replay decode
with the same code.
"""
from .compressed_decoder import decode_compressed
from .errors import ImageError, IngestError, JointStateError
from .image_decoder import decode_image
from .joint_mapper import JointMapper
from .latest import Latest

__all__ = ['ImageError', 'IngestError', 'JointMapper', 'JointStateError', 'Latest',
           'decode_compressed', 'decode_image']
