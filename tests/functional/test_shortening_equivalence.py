# SPDX-License-Identifier: Apache-2.0
"""With the check after it, a shortened query has the hosts of the long one.

Both are sent to a real Placement, for random clouds with rollups that are
correct, incomplete, or have surplus hosts.
"""

import uuid

from hypothesis import event, given
from hypothesis import strategies as st
import os_resource_classes as orc
import pytest
from thorough import examples

from isolate_aggregates import query_limit
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Shortener,
    memberships,
)
from isolate_aggregates.query_limit import shortener as algorithm
from isolate_aggregates.request import Flavor
from isolate_aggregates.tools.embedded import embedded_client
from isolate_aggregates.tools.placement import edits, group
from isolate_aggregates.tools.request import Request

HOSTS = {
    f'host{n}': str(uuid.uuid5(uuid.NAMESPACE_DNS, f'h{n}')) for n in range(5)
}
FILTERS = Pipeline({'isolate_aggregates': IsolateAggregates()})

# More locks than a family may have without branches.
locks = st.integers(0, 23).map('trait:CUSTOM_{}'.format)
members = st.frozensets(st.sampled_from(sorted(HOSTS)))
aggregates = st.lists(
    st.tuples(st.sets(locks, min_size=1, max_size=2), members),
    min_size=10,
    max_size=40,
).map(
    lambda found: [
        Aggregate(
            str(uuid.UUID(int=number)),
            f'aggregate-{number}',
            dict.fromkeys(keys, 'required'),
            hosts,
        )
        for number, (keys, hosts) in enumerate(found, start=1)
    ]
)
requests = st.sets(locks, max_size=2).map(
    lambda keys: Request(
        Flavor('f', vcpus=1, extra_specs=dict.fromkeys(keys, 'required'))
    )
)


@pytest.fixture(scope='module')
def placement():
    """Five hosts and nothing else."""
    with embedded_client() as placement:
        for name, provider in HOSTS.items():
            placement.send(
                'POST', '/resource_providers', {'name': name, 'uuid': provider}
            )
            placement.send(
                'PUT',
                f'/resource_providers/{provider}/inventories',
                {
                    'resource_provider_generation': 0,
                    'inventories': {orc.VCPU: {'total': 8}},
                },
            )
        yield placement


def hosts_without(placement, forbidden):
    """Return the hosts that Placement offers when aggregates are forbidden."""
    request = group.ResourceRequest()
    request.group().resources[orc.VCPU] = 1
    request.group().forbidden_aggregates.update(forbidden)
    answer = placement.allocation_candidates(request)
    offered = answer.by_root(request)
    return {name for name, uuid in HOSTS.items() if uuid in offered}


def place(placement, index, missing, stale):
    """Set memberships of hosts, with missing and stale rollups."""
    all_rollups = rollups(FILTERS.locks(index))
    for host, provider in HOSTS.items():
        held = index.aggregates_of.get(host, frozenset())
        right = {r.uuid for r in all_rollups if r.aggregates & held}
        wrong = {r.uuid for r in all_rollups} - right
        wanted = held | (right - missing.get(host, set()))
        wanted |= wrong & stale.get(host, set())
        edits.change_aggregates(
            placement, provider, lambda _, wanted=wanted: wanted
        )


def shorten(index, request, limit):
    """Return the forbidden aggregates, and their replacement."""
    destination = FILTERS.evaluate(request, index)
    shortener = Shortener(limit, FILTERS.locks, [OUR_HOST_FILTER])
    shortened = algorithm.shorten(shortener, destination, index, 0)
    return destination.forbidden_aggregates, shortened


def hosts_after(placement, shortened, limit):
    """Return the hosts of a shortened query, after the check."""
    assert query_limit.forbidden_length(len(shortened.forbidden)) <= limit
    offered = hosts_without(placement, shortened.forbidden)
    wanted = {HOSTS[name] for name in offered}
    members, _ = memberships.members(
        lambda: placement, limit, wanted, shortened
    )
    return {name for name in offered if HOSTS[name] not in members}


def some_rollups(data, index):
    """Draw some of the rollups for each host."""
    uuids = sorted(r.uuid for r in rollups(FILTERS.locks(index)))
    if not uuids:
        return {}
    return data.draw(
        st.dictionaries(
            st.sampled_from(sorted(HOSTS)), st.sets(st.sampled_from(uuids))
        )
    )


limits = st.integers(1, 30).map(query_limit.forbidden_length)


@pytest.mark.slow
@examples(12)
@given(aggregates, requests, limits, st.data())
def test_lagging_rollups_keep_out_exactly_the_same_hosts(
    placement, cloud, request, limit, data
):
    index = AggregateIndex(cloud)
    place(placement, index, some_rollups(data, index), {})
    plain, shortened = shorten(index, request, limit)
    if shortened is None:
        event('short enough')
        return
    event(f'rollups: {len(shortened.rollups)}')
    assert hosts_after(placement, shortened, limit) == hosts_without(
        placement, plain
    )


@examples(12)
@given(aggregates, requests, limits, st.data())
def test_stale_rollups_admit_no_other_hosts(
    placement, cloud, request, limit, data
):
    index = AggregateIndex(cloud)
    place(placement, index, {}, some_rollups(data, index))
    plain, shortened = shorten(index, request, limit)
    if shortened is None:
        event('short enough')
        return
    offered = hosts_after(placement, shortened, limit)
    expected_hosts = hosts_without(placement, plain)
    event(f'kept out for nothing: {len(expected_hosts - offered)}')
    assert offered <= expected_hosts
    # Only stale members of rollups are excluded in addition.
    uuids = {rollup.uuid for rollup in shortened.rollups}
    stale = {
        host
        for host in expected_hosts
        if uuids & placement.aggregates(HOSTS[host])
    }
    assert expected_hosts - offered == stale
