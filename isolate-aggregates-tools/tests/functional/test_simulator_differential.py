# SPDX-License-Identifier: Apache-2.0
"""The simulator returns the same as a real Placement.

Each example is a random cloud in a real Placement in this process, and random
queries for both; with ``THOROUGH=1`` there are ten times as many.

Placement guarantees no order, so responses are compared without it, but with
the number of equal candidates. With ``limit``, each side may choose different
candidates: both must return the same number, all of which must exist without
the limit.

Placement 16.0 has three bugs that make its response depend on the order of
Python sets. If responses differ, commands must compare them, and the responses
must be equal once the bugs are patched. The last tests show one
bug each.
"""

from collections import Counter
import contextlib
import dataclasses
from urllib import parse

from hypothesis import event, given
from hypothesis import strategies as st
from mocked_answers import comparable
import placement_repairs
import placement_rows
import pytest
import random_clouds
from thorough import examples

from isolate_aggregates import exception
from isolate_aggregates_tools import comparison
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.embedded import EmbeddedPlacement
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.microversion import Feature
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.simulator import Simulator
from isolate_aggregates_tools.simulator import query as query_strings
from isolate_aggregates_tools.testing.service import MockedService

NEWEST = Feature(39, 'a test', 'Yoga')


@pytest.fixture(scope='module')
def real():
    """Placement, with all that the queries may name."""
    with contextlib.closing(EmbeddedPlacement()) as placement:
        adapter = placement.open()
        client = PlacementClient(adapter)
        for trait in random_clouds.CUSTOM_TRAITS:
            client.send('PUT', f'/traits/{trait}')
        for resource_class in random_clouds.CUSTOM_CLASSES:
            client.send('PUT', f'/resource_classes/{resource_class}')
        yield adapter


@pytest.fixture(scope='module')
def placement(real):
    return PlacementClient(real)


@pytest.fixture
def both(placement):
    """Load a cloud into Placement and into a simulator."""

    def load(cloud):
        placement_rows.load(cloud)
        simulator = Simulator(
            cloud,
            random_clouds.CUSTOM_TRAITS,
            random_clouds.CUSTOM_CLASSES,
        )
        return Both(placement, simulator)

    return load


class Both:
    """Placement and the simulator with the same cloud."""

    def __init__(self, placement, simulator):
        self.placement = placement
        self.simulator = simulator

    def theirs(self, params):
        """Return the service's candidates and provider summaries."""
        document = self.placement.get(
            f'/allocation_candidates?{parse.urlencode(params)}', NEWEST
        )
        candidates = [
            candidate(
                {
                    uuid: allocation['resources']
                    for uuid, allocation in request['allocations'].items()
                },
                request['mappings'],
            )
            for request in document['allocation_requests']
        ]
        summaries = {
            uuid: {**summary, 'traits': frozenset(summary['traits'])}
            for uuid, summary in document['provider_summaries'].items()
        }
        return candidates, summaries

    def ours(self, params):
        """Return the simulator's candidates and provider summaries."""
        answer = self.simulator.allocation_candidates(parse.urlencode(params))
        pairs = zip(answer.allocation_requests, answer.mappings, strict=True)
        summaries = {
            uuid: {
                'resources': {
                    resource_class: {
                        'capacity': amount,
                        'used': summary.used[resource_class],
                    }
                    for resource_class, amount in summary.capacity.items()
                },
                'traits': summary.traits,
                'parent_provider_uuid': summary.parent,
                'root_provider_uuid': summary.root,
            }
            for uuid, summary in answer.summaries.items()
        }
        return [candidate(*pair) for pair in pairs], summaries

    def disagreement(self, params):
        """Return what differs in the answers to a query; None if nothing."""
        try:
            ours = self.ours(params)
        except exception.BadQuery:
            event('refused')
            with pytest.raises(exception.BadQuery):
                self.theirs(params)
            return None
        event('some candidates' if ours[0] else 'no candidates')
        everything = self.ours(unlimited(params))
        limit = next((int(n) for name, n in params if name == 'limit'), 0)
        most = min(limit or len(everything[0]), len(everything[0]))
        assert len(ours[0]) == len(set(ours[0])) == most
        assert set(ours[0]) <= set(everything[0])
        try:
            theirs = self.theirs(params)
        except exception.ServiceError as exc:
            return exc
        same = len(theirs[0]) == len(set(theirs[0])) == len(ours[0])
        same = same and set(theirs[0]) <= set(everything[0])
        same = same and theirs[1].items() <= everything[1].items()
        if len(ours[0]) == len(everything[0]):
            same = same and theirs[1] == ours[1]
        return None if same else (ours, theirs)


def unlimited(params):
    """The same query without its limit."""
    return [(name, value) for name, value in params if name != 'limit']


def candidate(allocations, mappings):
    """A candidate as a value that can be in a set."""
    return (
        frozenset(
            (uuid, frozenset(amounts.items()))
            for uuid, amounts in allocations.items()
        ),
        frozenset(
            (suffix, frozenset(uuids)) for suffix, uuids in mappings.items()
        ),
    )


