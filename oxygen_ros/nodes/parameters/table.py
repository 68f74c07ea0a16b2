# SPDX-License-Identifier: Apache-2.0
"""The one table of the node's parameters; config/oxygen.yaml is made from it."""

from __future__ import annotations

from .spec import ParameterSpec
from .table_actuation import ACTUATION
from .table_engine import ENGINE
from .table_memory import MEMORY
from .table_model import MODEL
from .table_robot import ROBOT

PARAMETERS: tuple[ParameterSpec, ...] = (*ROBOT, *MODEL, *ACTUATION, *ENGINE, *MEMORY)
