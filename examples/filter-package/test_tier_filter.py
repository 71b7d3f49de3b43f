# SPDX-License-Identifier: Apache-2.0
"""A tier is for its own flavors."""

from tier_filter import Tiers

from isolate_aggregates import testing

CLOUD = testing.make_snapshot(
    [testing.make_aggregate('gold', {'tier': 'gold'}, hosts=['cn1'])],
    [testing.make_compute_node('cn1'), testing.make_compute_node('cn2')],
)
FILTERS = {'tiers': Tiers()}
GOLD = testing.make_flavor('g1.small', {'tier:name': 'gold'})


def test_gold():
    """A gold flavor may use gold hosts."""
    request = testing.make_request(GOLD)
    assert testing.hosts_for(request, CLOUD, FILTERS) == ['cn1', 'cn2']


def test_others():
    """Any other flavor may not, and the reason says why."""
    request = testing.make_request()
    assert testing.hosts_for(request, CLOUD, FILTERS) == ['cn2']
    assert testing.reasons_for(request, CLOUD, FILTERS) == [
        'aggregate gold: kept for tier gold, and flavor m1.small does not '
        'have tier:name=gold'
    ]
