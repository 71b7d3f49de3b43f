# SPDX-License-Identifier: Apache-2.0
"""The filter reservation_prefix."""

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.destination import Forbid, Refuse, Require
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates.request import Flavor, Image, RequestSpec

FREE = Aggregate('uuid-free', 'free', {'reservation:0': 'true'})
ONE = Aggregate('uuid-one', 'one', {'reservation:1': 'true'})
TWO = Aggregate('uuid-two', 'two', {'reservation:2': 'whatever'})
BOTH = Aggregate('uuid-both', 'both', ONE.metadata | TWO.metadata)
POOL = Aggregate('uuid-pool', 'pool', {'pool:a': 'x'})
OPEN = Aggregate('uuid-open', 'open', {'reservations': 'x'})
INDEX = AggregateIndex([FREE, ONE, TWO, POOL, OPEN])

RESERVATION = ('reservation:',)


def naming(*keys, image_keys=()):
    image = Image('i', properties=dict.fromkeys(image_keys, 'true'))
    return RequestSpec(
        Flavor('f', extra_specs=dict.fromkeys(keys, 'true')),
        image if image_keys else None,
    )


def conclusions(request, required=(), forbidden=(), index=INDEX):
    return list(ReservationPrefix(required, forbidden)(request, index))


def test_a_named_reservation_is_required_and_nothing_forbidden():
    [found] = conclusions(naming('reservation:1'), RESERVATION, RESERVATION)
    assert found == Require((ONE,), 'the request names reservation:1')


def test_an_image_may_name_the_reservation():
    [found] = conclusions(naming(image_keys=['reservation:2']), RESERVATION)
    assert found.aggregates == (TWO,)


def test_a_request_that_names_none_stays_out_of_all():
    [found] = conclusions(naming(), RESERVATION, RESERVATION)
    assert isinstance(found, Forbid)
    assert found.aggregates == (FREE, ONE, TWO)
    assert found.reason == (
        'aggregates free, one, two: kept for requests that name their '
        'reservation: key, and flavor f does not name one'
    )


def test_several_keys_of_one_prefix_are_alternatives():
    [found] = conclusions(
        naming('reservation:2', 'reservation:1'), RESERVATION
    )
    assert found.aggregates == (ONE, TWO)


def test_an_aggregate_with_two_of_the_keys_is_named_once():
    request = naming('reservation:1', 'reservation:2')
    [found] = conclusions(request, RESERVATION, index=AggregateIndex([BOTH]))
    assert found.aggregates == (BOTH,)


def test_different_prefixes_must_all_be_satisfied():
    request = naming('reservation:1', 'pool:a')
    found = conclusions(request, ('reservation:', 'pool:'))
    assert [one.aggregates for one in found] == [(ONE,), (POOL,)]


def test_each_prefix_is_forbidden_by_itself():
    request = naming('reservation:1')
    [found] = conclusions(request, (), ('reservation:', 'pool:'))
    assert found.aggregates == (POOL,)


def test_a_reservation_that_no_aggregate_has_is_refused():
    [found] = conclusions(naming('reservation:9'), RESERVATION, RESERVATION)
    assert found == Refuse(
        'no aggregate has the metadata key reservation:9, which the flavor '
        'or the image names'
    )


def test_one_unknown_reservation_among_known_ones_is_refused():
    [found] = conclusions(
        naming('reservation:1', 'reservation:9'), RESERVATION
    )
    assert isinstance(found, Refuse)


def test_a_key_that_is_only_the_prefix_is_refused():
    [found] = conclusions(naming('reservation:'), RESERVATION, RESERVATION)
    assert isinstance(found, Refuse)


def test_without_prefixes_nothing_is_concluded():
    assert conclusions(naming('reservation:1')) == []


def test_nothing_is_forbidden_where_no_aggregate_is_reserved():
    index = AggregateIndex([OPEN])
    assert conclusions(naming(), RESERVATION, RESERVATION, index) == []
