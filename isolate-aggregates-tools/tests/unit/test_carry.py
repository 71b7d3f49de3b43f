# SPDX-License-Identifier: Apache-2.0
"""A plan is carried out until something goes wrong, and that is told."""

import types

from cases import cases
import pytest
from room_clouds import server

from isolate_aggregates import exception
from isolate_aggregates_tools.compute.migrations import Position
from isolate_aggregates_tools.room import carry
from isolate_aggregates_tools.room.task import Move

HERE = Position('h1', 'ACTIVE', None, 'small')
MOVING = Position('h1', 'MIGRATING', 'migrating', 'small')
THERE = Position('h2', 'ACTIVE', None, 'small')
AWAY = exception.ServiceError('Nova', 'http://nova', 'answered 503.')
BUSY = exception.ServiceConflict('Nova', 'http://nova', 'answered 409.')
BAD = exception.BadQuery('Nova', 'http://nova', 'answered 400.')


class Nova:
    """What tests say that Nova answers, one look after the other."""

    def __init__(self, **looks):
        self.looks = {name: list(some) for name, some in looks.items()}
        self.starts = {}
        self.reason = ''
        self.started, self.confirmed = [], []
        self.pauses = 0
        # What happens in a pause, by its number.
        self.pausing = {}

    def position(self, nova, number):
        looks = self.looks[number]
        look = looks.pop(0) if len(looks) > 1 else looks[0]
        if isinstance(look, BaseException):
            raise look
        return look

    def start(self, nova, number, target, live):
        self.started.append((number, target, live))
        if number in self.starts:
            raise self.starts[number]

    def confirm(self, nova, number):
        self.confirmed.append(number)
        raise BUSY

    def failure(self, nova, number):
        return self.reason

    def monotonic(self):
        return self.pauses

    def sleep(self, seconds):
        self.pauses += 1
        if self.pauses in self.pausing:
            raise self.pausing[self.pauses]


@pytest.fixture
def carried(monkeypatch):
    """Carry out rounds of moves; return the results by server and all else."""

    def carry_out(nova, *rounds, longest=9):
        monkeypatch.setattr(carry, 'migrations', nova)
        monkeypatch.setattr(carry, 'time', nova)
        moves = [
            [Move(server(n, 'h1', id=n), 'h1', 'h2', True) for n in names]
            for names in rounds
        ]
        outcome = carry.carry_out(moves, None, longest)
        results = {move.server.id: said for move, said in outcome.results}
        return types.SimpleNamespace(results=results, outcome=outcome)

    return carry_out


@cases(
    ('looks', 'result', 'is_started'),
    {
        'moved': ([HERE, MOVING, THERE], 'moved', True),
        'there already': ([THERE], 'was there already', False),
        'confirmed': (
            [HERE, Position('h2', 'VERIFY_RESIZE', None, 'small'), THERE],
            'moved',
            True,
        ),
        'gone': ([None], 'it was deleted since it was planned', False),
        'gone meanwhile': (
            [HERE, None],
            'it was deleted while it moved',
            True,
        ),
        'busy': (
            [Position('h1', 'ACTIVE', 'rebuilding', 'small')],
            'Nova does something else with it: rebuilding',
            False,
        ),
        'busy there': (
            [Position('h2', 'ACTIVE', 'rebuilding', 'small')],
            'Nova does something else with it: rebuilding',
            False,
        ),
        'elsewhere': (
            [Position('h3', 'ACTIVE', None, 'small')],
            'it has changed since it was planned: it is ACTIVE on h3 with '
            'flavor small',
            False,
        ),
        'stopped': (
            [Position('h1', 'SHUTOFF', None, 'small')],
            'it has changed since it was planned: it is SHUTOFF on h1 with '
            'flavor small',
            False,
        ),
        'resized': (
            [Position('h1', 'ACTIVE', None, 'large')],
            'it has changed since it was planned: it is ACTIVE on h1 with '
            'flavor large',
            False,
        ),
        'still here': ([HERE, HERE], 'it is ACTIVE on h1: no route', True),
        'broken': (
            [HERE, Position('h2', 'ERROR', None, 'small')],
            'it is ERROR on h2: no route',
            True,
        ),
        'not seen for a while': ([AWAY, HERE, AWAY, THERE], 'moved', True),
    },
)
def test_what_becomes_of_a_move(carried, looks, result, is_started):
    nova = Nova(a=looks)
    nova.reason = 'no route'
    done = carried(nova, 'a')
    assert done.results == {'a': result}
    assert nova.started == [('a', 'h2', True)] * is_started
    is_good = result in (carry.MOVED, carry.THERE_ALREADY)
    assert done.outcome.is_over is not is_good
    assert done.outcome.failures == [
        f'Server a (a) was not moved from h1 to h2: {result}. Run the command '
        'again; it plans from where the servers are then.'
    ] * (not is_good)


