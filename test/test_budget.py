# SPDX-License-Identifier: Apache-2.0
"""The product stays as small as .ci/budget.toml says."""

from pathlib import Path
import re

import grimp
import pytest
import tomllib

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / 'oxygen_ros'
BUDGET = tomllib.loads((ROOT / '.ci' / 'budget.toml').read_text(encoding='utf-8'))


def lines(folder):
    """Count the lines of all modules below a folder."""
    return sum(len(path.read_text(encoding='utf-8').splitlines()) for path in folder.rglob('*.py'))


def modules():
    """Count the modules of the product."""
    return len(list(PACKAGE.rglob('*.py')))


def image_walk_files():
    """Read the number that test_image_walk.py holds true."""
    page = (ROOT / 'doc' / 'architecture.md').read_text(encoding='utf-8')
    return int(re.search(r'^(\d+) files, \d+ functions:$', page, re.MULTILINE)[1])


def arrows_up():
    """Count the imports without which no folder or module would be in a circle of siblings."""
    graph = grimp.build_graph('oxygen_ros', cache_dir=None)
    packages = {module.rpartition('.')[0] for module in graph.modules} - {''}
    return sum(len(graph.nominate_cycle_breakers(package)) for package in packages)


MEASURES = {
    'lines': lambda: lines(PACKAGE),
    'modules': modules,
    'nodes_lines': lambda: lines(PACKAGE / 'nodes'),
    'image_walk_files': image_walk_files,
    'arrows_up': arrows_up,
}


def test_the_budget_names_what_is_measured():
    assert set(BUDGET) == set(MEASURES)
    assert BUDGET['arrows_up'] == 0


@pytest.mark.parametrize('name', MEASURES)
def test_the_product_keeps_its_budget(name):
    measured, budget = MEASURES[name](), BUDGET[name]
    assert measured <= budget, f'{name}: expected at most {budget} (.ci/budget.toml)'
    assert measured >= 0.99 * budget, f'{name}: it fell to {measured}; lower .ci/budget.toml'