@st.composite
def worlds(draw):
    """A cloud and some questions about its candidates."""
    cloud = draw(random_clouds.clouds())
    uuids = [provider.uuid for provider in cloud]
    queries = random_clouds.candidate_queries(uuids)
    return cloud, draw(st.lists(queries, min_size=2, max_size=3))


@examples(50)
@given(world=worlds())
def test_placement_offers_the_same_candidates(both, world):
    cloud, queries = world
    both = both(cloud)
    for params in queries:
        found = both.disagreement(params)
        if found:
            event('a known mistake of Placement')
            asked = query_strings.candidates(params)
            assert comparison.may_differ(asked, cloud), found
            if isinstance(found, exception.ServiceFailed):
                assert any(p.is_sharing and p.parent for p in cloud), found
            ours, summaries = both.ours(unlimited(params))
            with placement_repairs.repaired():
                theirs = both.theirs(unlimited(params))
            assert Counter(theirs[0]) == Counter(ours), found
            assert theirs[1] == summaries, found


@st.composite
def provider_worlds(draw):
    """A cloud and some questions about its providers."""
    cloud = draw(random_clouds.clouds())
    queries = random_clouds.provider_queries(cloud)
    return cloud, draw(st.lists(queries, min_size=1, max_size=3))


@examples(25)
@given(world=provider_worlds())
def test_placement_lists_the_same_providers(both, world):
    cloud, queries = world
    both = both(cloud)
    for params in queries:
        query = parse.urlencode(params)
        try:
            ours = both.simulator.resource_providers(query)
        except exception.BadQuery:
            event('refused')
            with pytest.raises(exception.BadQuery):
                both.placement.get(f'/resource_providers?{query}', NEWEST)
            continue
        event('some providers' if ours else 'no providers')
        theirs = both.placement.get(f'/resource_providers?{query}', NEWEST)
        assert {provider.uuid for provider in ours} == {
            provider['uuid'] for provider in theirs['resource_providers']
        }
        assert len(ours) == len(theirs['resource_providers'])


# The older microversions that clients send, by path.
MINORS = {
    '/allocation_candidates': (29, 31, 32, 33, 35, 36),
    '/resource_providers': (14, 18, 29, 32),
}


@st.composite
def old_worlds(draw):
    """A cloud, and questions about it with microversions to ask them at."""
    cloud, queries = draw(worlds())
    listing = random_clouds.provider_queries(cloud)
    paths = [('/allocation_candidates', unlimited(q)) for q in queries]
    paths.append(('/resource_providers', draw(listing)))
    # Without values that only the newest microversions accept.
    plain = [
        (path, [(k, v) for k, v in params if not v.startswith('in:')])
        for path, params in paths
    ]
    questions = [
        (path, params, minor)
        for path, params in paths + plain
        for minor in draw(st.sets(st.sampled_from(MINORS[path]), min_size=2))
    ]
    return cloud, questions


@pytest.mark.slow
@examples(25)
@given(world=old_worlds())
def test_placement_answers_the_same_at_each_microversion(real, world):
    cloud, questions = world
    placement_rows.load(cloud)
    snapshot = Snapshot(
        'test',
        providers=cloud,
        traits=frozenset(random_clouds.CUSTOM_TRAITS),
        resource_classes=frozenset(random_clouds.CUSTOM_CLASSES),
    )
    mocked = MockedService(snapshot, '1.39', '/placement')
    for path, params, minor in questions:
        query = parse.urlencode(params)
        headers = {'OpenStack-API-Version': f'placement 1.{minor}'}
        answer = mocked.answer(
            'GET', path, query, {**headers, 'X-Auth-Token': 'admin'}
        )
        ours = comparable(answer.status, answer.headers, answer.document)
        event(f'{path} {ours.status}')

        def theirs(url, headers=headers):
            answer = real.get(url, headers=headers, raise_exc=False)
            return comparable(
                answer.status_code, answer.headers, answer.json()
            )

        if theirs(f'{path}?{query}') != ours:
            event('a known mistake of Placement')
            with placement_repairs.repaired():
                assert theirs(f'{path}?{query}') == ours


HERE = frozenset(random_clouds.AGGREGATES[:1])
SHARES = frozenset([random_clouds.SHARES])


def provider(number, amounts, parent=None, **more):
    return Provider(
        uuid=random_clouds.uuid(1, number),
        name=f'provider-{number}',
        parent=parent and parent.uuid,
        inventories={rc: Inventory(n) for rc, n in amounts.items()},
        **more,
    )


def amounts(candidates):
    """The amounts of each candidate by the last digits of the provider."""
    return sorted(
        sorted(
            (uuid[-1:], *dict(given).items()) for uuid, given in allocations
        )
        for allocations, _ in candidates
    )