def test_a_reason_that_nova_does_not_know_is_not_told(carried):
    assert carried(Nova(a=[HERE]), 'a').results == {'a': 'it is ACTIVE on h1'}


def test_a_migration_waits_until_it_can_be_confirmed(carried):
    ready = Position('h2', 'VERIFY_RESIZE', None, 'small')
    nova = Nova(a=[HERE, ready, ready, THERE])
    assert carried(nova, 'a').results == {'a': 'moved'}
    assert nova.confirmed == ['a', 'a']


@cases(
    ('error', 'looks', 'result'),
    {
        'refused': (BAD, [HERE], 'Nova at http://nova answered 400'),
        'unknown': (
            AWAY,
            [HERE],
            'it is unknown whether it has moved: Nova at http://nova answered '
            '503',
        ),
        'conflict': (BUSY, [HERE], 'Nova at http://nova answered 409'),
        'conflict and gone': (
            BUSY,
            [HERE, None],
            'Nova at http://nova answered 409',
        ),
        'begun by the first try': (BUSY, [HERE, MOVING, THERE], 'moved'),
    },
)
def test_an_error_at_the_start(carried, error, looks, result):
    nova = Nova(a=looks)
    nova.starts['a'] = error
    assert carried(nova, 'a').results == {'a': result}


def test_a_failure_starts_nothing_more_and_waits_for_what_runs(carried):
    nova = Nova(a=[HERE, MOVING, MOVING, THERE], b=[None], c=[HERE], d=[HERE])
    done = carried(nova, 'abc', 'd')
    assert done.results == {
        'a': 'moved',
        'b': 'it was deleted since it was planned',
    }


def test_a_round_begins_when_the_last_one_is_over(carried):
    nova = Nova(a=[HERE, MOVING, THERE], b=[HERE, THERE], c=[HERE, THERE])
    done = carried(nova, 'ab', 'c')
    assert done.results == dict.fromkeys('bac', 'moved')
    assert [number for number, *_ in nova.started] == ['a', 'b', 'c']
    assert nova.pauses == 1


def test_what_takes_too_long_goes_on(carried):
    nova = Nova(a=[HERE, MOVING], b=[HERE, AWAY], c=[HERE, AWAY, THERE])
    nova.looks['d'] = [HERE, AWAY, MOVING]
    done = carried(nova, 'abcd', longest=2)
    late = 'it has not ended within 2 seconds, and goes on'
    assert done.results == {
        'a': late,
        'b': 'it is unknown whether it has moved: Nova at http://nova '
        'answered 503',
        'c': 'moved',
        'd': late,
    }
    assert nova.pauses == 3


def test_a_server_that_is_never_seen_is_not_moved(carried):
    nova = Nova(a=[HERE, MOVING], b=[AWAY], c=[HERE])
    done = carried(nova, 'abc', longest=1)
    assert [*done.results] == ['a', 'b']
    assert 'unknown whether it has moved' in done.results['b']
    assert [number for number, *_ in nova.started] == ['a']


def test_after_an_interruption_what_runs_is_waited_for(carried):
    nova = Nova(a=[HERE, MOVING, THERE], b=[HERE, THERE], c=[HERE], d=[HERE])
    nova.starts['b'] = stop = KeyboardInterrupt()
    done = carried(nova, 'abc', 'd')
    # It is unknown whether the second has begun.
    assert done.results == {'a': 'moved', 'b': 'moved'}
    assert done.outcome.interruption is stop
    assert not done.outcome.failures
    assert [number for number, *_ in nova.started] == ['a', 'b']


def test_a_second_interruption_ends_it(carried):
    nova = Nova(a=[HERE, MOVING])
    nova.pausing = {1: KeyboardInterrupt(), 2: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        carried(nova, 'a')
    assert nova.pauses == 2
