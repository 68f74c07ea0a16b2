# SPDX-License-Identifier: Apache-2.0
"""Enable, hold, stop and takeover: the table of the state machine, cell by cell."""

import itertools

import pytest

from oxygen_ros.control import Arming, ArmState

REQUESTS = ('enable', 'disarm', 'hold', 'stop', 'takeover')
WAY_TO = {
    'disarmed': (),
    'armed': ('enable',),
    'holding': ('enable', 'hold'),
    'stopped': ('enable', 'stop'),
    'takeover': ('enable', 'takeover'),
}
TABLE = {
    'disarmed': ('armed', 'disarmed', 'refused', 'stopped', 'takeover'),
    'armed': ('armed', 'disarmed', 'holding', 'stopped', 'takeover'),
    'holding': ('armed', 'disarmed', 'holding', 'stopped', 'takeover'),
    'stopped': ('refused', 'disarmed', 'refused', 'stopped', 'refused'),
    'takeover': ('armed', 'disarmed', 'holding', 'stopped', 'takeover'),
}


def arming_after(*requests):
    arming = Arming()
    for request in requests:
        getattr(arming, request)()
    return arming


@pytest.mark.parametrize('state, request_name', list(itertools.product(TABLE, REQUESTS)))
def test_the_table_of_the_docstring_holds(state, request_name):
    arming = arming_after(*WAY_TO[state])
    assert arming.state == state
    expected = TABLE[state][REQUESTS.index(request_name)]
    reply = getattr(arming, request_name)()
    assert reply.success == (expected != 'refused')
    assert reply.message
    assert arming.state == (state if expected == 'refused' else expected)


@pytest.mark.parametrize(
    'requests, sending',
    [
        ((), False),
        (('enable',), True),
        (('enable', 'hold'), True),
        (('enable', 'stop'), True),
        (('stop',), False),
        (('enable', 'takeover'), False),
        (('takeover', 'stop'), False),
        (('takeover', 'hold'), True),
        (('enable', 'stop', 'disarm'), False),
    ],
)
def test_only_an_armed_robot_is_sent_targets_and_a_stop_never_starts_sending(requests, sending):
    assert arming_after(*requests).view().sending is sending


@pytest.mark.parametrize(
    'requests, restarts',
    [
        (('enable',), True),
        (('enable', 'enable'), False),
        (('enable', 'hold'), False),
        (('enable', 'hold', 'enable'), True),
        (('enable', 'stop'), False),
        (('enable', 'takeover'), True),
        (('takeover', 'hold'), True),
        (('enable', 'takeover', 'takeover'), False),
        (('disarm',), False),
    ],
)
def test_driving_again_starts_from_the_measured_joints(requests, restarts):
    arming = arming_after(*requests[:-1])
    before = arming.view().generation
    getattr(arming, requests[-1])()
    assert (arming.view().generation != before) is restarts


def test_a_stop_is_lifted_by_disarming_alone():
    arming = arming_after('enable', 'stop')
    assert not arming.enable().success
    assert arming.disarm().success
    assert arming.enable().success
    assert arming.state is ArmState.ARMED


def test_each_change_is_told_once_in_order_with_its_request():
    arming, told = Arming(), []
    arming.on_change = lambda state, request: told.append((state.value, request))
    for request in (
        'hold',
        'enable',
        'enable',
        'hold',
        'takeover',
        'takeover',
        'stop',
        'stop',
        'enable',
        'takeover',
        'disarm',
        'disarm',
    ):
        getattr(arming, request)()
    assert told == [
        ('armed', 'enable'),
        ('holding', 'hold'),
        ('takeover', 'takeover'),
        ('stopped', 'stop'),
        ('disarmed', 'disarm'),
    ]


def test_lifting_a_stop_that_came_while_disarmed_is_a_change():
    arming, told = Arming(), []
    arming.on_change = lambda state, request: told.append(state.value)
    arming.stop()
    arming.disarm()
    assert told == ['stopped', 'disarmed']
