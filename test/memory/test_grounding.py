# SPDX-License-Identifier: Apache-2.0
"""What is said and remembered against what is known."""

from __future__ import annotations

from pathlib import Path
import random

from memory_notes import known, scene
import pytest

from oxygen_ros.memory.checks.facts import Facts, load_facts
from oxygen_ros.memory.checks.grounding import flagged, GroundingCheck, Verdict
from oxygen_ros.memory.checks.statements import read_sentence, sentences
from oxygen_ros.memory.scene.vocabulary import SceneVocabulary

FACTS = """
facts:
  - {entity: cup, attribute: color, value: red, source: inventory}
  - {entity: cup, attribute: on, value: table, source: layout}
  - {entity: cups, attribute: count, value: 3, source: inventory}
  - {entity: table, attribute: height, value: 0.75, unit: m, tolerance: 0.02, source: survey}
  - {entity: table, attribute: colour, value: brown, source: survey}
  - {entity: table, attribute: in, value: kitchen, source: layout}
  - {entity: box, attribute: mass, value: 2, unit: kg, tolerance: 0.1, source: data sheet}
  - {entity: box, attribute: left_of, value: bottle, source: layout}
  - {entity: box, attribute: material, value: wooden, source: inventory}
  - {entity: coffee machine, attribute: colour, value: [black, silver], source: inventory}
  - {entity: coffee machine, attribute: temperature, value: 90, unit: °C, tolerance: 5,
     source: manual}
  - {entity: door, attribute: openness, value: closed, source: operator}
  - {entity: knife, attribute: in, value: drawer, source: layout}
  - {entity: bowl, attribute: count, value: 0, source: inventory}
  - {entity: lamp, attribute: state, value: on, source: operator}
  - {entity: stove, attribute: hot, value: true, source: operator}
  - {entity: shelf, attribute: width, value: 1.2, unit: m, source: survey}
"""


