# SPDX-License-Identifier: Apache-2.0
"""Which metadata of aggregates the filters may read."""

import pytest

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.aggregate_instance_extra_specs import (
    AggregateInstanceExtraSpecs,
)
from isolate_aggregates.filters.blazar_reservation import BlazarReservation
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix


class Undeclared(IsolateAggregates):
    """Not of this package, so its declared metadata is not relied on."""

    REPLACES = ()


@pytest.mark.parametrize(
    ('filters', 'reads_zones'),
    [
        ([IsolateAggregates(), ReservationPrefix()], False),
        ([IsolateTenants()], False),
        ([BlazarReservation()], True),
        ([AggregateInstanceExtraSpecs()], True),
        ([Undeclared()], True),
        ([IsolateAggregates(), Undeclared()], True),
        ([ReservationPrefix(required_prefixes=('AVAIL',))], True),
        ([ReservationPrefix(owner_key='availability_zone ')], True),
        ([ReservationPrefix(owner_key='\uff41vailability_zone')], True),
        ([ReservationPrefix(required_prefixes=('available',))], False),
    ],
)
def test_zones_are_read_if_a_filter_may_read_them(filters, reads_zones):
    loaded_filters = [
        LoadedFilter(type(each).__name__, each) for each in filters
    ]
    may_read = loading.may_read(loaded_filters, 'availability_zone')
    assert may_read == reads_zones
