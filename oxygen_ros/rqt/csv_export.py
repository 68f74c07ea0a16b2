# SPDX-License-Identifier: Apache-2.0
"""All reports kept, as a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..figures.latency_fields import FIELDS
from .history import LatencyHistory


def write_csv(path: str | Path, history: LatencyHistory) -> int:
    """Write one line for each report kept, oldest first; return how many.

    Columns: header stamp (ROS time, s), the fields of the message, the age of each camera as last
    read by then (ms). A figure that was not measured is empty.

    :raises OSError: the file cannot be written.
    """
    span = history.everything()
    cameras = sorted(span.cameras)
    with Path(path).open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['stamp_s', *FIELDS, *(f'camera_age_ms.{name}' for name in cameras)])
        stamps_s = history.stamps_s()
        for stamp_s, time_s, row in zip(stamps_s, span.times_s, span.rows):
            ages_ms = []
            for name in cameras:
                times_s, values = span.cameras[name]
                place = int(np.searchsorted(times_s, time_s, side='right')) - 1
                ages_ms.append(float(values[place]) if place >= 0 else float('nan'))
            cells = ['' if np.isnan(value) else repr(float(value)) for value in (*row, *ages_ms)]
            writer.writerow([f'{stamp_s:.9f}', *cells])
    return len(span.rows)
