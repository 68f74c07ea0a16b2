# SPDX-License-Identifier: Apache-2.0
"""The launch files: they compile, and the arguments described are the ones that are read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).resolve().parents[2] / 'launch').glob('*.launch.py'))


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_every_argument_is_described_and_used(path):
    tree = ast.parse(path.read_text(encoding='utf-8'))
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'ARGUMENTS'
    )
    arguments = ast.literal_eval(table)
    read = {
        node.value
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Constant)
    }
    names = {name for name, _, _ in arguments}
    by_helper = {'model', 'checkpoint'}  # launch_arguments.model_overrides
    assert names - by_helper <= read
    used = {
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == 'given'
        and isinstance(node.slice, ast.Constant)
    }
    assert used <= names
    assert all(len(meaning) > 10 for _, _, meaning in arguments)
    assert any(
        isinstance(node, ast.FunctionDef) and node.name == 'generate_launch_description'
        for node in tree.body
    )


def test_the_launch_files_are_there():
    assert {path.name for path in FILES} == {
        'demo.launch.py',
        'oxygen.launch.py',
        'replay.launch.py',
    }
