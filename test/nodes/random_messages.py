# SPDX-License-Identifier: Apache-2.0
"""Sensor messages in which each field is right or wrong by itself."""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import cv2
from hypothesis import strategies as st
import numpy as np
from sensor_msgs.msg import CompressedImage, Image, JointState

from oxygen_ros.ingest.pixel_formats import DEPTH_ENCODINGS, PIXEL_FORMATS
from oxygen_ros.nodes.messages import stamp_of

JOINTS = ('shoulder', 'elbow', 'gripper')
REACH = 0.8  # of a joint that is measured rightly (rad)
SECOND = 1_000_000_000
UINT32 = 2**32 - 1


class Draw(NamedTuple):
    """From what one message is made; the seed decides about all that matters less."""

    kind: str
    fault: str
    stamp: str
    seed: int


RAW_FAULTS = ('none', 'none', 'encoding', 'depth', 'height', 'width', 'huge', 'step', 'data')
COMPRESSED_FAULTS = ('none', 'none', 'cut', 'flipped', 'garbage', 'empty', 'depth')
JOINT_FAULTS = (
    'none',
    'none',
    'order',
    'velocity',
    'nan',
    'inf',
    'far',
    'short',
    'long',
    'names',
    'twice',
    'empty',
)
STAMPS = (*['now'] * 24, 'zero', 'future', 'late', 'same', 'any')


def draws() -> st.SearchStrategy[Draw]:
    """Return a strategy of messages."""
    faults = {'image': RAW_FAULTS, 'compressed': COMPRESSED_FAULTS, 'joints': JOINT_FAULTS}
    kinds = [
        st.builds(
            Draw,
            st.just(kind),
            st.sampled_from(names),
            st.sampled_from(STAMPS),
            st.integers(0, 2**16),
        )
        for kind, names in faults.items()
    ]
    return st.one_of(kinds)


def make_message(draw: Draw, now_ns: int) -> Any:
    """Return the message of a draw; `now_ns` is ROS time."""
    rng = np.random.default_rng(draw.seed)
    make = {'image': _image, 'compressed': _compressed, 'joints': _joints}[draw.kind]
    message = make(rng, draw.fault)
    message.header.stamp = stamp_of(_stamp_ns(rng, draw.stamp, now_ns))
    return message


def _stamp_ns(rng: np.random.Generator, kind: str, now_ns: int) -> int:
    return {
        'now': now_ns,
        'zero': 0,
        'future': now_ns + 10 * SECOND,
        'same': now_ns // SECOND * SECOND,
        'late': now_ns - int(rng.integers(0, 5 * SECOND)),
        'any': int(rng.integers(0, 2**31)) * SECOND,
    }[kind]


def _image(rng: np.random.Generator, fault: str) -> Image:
    encoding = str(rng.choice(list(PIXEL_FORMATS)))
    pixel_format = PIXEL_FORMATS[encoding]
    height, width = (2 * int(size) for size in rng.integers(2, 12, 2))
    step = width * pixel_format.bytes_per_pixel + int(rng.integers(0, 3)) * 5
    data = rng.bytes(pixel_format.num_rows(height) * step)
    if fault == 'encoding':
        encoding = str(rng.choice(['', 'rgb888_vendor', 'RGB8', 'bayer_xxxx8', '8UC2', 'é\0']))
    elif fault == 'depth':
        encoding = str(rng.choice(DEPTH_ENCODINGS))
    elif fault == 'height':
        height = int(rng.choice([0, 1, height + 1, UINT32]))
    elif fault == 'width':
        width = int(rng.choice([0, 1, width + 1, UINT32]))
    elif fault == 'huge':
        height = width = step = UINT32
    elif fault == 'step':
        step = int(rng.choice([0, 1, step - 7, step + 1, UINT32]))
    elif fault == 'data':
        data = rng.bytes(int(rng.choice([0, 1, len(data) - 1, len(data) + 1, 2 * len(data)])))
    return Image(
        height=height,
        width=width,
        encoding=encoding,
        step=step,
        data=array('B', data),
        is_bigendian=int(rng.integers(0, 256)),
    )


_PICTURES = [
    cv2.imencode(ending, np.random.default_rng(0).integers(0, 256, shape, np.uint8))[1].tobytes()
    for ending in ('.jpg', '.png')
    for shape in ((12, 16, 3), (9, 7))
]


def _compressed(rng: np.random.Generator, fault: str) -> CompressedImage:
    data = bytearray(_PICTURES[int(rng.integers(len(_PICTURES)))])
    image_format = str(rng.choice(['jpeg', 'png', '', 'jpg', 'bgr8; jpeg compressed bgr8', 'mp4']))
    if fault == 'cut':
        data = data[: int(rng.integers(len(data)))]
    elif fault == 'flipped':
        for position in rng.integers(0, len(data), int(rng.integers(1, 30))):
            data[position] ^= 1 << int(rng.integers(8))
    elif fault == 'garbage':
        data[2:] = rng.bytes(int(rng.integers(0, 200)))
    elif fault == 'empty':
        data.clear()
    elif fault == 'depth':
        image_format = '16UC1; compressedDepth png'
    return CompressedImage(format=image_format, data=array('B', bytes(data)))


def _joints(rng: np.random.Generator, fault: str) -> JointState:
    names = list(JOINTS)
    position = rng.uniform(-REACH, REACH, len(names))
    velocity = rng.normal(0.0, 1.0, len(names))
    if fault == 'order':
        names = [*map(str, rng.permutation([*names, 'wheel'])), 'other']
        position = rng.uniform(-REACH, REACH, len(names))
    elif fault == 'velocity':
        velocity[:] = np.nan
    elif fault in ('nan', 'inf', 'far'):
        bad = {'nan': np.nan, 'inf': -np.inf, 'far': 1e300}[fault]
        position[int(rng.integers(len(position)))] = bad
    elif fault in ('short', 'long'):
        position = rng.normal(0.0, 1.0, len(names) + (1 if fault == 'long' else -1))
    elif fault == 'names':
        names[int(rng.integers(len(names)))] = str(rng.choice(['', 'Shoulder', 'x' * 1000]))
    elif fault == 'twice':
        names[0] = names[1]
    elif fault == 'empty':
        names, position = [], np.zeros(0)
    return JointState(name=names, position=position.tolist(), velocity=velocity.tolist())
