# SPDX-License-Identifier: Apache-2.0
"""The filter reservation_prefix."""

import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.constraints import (
    Cause,
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.testing import PlainRequest

FREE = Aggregate('uuid-free', 'free', {'reservation:0': 'true'})
ONE = Aggregate('uuid-one', 'one', {'reservation:1': 'true'})
TWO = Aggregate(
    'uuid-two', 'two', {'reservation:2': 'x', 'blazar:owner': 'mine'}
)
GRANTED = Aggregate(
    'uuid-granted', 'granted', {'reservation:3': 'x', 'mine': 'blazar:tenant'}
)
BOTH = Aggregate('uuid-both', 'both', ONE.metadata | TWO.metadata)
POOL = Aggregate('uuid-pool', 'pool', {'pool:a': 'x'})
OPEN = Aggregate('uuid-open', 'open', {'reservations': 'x'})
INDEX = AggregateIndex([FREE, ONE, TWO, GRANTED, POOL, OPEN])

RESERVATION = ('reservation:',)


def naming(*keys, image_keys=(), hints=(), project='mine'):
    image = Image('i', properties=dict.fromkeys(image_keys, 'true'))
    return PlainRequest(
        Flavor('f', extra_specs=dict.fromkeys(keys, 'true')),
        image if image_keys else None,
        project_id=project,
        scheduler_hints=dict.fromkeys(hints, ('true',)),
    )


def named(key):
    return Cause('named-reservation', f'the request names {key}')


def conclusions(
    request, required=(), forbidden=(), index=INDEX, sources=('image', 'hint')
):
    reservation_prefix = ReservationPrefix(required, forbidden, sources)
    return [
        part
        for constraint in reservation_prefix(request, index)
        for part in getattr(constraint, 'parts', [constraint])
    ]


def test_a_named_reservation_is_required_and_nothing_forbidden():
    [conclusion] = conclusions(
        naming('reservation:1'), RESERVATION, RESERVATION
    )
    assert conclusion == Require((ONE,), named('reservation:1'))


@pytest.mark.parametrize('source', ['image_keys', 'hints'])
@pytest.mark.parametrize(
    ('key', 'aggregate'),
    [('reservation:2', TWO), ('reservation:3', GRANTED)],
    ids=['owner', 'granted'],
)
def test_a_tenant_can_name_its_own_reservation(source, key, aggregate):
    request = naming(**{source: [key]})
    [conclusion] = conclusions(request, RESERVATION, RESERVATION)
    assert conclusion == Require((aggregate,), named(key))


@pytest.mark.parametrize('source', ['image_keys', 'hints'])
@pytest.mark.parametrize('project', ['other', None])
def test_a_reservation_that_a_tenant_does_not_own_is_refused(source, project):
    request = naming(**{source: ['reservation:2']}, project=project)
    [conclusion] = conclusions(request, RESERVATION, RESERVATION)
    assert isinstance(conclusion, Refuse)
    assert conclusion.cause.kind == 'foreign-reservation'


def test_a_tenant_gets_only_its_own_aggregates_with_a_shared_key():
    other = Aggregate(
        'uuid-other', 'other', {'reservation:2': 'x', 'blazar:owner': 'other'}
    )
    index = AggregateIndex([other, TWO])
    request = naming(image_keys=['reservation:2'])
    [conclusion] = conclusions(request, RESERVATION, RESERVATION, index)
    assert conclusion == Require((TWO,), named('reservation:2'))


def test_a_flavor_is_trusted_for_every_project():
    request = naming('reservation:2', project='other')
    [conclusion] = conclusions(request, RESERVATION, RESERVATION)
    assert conclusion.aggregates == (TWO,)


def test_a_foreign_key_beside_the_flavors_own_is_refused():
    request = naming('reservation:1', image_keys=['reservation:0'])
    [conclusion] = conclusions(request, RESERVATION, RESERVATION)
    assert isinstance(conclusion, Refuse)


@pytest.mark.parametrize('source', ['image_keys', 'hints'])
def test_a_disabled_key_source_opens_nothing(source):
    request = naming(**{source: ['reservation:2']})
    [conclusion] = conclusions(request, RESERVATION, RESERVATION, sources=())
    assert conclusion.aggregates == (FREE, ONE, TWO, GRANTED)


@pytest.mark.parametrize('key', ['reservation:2', 'reservation:bogus'])
def test_a_tenants_key_opens_nothing_if_no_prefix_is_required(key):
    [conclusion] = conclusions(naming(image_keys=[key]), (), RESERVATION)
    assert conclusion.aggregates == (FREE, ONE, TWO, GRANTED)


def test_a_request_without_a_key_stays_out_of_all_reservations():
    [conclusion] = conclusions(naming(), RESERVATION, RESERVATION)
    assert isinstance(conclusion, Forbid)
    assert conclusion.aggregates == (FREE, ONE, TWO, GRANTED)
    assert conclusion.cause == Cause(
        'no-reservation-named',
        'kept for requests that name their reservation: key, and flavor f '
        'does not name one',
        ('reservation:',),
    )


def test_an_image_without_a_key_is_named_in_the_cause():
    [conclusion] = conclusions(naming(image_keys=['os']), (), RESERVATION)
    assert conclusion.cause.text.endswith(
        'and neither flavor f nor image i names one'
    )


def test_keys_are_named_in_their_order():
    keys = [f'reservation:{number}' for number in (8, 6, 9, 7)]
    [conclusion] = conclusions(naming(*keys), RESERVATION)
    assert conclusion.cause == Cause(
        'unknown-reservation',
        f'no aggregate has the metadata key {", ".join(sorted(keys))}, which '
        'the request names',
    )


def test_several_keys_of_one_prefix_are_alternatives():
    [conclusion] = conclusions(
        naming('reservation:2', 'reservation:1'), RESERVATION
    )
    assert conclusion.aggregates == (ONE, TWO)


def test_an_aggregate_with_two_of_the_keys_is_named_once():
    request = naming('reservation:1', 'reservation:2')
    [conclusion] = conclusions(
        request, RESERVATION, index=AggregateIndex([BOTH])
    )
    assert conclusion.aggregates == (BOTH,)


def test_different_prefixes_must_all_be_satisfied():
    request = naming('reservation:1', 'pool:a')
    results = conclusions(request, ('reservation:', 'pool:'))
    assert [one.aggregates for one in results] == [(ONE,), (POOL,)]


def test_each_prefix_is_forbidden_by_itself():
    request = naming('reservation:1')
    [conclusion] = conclusions(request, (), ('reservation:', 'pool:'))
    assert conclusion.aggregates == (POOL,)


def test_an_unknown_reservation_is_refused():
    [conclusion] = conclusions(
        naming('reservation:9'), RESERVATION, RESERVATION
    )
    assert isinstance(conclusion, Refuse)
    assert conclusion.cause.kind == 'unknown-reservation'


def test_one_unknown_reservation_among_known_ones_is_refused():
    [conclusion] = conclusions(
        naming('reservation:1', 'reservation:9'), RESERVATION
    )
    assert isinstance(conclusion, Refuse)


def test_a_key_that_is_only_the_prefix_is_refused():
    [conclusion] = conclusions(
        naming('reservation:'), RESERVATION, RESERVATION
    )
    assert isinstance(conclusion, Refuse)


def test_without_prefixes_there_is_no_constraint():
    assert conclusions(naming('reservation:1')) == []


def test_without_prefixes_the_request_is_not_read():
    assert list(ReservationPrefix()(None, AggregateIndex())) == []


def test_nothing_is_forbidden_where_no_aggregate_is_reserved():
    index = AggregateIndex([OPEN])
    assert conclusions(naming(), RESERVATION, RESERVATION, index) == []


@pytest.mark.parametrize(
    ('spec', 'value', 'is_forbidden'),
    [
        ('resources:CUSTOM_RESERVATION_1', '1', False),
        ('resources1:CUSTOM_RESERVATION_1', '2', False),
        ('resources:CUSTOM_RESERVATION_1', '0', True),
        ('resources:CUSTOM_RESERVATION_1', 'x', True),
        ('resources:CUSTOM_OTHER', '1', True),
        ('trait:CUSTOM_RESERVATION_1', 'required', True),
    ],
)
def test_the_class_of_an_instance_reservation_picks_the_host(
    spec, value, is_forbidden
):
    request = PlainRequest(Flavor('f', extra_specs={spec: value}))
    results = conclusions(request, RESERVATION, RESERVATION)
    assert bool(results) == is_forbidden


def test_an_image_cannot_claim_an_instance_reservation():
    request = naming(image_keys=['resources:CUSTOM_RESERVATION_1'])
    [conclusion] = conclusions(request, RESERVATION, RESERVATION)
    assert isinstance(conclusion, Forbid)


def test_a_flavor_of_an_instance_reservation_still_needs_its_key():
    request = PlainRequest(
        Flavor(
            'f',
            extra_specs={
                'resources:CUSTOM_RESERVATION_1': '1',
                'reservation:1': 'true',
            },
        )
    )
    [conclusion] = conclusions(request, RESERVATION, RESERVATION)
    assert conclusion == Require((ONE,), named('reservation:1'))


@pytest.mark.parametrize('key', ['Reservation:9', 'reservatión:9'])
def test_a_prefix_in_another_case_closes_and_cannot_be_named(key):
    odd = Aggregate('uuid-odd', 'odd', {key: 'true'})
    index = AggregateIndex([odd, OPEN])
    [conclusion] = conclusions(naming(), RESERVATION, RESERVATION, index)
    assert isinstance(conclusion, Forbid)
    assert conclusion.aggregates == (odd,)
    [conclusion] = conclusions(
        naming('reservation:9'), RESERVATION, RESERVATION, index
    )
    assert isinstance(conclusion, Refuse)


def test_forbidden_aggregates_are_computed_once_for_all_requests():
    reservation_prefix = ReservationPrefix((), RESERVATION)
    [first] = reservation_prefix(naming(), INDEX)
    [second] = reservation_prefix(naming('other:1'), INDEX)
    assert first.uuids == {a.uuid for a in (FREE, ONE, TWO, GRANTED)}
    assert second.uuids is first.uuids


@pytest.mark.parametrize(
    ('project', 'requester'),
    [('other', 'project other'), (None, 'a request without a project')],
)
def test_the_reason_names_the_project_without_the_reservation(
    project, requester
):
    request = naming(hints=['reservation:2'], project=project)
    [conclusion] = conclusions(request, RESERVATION)
    assert conclusion.reason == (
        'reservation:2 is named by the image or a hint, but '
        f'{requester} does not own it'
    )


def test_the_reason_names_alternative_keys():
    request = naming('reservation:1', 'reservation:2')
    [conclusion] = conclusions(request, RESERVATION)
    assert conclusion.cause.text == (
        'the request names reservation:1 or reservation:2'
    )
