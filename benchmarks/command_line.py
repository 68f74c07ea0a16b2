# SPDX-License-Identifier: Apache-2.0
"""The command line that all measurements share: one thread, `--json`, a status by the gates."""

from __future__ import annotations

import argparse
from collections.abc import Callable
import sys
from typing import Any

import torch

from oxygen_ros.bench.command import add_json_option, check_json, conclude
from oxygen_ros.errors import OxygenError


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all measurements have.

    :param description: the module's docstring.
    """
    made = argparse.ArgumentParser(description=description)
    add_json_option(made)
    return made


def main(args: argparse.Namespace, run: Callable[[], dict[str, Any]]) -> int:
    """Measure on one thread; return the exit status: 1 when a gate does not hold, or on an error.

    :param args: of `parser`.
    :param run: measures, prints and returns the figures.
    """
    torch.set_num_threads(1)
    try:
        check_json(args.json)
        return conclude(run(), args.json)
    except OxygenError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
