# SPDX-License-Identifier: Apache-2.0
"""Every test that doc/faults.md names is there."""

import ast
from pathlib import Path
import re

ROOT = Path(__file__).resolve().parent.parent


def test_every_fault_of_the_page_is_shown_by_a_test_that_exists():
    page = (ROOT / 'doc' / 'faults.md').read_text(encoding='utf-8')
    rows = [
        line
        for line in page.split('## What goes wrong in the field')[1].splitlines()
        if line.startswith('| ')
    ][2:]
    assert len(rows) >= 42
    wrong = []
    for row in rows:
        named = re.findall(r'`(test/[\w/]+\.py)::(test_\w+)`', row)
        wrong += [] if named else [row]
        wrong += [f'{file}::{name}' for file, name in named if name not in functions_of(file)]
    assert not wrong, wrong


def functions_of(file):
    """Return the names of the functions at the top of a module."""
    path = ROOT / file
    if not path.is_file():
        return set()
    return {
        node.name
        for node in ast.parse(path.read_text(encoding='utf-8')).body
        if isinstance(node, ast.FunctionDef)
    }
