# SPDX-License-Identifier: Apache-2.0
"""Limits from a URDF: what is read, what is refused, and that it cannot grow in memory."""

import math

from hypothesis import given
from hypothesis import strategies as st
import pytest

from oxygen_ros.control import limits_of_description, robot_description

ARM = """<?xml version="1.0" encoding="utf-8"?>
<robot name="arm">
  <link name="base"/>
  <joint name="pan" type="revolute"><limit lower="-1.5" upper="2" velocity="3" effort="9"/></joint>
  <joint name="spin" type="continuous"><limit velocity="4" effort="9"/></joint>
  <joint name="wheel" type="continuous"/>
  <joint name="slide" type="prismatic">
    <limit lower="0" upper="0.5" effort="9"/>
    <safety_controller soft_lower_limit="0.1" soft_upper_limit="0.4" k_velocity="1"/>
  </joint>
  <joint name="weld" type="fixed"/>
  <transmission name="t"><joint name="pan"><hardwareInterface/></joint></transmission>
</robot>"""


def with_limit(limit, kind='revolute'):
    return f'<robot><joint name="a" type="{kind}">{limit}</joint></robot>'


def test_limits_come_in_the_order_of_the_joints():
    limits = limits_of_description(ARM, ['slide', 'spin', 'pan', 'wheel'])
    assert limits.min_position.tolist() == [0.1, -math.inf, -1.5, -math.inf]
    assert limits.max_position.tolist() == [0.4, math.inf, 2.0, math.inf]
    assert limits.max_velocity.tolist() == [math.inf, 4.0, 3.0, math.inf]
    assert limits.max_step.tolist() == [math.inf] * 4


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (
            with_limit('<limit lower="0" upper="1" velocity="0"/>'),
            'joint a: expected a velocity above 0, got 0',
        ),
        (with_limit('<limit lower="1" upper="0"/>'), 'expected a lower limit below the upper one'),
        (
            with_limit('<limit velocity="1"/>'),
            'expected a lower limit below the upper one, got 0 and',
        ),
        (with_limit('<limit lower="low" upper="1"/>'), "expected a number as lower, got 'low'"),
        (with_limit('<limit lower="nan" upper="1"/>'), "expected a number as lower, got 'nan'"),
        (with_limit(''), 'joint a: expected a limit, got none'),
        (
            with_limit('', 'fixed'),
            'expected one that is revolute, prismatic, continuous, got fixed',
        ),
        ('<robot/>', 'expected a joint a, got none'),
        ('', 'expected a URDF, got: no element found'),
        ('<robot><joint', 'expected a URDF, got: '),
        ('package://arm/arm.urdf', 'expected a URDF, got: '),
        ('<!DOCTYPE r [<!ENTITY a "&b;&b;">]><robot>&a;</robot>', 'got one with a document type'),
    ],
)
def test_a_description_that_cannot_be_used_is_named(text, message):
    with pytest.raises(ValueError, match='robot_description: ') as caught:
        limits_of_description(text, ['a'])
    assert message in str(caught.value)


def test_a_description_of_any_length_is_not_parsed(monkeypatch):
    monkeypatch.setattr(robot_description, 'MAX_CHARACTERS', 100)
    with pytest.raises(ValueError, match='expected at most 100 characters, got 101'):
        limits_of_description(' ' * 101, ['a'])


@given(st.text(max_size=60), st.integers(0, len(ARM)))
def test_whatever_comes_it_is_limits_or_one_error(text, place):
    for broken in (text, ARM[:place] + text + ARM[place:]):
        try:
            assert limits_of_description(broken, ['pan']).num_joints == 1
        except ValueError as error:
            assert str(error).startswith('robot_description: ')
