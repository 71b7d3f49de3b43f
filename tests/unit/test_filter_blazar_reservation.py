# SPDX-License-Identifier: Apache-2.0
"""The filter blazar_reservation, rule by rule."""

import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.blazar_reservation import (
    BlazarReservation,
    HintNames,
    HintNamesForeign,
    HintNamesNothing,
    NotReserved,
    Preemptible,
    ReservationRequired,
)
from isolate_aggregates.filters.constraints import Refuse, Require
from isolate_aggregates.request import Flavor, Request

POOL = Aggregate('uuid-pool', 'freepool')
SPOT = Aggregate('uuid-spot', 'spot')
MINE = Aggregate(
    'uuid-mine', 'r1', {'blazar:owner': 'me'}, availability_zone='blazar_r1'
)
GRANTED = Aggregate(
    'uuid-granted',
    'r2',
    {'blazar:owner': 'other', 'me': 'blazar:tenant'},
    availability_zone='blazar:r2',
)
FOREIGN = Aggregate(
    'uuid-foreign',
    'r3',
    {'blazar:owner': 'other'},
    availability_zone='blazar_r3',
)
OPEN = Aggregate(
    'uuid-open', 'r4', {'blazar:owner': 'me'}, frozenset(), 4, 'z'
)
INDEX = AggregateIndex([POOL, SPOT, MINE, GRANTED, FOREIGN, OPEN])


def conclusions(extra_specs=(), hint=(), index=INDEX, **settings):
    request = Request(
        Flavor('f', extra_specs=dict(extra_specs)),
        project_id='me',
        scheduler_hints={'reservation': tuple(hint)} if hint else {},
    )
    made = BlazarReservation(preemptible_aggregate='spot', **settings)
    return list(made(request, index))


@pytest.mark.parametrize(
    ('hint', 'required'),
    [
        pytest.param(['r1'], (MINE,), id='owner'),
        pytest.param(['r2'], (GRANTED,), id='granted project, old zone'),
        pytest.param(['r1', 'r3'], (MINE,), id='only what is owned'),
        pytest.param(['r1', 'r2'], (MINE, GRANTED), id='either of two'),
    ],
)
def test_rule_1_a_hint_requires_the_reservations_the_project_owns(
    hint, required
):
    [found] = conclusions(hint=hint)
    assert isinstance(found, Require)
    assert found.aggregates == required


@pytest.mark.parametrize(
    ('hint', 'cause'),
    [
        ('r3', HintNamesForeign(('r3',), 'me')),
        ('r9', HintNamesNothing(('r9',))),
        ('r4', HintNamesNothing(('r4',))),
        ('freepool', HintNamesForeign(('freepool',), 'me')),
    ],
)
def test_rule_1_a_hint_for_nothing_of_ones_own_is_refused(hint, cause):
    assert conclusions(hint=[hint]) == [Refuse(cause)]


RESERVED = [
    {'aggregate_instance_extra_specs:reservation': 'r'},
    {'resources:CUSTOM_RESERVATION_4D17': '1'},
    {'resources_R:CUSTOM_RESERVATION_4D17': '1'},
]


@pytest.mark.parametrize('extra_specs', RESERVED)
@pytest.mark.parametrize('required', [True, False])
def test_rule_2_the_flavor_of_an_instance_reservation_is_left_alone(
    extra_specs, required
):
    assert conclusions(extra_specs, reservation_required=required) == []


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('resources:CUSTOM_OTHER', '1'),
        ('resources:CUSTOM_RESERVATION_4D17', '0'),
        ('resources:CUSTOM_RESERVATION_4D17', 'one'),
        ('trait:CUSTOM_RESERVATION_4D17', '1'),
        ('reservation', '1'),
    ],
)
def test_rule_2_is_for_classes_of_instance_reservations_only(key, value):
    [found] = conclusions({key: value})
    assert found.cause == NotReserved()


def test_rule_1_takes_precedence_over_rule_2():
    [found] = conclusions(RESERVED[0], hint=['r3'])
    assert isinstance(found, Refuse)


def test_rule_3_preemptible_servers_use_the_preemptible_aggregate_alone():
    found = conclusions(
        {'blazar:preemptible': 'true'}, allow_preemptibles=True
    )
    assert [one.aggregates for one in found] == [
        (SPOT,),
        (POOL, MINE, GRANTED, FOREIGN),
    ]


def test_rule_3_a_reservation_is_not_for_preemptible_servers():
    """Not even one that is named like the preemptible aggregate."""
    reserved = Aggregate('uuid-r', 'spot', availability_zone='blazar_spot')
    required, forbidden = conclusions(
        {'blazar:preemptible': 'true'},
        index=AggregateIndex([SPOT, reserved]),
        allow_preemptibles=True,
    )
    assert (required.aggregates, forbidden.aggregates) == (
        (SPOT,),
        (reserved,),
    )


@pytest.mark.parametrize(
    ('extra_specs', 'settings'),
    [
        ({}, {}),
        ({}, {'allow_preemptibles': True}),
        ({'blazar:preemptible': 'false'}, {'allow_preemptibles': True}),
        # By default they may not use it.
        ({'blazar:preemptible': 'true'}, {}),
    ],
)
def test_rule_4_everything_else_stays_out_of_all_of_blazar(
    extra_specs, settings
):
    [found] = conclusions(extra_specs, **settings)
    assert found.aggregates == (POOL, SPOT, MINE, GRANTED, FOREIGN)
    assert found.cause == NotReserved()


def test_without_aggregates_of_blazar_there_is_nothing_to_forbid():
    assert conclusions(index=AggregateIndex([OPEN])) == []


def test_without_reservations_there_is_no_lock():
    made = BlazarReservation()
    assert list(made.locks(AggregateIndex([POOL, OPEN]))) == []


def test_a_cloud_can_require_a_reservation_for_every_server():
    assert conclusions(reservation_required=True) == [
        Refuse(ReservationRequired())
    ]


@pytest.mark.parametrize(
    ('cause', 'sentence'),
    [
        (HintNames(('r1', 'r2')), 'the hint reservation=r1,r2'),
        (
            HintNamesNothing(('r9',)),
            'the hint reservation=r9 names no existing reservation',
        ),
        (
            HintNamesForeign(('r3',), 'me'),
            'the hint reservation=r3 names a reservation that project me does '
            'not own',
        ),
        (
            NotReserved(),
            'managed by Blazar, and the request names no reservation',
        ),
        (Preemptible('spot'), 'preemptible servers use aggregate spot'),
        (
            ReservationRequired(),
            'every server needs a reservation in this cloud; give the '
            'scheduler hint reservation=<id>',
        ),
    ],
)
def test_a_cause_gives_the_reason(cause, sentence):
    assert str(cause) == sentence
