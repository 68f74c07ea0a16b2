# SPDX-License-Identifier: Apache-2.0
"""A bar on the terminal for what takes as long as a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import sys

from rich.console import Console
from rich.progress import Progress


@contextmanager
def progress_bar(duration_s: float, what: str = 'replay') -> Iterator[Callable[[float], None]]:
    """Show a bar while the block runs, on a terminal only; yield what takes the seconds done."""
    with Progress(
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task(what, total=duration_s)
        yield lambda seconds: bar.update(task, completed=seconds)