def test_zero_steps_fit_no_amount(both):
    """The API refuses such an inventory; it could be in the database."""
    host = dataclasses.replace(
        provider(0, {}), inventories={'VCPU': Inventory(4, step_size=0)}
    )
    both = both([host])
    query = [('resources', 'VCPU:1')]
    assert both.theirs(query) == both.ours(query) == ([], {})


def test_a_ratio_of_zero_fits_no_amount(both):
    """The API takes such an inventory."""
    host = dataclasses.replace(
        provider(0, {}), inventories={'VCPU': Inventory(4, allocation_ratio=0)}
    )
    both = both([host])
    query = [('resources', 'VCPU:1')]
    assert both.theirs(query) == both.ours(query) == ([], {})


def test_a_capacity_is_rounded_down(both):
    """100 times 1.15 is a little less than 115 in floating point."""
    inventory = Inventory(100, allocation_ratio=1.15)
    host = dataclasses.replace(
        provider(0, {}), inventories={'VCPU': inventory}
    )
    both = both([host])
    for amount, offered in ((114, 1), (115, 0)):
        query = [('resources', f'VCPU:{amount}')]
        assert both.theirs(query) == both.ours(query)
        assert len(both.ours(query)[0]) == offered


def test_placement_adds_up_amounts_of_other_candidates(both):
    """Two NUMA nodes, one CPU from any and two from one: four ways.

    Unless group_policy is none, Placement keeps the sum of one candidate as
    the amount that the next one starts from.
    """
    host = provider(0, {})
    nodes = [provider(number, {'VCPU': 4}, host) for number in (1, 2)]
    both = both([host, *nodes])
    query = [('resources', 'VCPU:1'), ('resources1', 'VCPU:2')]
    four = [
        [('1', ('VCPU', 1)), ('2', ('VCPU', 2))],
        [('1', ('VCPU', 2)), ('2', ('VCPU', 1))],
        [('1', ('VCPU', 3))],
        [('2', ('VCPU', 3))],
    ]
    assert amounts(both.ours(query)[0]) == four
    assert amounts(both.theirs(query)[0]) != four
    with placement_repairs.repaired():
        assert amounts(both.theirs(query)[0]) == four
    query.append(('group_policy', 'none'))
    assert amounts(both.theirs(query)[0]) == four


def test_placement_loses_all_anchors_but_one(both):
    """Disk from shared storage, and in a second group CPU of a host.

    Storage serves the first group in the same way around each host, and
    Placement keeps one of these ways: at most one host is offered.
    """
    both = both(
        [
            provider(0, {'DISK_GB': 9}, aggregates=HERE, traits=SHARES),
            provider(1, {'VCPU': 1}, aggregates=HERE),
            provider(2, {'VCPU': 1}, aggregates=HERE),
        ]
    )
    query = [('resources', 'DISK_GB:5'), ('resources1', 'VCPU:1')]
    two = [
        [('0', ('DISK_GB', 5)), ('1', ('VCPU', 1))],
        [('0', ('DISK_GB', 5)), ('2', ('VCPU', 1))],
    ]
    assert amounts(both.ours(query)[0]) == two
    assert len(both.theirs(query)[0]) < 2
    with placement_repairs.repaired():
        assert amounts(both.theirs(query)[0]) == two


def test_a_repaired_placement_has_no_candidate_twice(both):
    """What comes only from sharing providers is the same around each host."""
    both = both(
        [
            provider(0, {'DISK_GB': 9}, aggregates=HERE, traits=SHARES),
            provider(1, {'SRIOV_NET_VF': 9}, aggregates=HERE, traits=SHARES),
            provider(2, {'VCPU': 1}, aggregates=HERE),
            provider(3, {'VCPU': 1}, aggregates=HERE),
        ]
    )
    query = [('resources', 'DISK_GB:5'), ('resources1', 'SRIOV_NET_VF:1')]
    one = [[('0', ('DISK_GB', 5)), ('1', ('SRIOV_NET_VF', 1))]]
    assert amounts(both.ours(query)[0]) == one
    with placement_repairs.repaired():
        assert amounts(both.theirs(query)[0]) == one


def test_placement_fails_over_storage_below_a_root(both):
    """Shared storage that is not a root itself makes Placement answer 500.

    Unless its own tree is among the hosts that could be candidates.
    """
    rack = provider(0, {})
    both = both(
        [
            rack,
            provider(1, {'DISK_GB': 9}, rack, aggregates=HERE, traits=SHARES),
            provider(2, {'VCPU': 1}, aggregates=HERE),
        ]
    )
    query = [('resources', 'DISK_GB:5,VCPU:1')]
    one = [[('1', ('DISK_GB', 5)), ('2', ('VCPU', 1))]]
    assert amounts(both.ours(query)[0]) == one
    with pytest.raises(exception.ServiceError, match='500'):
        both.theirs(query)
    with placement_repairs.repaired():
        assert amounts(both.theirs(query)[0]) == one