@pytest.fixture(scope='module')
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Read the facts from a file."""
    path = tmp_path_factory.mktemp('facts') / 'facts.yaml'
    path.write_text(FACTS, encoding='utf-8')
    return load_facts(path)


@pytest.fixture(scope='module')
def check(facts: Facts) -> GroundingCheck:
    """Return a check against them."""
    return GroundingCheck(facts, SceneVocabulary())


# Template, the value that the facts give, and others that they exclude.
TEMPLATES: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ('The cup is {}.', ('red',), ('blue', 'green', 'white')),
    ('The cup is not {}.', ('blue', 'white'), ('red',)),
    ('The colour of the cup is {}.', ('red',), ('black', 'blue')),
    ("The cup's color is {}.", ('red',), ('yellow', 'gray')),
    ('There is a {} cup on the table.', ('red',), ('purple', 'green')),
    ('I can see a {} cup.', ('red',), ('orange', 'brown')),
    ('There are {} cups.', ('three', '3'), ('two', '5', 'no')),
    ('The cup is on the {}.', ('table',), ('shelf', 'floor', 'box')),
    ("The cup isn't on the {}.", ('shelf', 'floor'), ('table',)),
    ('Yes, the red cup is on top of the {}.', ('table',), ('shelf', 'stove')),
    ('The cup is in the {}.', ('kitchen',), ()),
    ('The table is {} high.', ('75 cm', '0.76 m', '740 mm'), ('90 cm', '1.1 m', '0.5 metres')),
    ('The height of the table is {}.', ('0.75 m', 'about 0.8 m'), ('7.5 m', 'about 1 m')),
    ('The table has a height of {}.', ('76 cm', '0.74 metres'), ('78 cm', '700 mm')),
    ('The table is {}.', ('brown',), ('white', 'black')),
    ('The box weighs {}.', ('2 kg', '2.05 kg', '1950 g'), ('3 kg', '2.2 kg', '200 g')),
    ('The box is {} heavy.', ('2 kg', 'roughly 2.1 kg'), ('5 kg', 'roughly 3 kg')),
    ('The box is {} the bottle.', ('left of', 'to the left of'), ('right of', 'to the right of')),
    ('The bottle is {} the box.', ('right of',), ('left of', 'to the left of')),
    ('The box is {}.', ('wooden',), ('metal', 'plastic')),
    ('The coffee machine is {}.', ('black', 'silver'), ('red', 'white')),
    ('The temperature of the coffee machine is {}.', ('90 °C', '88 celsius'), ('20 °C', '120 °C')),
    ('The door is {}.', ('closed',), ('open',)),
    ('Right now, the door is not {}.', ('open',), ('closed',)),
    ('The knife is in the {}.', ('drawer',), ('kitchen',)),
    ('There are {} bowls.', ('no', '0'), ('two', '4')),
    ('The lamp is {}.', ('on',), ('off',)),
    ('The stove is {}hot.', ('',), ('not ',)),
    ('The shelf is {} wide.', ('1.2 m', '120 cm'), ('1.3 m', '12 cm')),
    ('The cup is {} and the table is brown.', ('red',), ('blue', 'white')),
    ('I think the door is {}', ('closed',), ('open',)),
]
UNREADABLE = (
    'It is red.',
    'The cup, which is blue, is nice.',
    'The cup is not blue but red.',
    'Cups are blue sometimes.',
    'Maybe the cup is blue or the cup is green.',
    'The cup is bluish red.',
    'Blue is the colour of the cup.',
    'No.',
    '',
    '...',
    'The cup is',
    'The cup is 12.',
    'The table is 90 bananas high.',
    'If the door is open then close the door.',
    '是红色的杯子',
    'The cup was blue.',
    'Is the cup blue?',
    'The cup is blue and it is on the shelf.',
)


def statements(seed: int) -> list[tuple[str, bool]]:
    """Return 200 statements and whether the facts contradict each, half of them so."""
    chance, made = random.Random(seed), list[tuple[str, bool]]()
    for is_wrong in (False, True):
        choices = [
            (template, wrong if is_wrong else right)
            for template, right, wrong in TEMPLATES
            if (wrong if is_wrong else right)
        ]
        for index in range(100):
            template, values = choices[index % len(choices)]
            made.append((template.format(chance.choice(values)), is_wrong))
    chance.shuffle(made)
    return made


@pytest.mark.parametrize('seed', range(3))
def test_contradictions_are_found_with_precision_and_recall(
    check: GroundingCheck, seed: int
) -> None:
    made = statements(seed)
    assert len(made) == 200
    assert sum(is_wrong for _, is_wrong in made) == 100
    found = [(is_wrong, check.check_text(text).verdict) for text, is_wrong in made]
    flagged_right = sum(wrong for wrong, verdict in found if verdict is Verdict.CONTRADICTED)
    num_flagged = sum(verdict is Verdict.CONTRADICTED for _, verdict in found)
    assert flagged_right / num_flagged >= 0.95
    assert flagged_right / 100 >= 0.95
    supported = [wrong for wrong, verdict in found if verdict is Verdict.SUPPORTED]
    assert not any(supported)  # nothing false is ever vouched for
    assert len(supported) >= 95


@pytest.mark.parametrize('text', UNREADABLE)
def test_what_cannot_be_read_is_unverified(check: GroundingCheck, text: str) -> None:
    grounding = check.check_text(text)
    assert grounding.verdict is Verdict.UNVERIFIED
    assert not any(one.verdict is Verdict.CONTRADICTED for one in grounding.findings)


@pytest.mark.parametrize(
    'text',
    [
        'The cup is shiny.',
        'The spoon is red.',
        'The cup is near the door.',
        'There are 4 spoons.',
        'The cup is 10 cm high.',
        'The table is 75 kg high.',
        'The cup is in the garage.',
        'The table is on the floor.',
        'There is a cup near the door.',
        'The height of the table is 0.75.',
    ],
)
def test_what_no_fact_speaks_of_is_unverified(check: GroundingCheck, text: str) -> None:
    assert read_sentence(text.rstrip('.'))
    assert check.check_text(text).verdict is Verdict.UNVERIFIED


def test_a_verdict_cites_its_fact(check: GroundingCheck) -> None:
    (finding,) = check.check_text('The table is 90 cm high.').findings
    assert str(finding) == 'contradicted: The table is 90 cm high [survey]'


def test_one_contradiction_is_the_verdict_on_the_whole_text(check: GroundingCheck) -> None:
    text = 'The cup is red. The door is open! What else? The weather is fine'
    grounding = check.check_text(text)
    assert [finding.verdict.value for finding in grounding.findings] == [
        'supported',
        'contradicted',
        'unverified',
    ]
    assert grounding.verdict is Verdict.CONTRADICTED
    assert grounding.findings[1].text == 'The door is open'
    assert check.check_text('The cup is red. Nice!').verdict is Verdict.UNVERIFIED
    assert check.check_text('').verdict is Verdict.UNVERIFIED


def test_a_remembered_scene_is_checked_object_by_object(check: GroundingCheck) -> None:
    note = scene(
        1,
        known(1, 1, 'cup', 'blue'),
        known(2, 1, 'table', 'brown'),
        known(3, 1, 'cup', 'red'),
        known(4, 1, 'shelf'),
        known(5, 1, 'spoon', 'red'),
        relations=((3, 'on', 4), (2, 'under', 1)),
    )
    findings = check.check_scene(note.update)
    assert flagged(findings) == {
        1: 'contradicted',
        2: 'supported',
        3: 'contradicted',
        4: 'unverified',
        5: 'unverified',
    }
    assert findings[1].source == 'inventory'
    assert findings[3].source == 'layout'


def test_a_long_text_is_cut_and_read_in_time(check: GroundingCheck) -> None:
    check.check_text('the ' + 'a b ' * 100_000 + 'is on the ' + 'c d ' * 1_000)
    assert len(sentences('x. ' * 10_000)) == 64


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('[', 'readable YAML'),
        ('facts: 3', 'one key facts'),
        ('fact: []', 'one key facts'),
        ('facts: [3]', 'fact 1: expected only the keys'),
        ('facts: [{entity: cup}]', 'fact 1: expected the key attribute'),
        ('facts: [{entity: cup, attribute: on, value: {}, source: x}]', 'value: expected'),
        ('facts: [{entity: cup, attribute: on, value: [], source: x}]', 'value: expected'),
        ('facts: [{entity: cup, attribute: h, value: .inf, source: x}]', 'value: expected'),
        ('facts: [{entity: cup, attribute: on, value: x, source: ""}]', 'source: expected'),
        (
            'facts: [{entity: c, attribute: h, value: 1, unit: furlong, source: x}]',
            'unit: expected',
        ),
        ('facts: [{entity: cup, attribute: h, value: 1, unit: 3, source: x}]', 'unit: expected'),
        (
            'facts: [{entity: c, attribute: h, value: 1, tolerance: -1, source: x}]',
            'tolerance: exp',
        ),
    ],
)
def test_a_wrong_facts_file_names_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / 'facts.yaml'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(ValueError, match=message) as caught:
        load_facts(path)
    assert str(path) in str(caught.value)
