# SPDX-License-Identifier: Apache-2.0
"""The filter blazar_reservation, rule by rule."""

from cases import cases
import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.blazar_reservation import BlazarReservation
from isolate_aggregates.filters.constraints import Refuse, Require
from isolate_aggregates.request import Flavor
from isolate_aggregates.testing import PlainRequest

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
    request = PlainRequest(
        Flavor('f', extra_specs=dict(extra_specs)),
        project_id='me',
        scheduler_hints={'reservation': tuple(hint)} if hint else {},
    )
    request_filter = BlazarReservation(
        preemptible_aggregate='spot', **settings
    )
    return list(request_filter(request, index))


@cases(
    ('hint', 'required'),
    {
        'owner': (['r1'], (MINE,)),
        'granted project, old zone': (['r2'], (GRANTED,)),
        'only what is owned': (['r1', 'r3'], (MINE,)),
        'either of two': (['r1', 'r2'], (MINE, GRANTED)),
    },
)
def test_rule_1_a_hint_requires_the_reservations_the_project_owns(
    hint, required
):
    [conclusion] = conclusions(hint=hint)
    assert isinstance(conclusion, Require)
    assert conclusion.aggregates == required


@pytest.mark.parametrize(
    ('hint', 'kind'),
    [
        ('r3', 'foreign-reservation'),
        ('r9', 'unknown-reservation'),
        ('r4', 'unknown-reservation'),
        ('freepool', 'foreign-reservation'),
    ],
)
def test_rule_1_a_hint_must_name_a_reservation_of_the_project(hint, kind):
    [conclusion] = conclusions(hint=[hint])
    assert isinstance(conclusion, Refuse)
    assert conclusion.cause.kind == kind


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
    [conclusion] = conclusions({key: value})
    assert conclusion.cause.kind == 'no-reservation-named'


def test_rule_1_takes_precedence_over_rule_2():
    [conclusion] = conclusions(RESERVED[0], hint=['r3'])
    assert isinstance(conclusion, Refuse)


def test_rule_3_preemptible_servers_use_the_preemptible_aggregate_alone():
    results = conclusions(
        {'blazar:preemptible': 'true'}, allow_preemptibles=True
    )
    assert [one.aggregates for one in results] == [
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
    [conclusion] = conclusions(extra_specs, **settings)
    assert conclusion.aggregates == (POOL, SPOT, MINE, GRANTED, FOREIGN)
    assert conclusion.cause.kind == 'no-reservation-named'


def test_without_aggregates_of_blazar_there_is_nothing_to_forbid():
    assert conclusions(index=AggregateIndex([OPEN])) == []


def test_without_reservations_there_is_no_lock():
    request_filter = BlazarReservation()
    assert list(request_filter.locks(AggregateIndex([POOL, OPEN]))) == []


def test_a_cloud_can_require_a_reservation_for_every_server():
    [conclusion] = conclusions(reservation_required=True)
    assert isinstance(conclusion, Refuse)
    assert conclusion.cause.kind == 'reservation-required'


@pytest.mark.parametrize(
    ('arguments', 'reasons'),
    [
        (
            {'hint': ['r1', 'r2']},
            ['aggregates r1, r2: the hint reservation=r1,r2'],
        ),
        (
            {'hint': ['r9']},
            ['the hint reservation=r9 names no existing reservation'],
        ),
        (
            {'hint': ['r3']},
            [
                'the hint reservation=r3 names a reservation that project me '
                'does not own'
            ],
        ),
        (
            {'index': AggregateIndex([MINE])},
            [
                'aggregate r1: managed by Blazar, and the request names no '
                'reservation'
            ],
        ),
        (
            {
                'extra_specs': {'blazar:preemptible': 'true'},
                'allow_preemptibles': True,
                'index': AggregateIndex([SPOT]),
            },
            ['aggregate spot: preemptible servers use aggregate spot'],
        ),
        (
            {'reservation_required': True},
            [
                'every server needs a reservation in this cloud; give the '
                'scheduler hint reservation=<id>'
            ],
        ),
    ],
)
def test_the_reason_names_the_rule(arguments, reasons):
    assert [found.reason for found in conclusions(**arguments)] == reasons
