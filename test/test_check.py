# SPDX-License-Identifier: Apache-2.0
"""The checks of scripts/check, as tests: style and types."""

import importlib.util
from pathlib import Path
import subprocess
import sys

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run_tool(tool, *arguments):
    """Run a checker over the checkout; fail with what it said when it complains."""
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f'needs {tool} (pip install {tool}), absent here')
    result = subprocess.run(
        [sys.executable, '-m', tool, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_ruff_finds_nothing():
    run_tool('ruff', 'check', '.')


def test_ruff_would_reformat_nothing():
    run_tool('ruff', 'format', '--check', '.')


@pytest.mark.timeout(600)
def test_mypy_finds_nothing():
    run_tool('mypy')
