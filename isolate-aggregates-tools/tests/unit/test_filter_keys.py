# SPDX-License-Identifier: Apache-2.0
"""What opens the locks of each filter."""

import pytest

from isolate_aggregates.filters.blazar_reservation import BlazarReservation
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates_tools import filter_keys
from isolate_aggregates_tools.filter_keys import ReservationKeys


@pytest.mark.parametrize(
    ('request_filter', 'sources'),
    [
        (IsolateAggregates(), {'flavor', 'image'}),
        (IsolateAggregates(('flavor',)), {'flavor'}),
        (IsolateTenants(), set()),
        (BlazarReservation(), {'flavor', 'hint'}),
        (ReservationPrefix(('r:',), (), ('hint',)), {'flavor', 'hint'}),
        # What a tenant claims counts only for a prefix that requires.
        (ReservationPrefix((), ('r:',), ('hint',)), {'flavor'}),
    ],
)
def test_each_filter_has_its_sources_of_keys(request_filter, sources):
    assert set(filter_keys.sources(request_filter)) == sources


def test_filters_have_keys_of_reservations_and_projects():
    prefix = ReservationPrefix(('r:',), ('f:',), (), 'owner')
    keys = filter_keys.of_reservations(prefix)
    assert keys == ReservationKeys(('r:',), ('f:',), 'owner')
    assert filter_keys.of_projects(IsolateTenants()) == ('filter_tenant_id',)
