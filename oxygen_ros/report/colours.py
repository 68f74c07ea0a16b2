# SPDX-License-Identifier: Apache-2.0
"""Colours that are told apart by everyone, on light and on dark ground."""

from __future__ import annotations

from ..figures.thresholds import Level

BLUE = '#3b82d6'
ORANGE = '#e08a1e'
GREEN = '#2a9d6f'
PURPLE = '#9b5fc0'
SKY = '#4fb3d9'
PINK = '#d46a9f'
GREY = '#8a8f98'
SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, PINK, GREY)

LEVELS = {Level.UNKNOWN: GREY, Level.GOOD: '#2a9d4f', Level.WARN: '#d99000', Level.BAD: '#d13438'}
