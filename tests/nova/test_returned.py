# SPDX-License-Identifier: Apache-2.0
"""The hosts that a shortened query returns are checked in Placement."""

from dripping import dripping_server
import pytest
from simulated_placement import SimulatedPlacement

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.rollups import Rollup
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Forbid, Require
from isolate_aggregates.filters.destination import ExplainedDestination
from isolate_aggregates.nova.returned import ReturnedHosts
from isolate_aggregates.placement import group
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.provider import Inventory, Provider
from isolate_aggregates.query_limit import Replacement, RequiredSubset


def uuid(number):
    return f'aaaaaaaa-0000-4000-8000-{number:012}'


LOCKED = tuple(Aggregate(uuid(n), f'locked-{n}') for n in range(5))
FAST = tuple(Aggregate(uuid(n), f'fast-{n}') for n in range(10, 15))
ROLLUP = Rollup('lock', uuid(99), frozenset(a.uuid for a in LOCKED))
HOST, OTHER, CHILD, DISKS = (
    f'bbbbbbbb-0000-4000-8000-00000000000{n}' for n in range(4)
)
# Room for two aggregates, or for one and the rollup.
LIMIT = group.forbidden_length(1) + group.forbidden_length(2)


class Placement(SimulatedPlacement):
    """Notes the queries that it answers."""

    def __init__(self):
        super().__init__()
        self.queries = []

    def request(self, url, method, microversion=None, **kwargs):
        """Answer a request."""
        self.queries.append(url.partition('?')[2])
        return super().request(url, method, microversion, **kwargs)

    def has(self, host=(), other=(), child=(), disks=()):
        """Set the aggregates of each provider."""
        shares = {'MISC_SHARES_VIA_AGGREGATE'}
        stock = {'DISK_GB': Inventory(100)}
        self.load(
            [
                Provider(HOST, 'host', aggregates=frozenset(host)),
                Provider(OTHER, 'other', aggregates=frozenset(other)),
                Provider(CHILD, 'c', HOST, aggregates=frozenset(child)),
                Provider(
                    DISKS,
                    'disks',
                    inventories=stock,
                    traits=frozenset(shares),
                    aggregates=frozenset(disks),
                ),
            ]
        )


@pytest.fixture
def placement():
    return Placement()


def shortened():
    """Return a decision whose query forbids a rollup of five aggregates."""
    destination = ExplainedDestination()
    destination.add(Forbid(LOCKED, 'is locked'), 'mine')
    return Decision(
        destination,
        AggregateIndex(LOCKED),
        Replacement(frozenset({ROLLUP.uuid}), (ROLLUP,), ROLLUP.aggregates),
    )


def leaving_out():
    """Return a decision whose query leaves required aggregates out."""
    destination = ExplainedDestination()
    destination.add(Require(FAST, 'is fast', 'TheirFilter'), 'mine')
    choice = frozenset(a.uuid for a in FAST)
    return Decision(
        destination,
        AggregateIndex(FAST),
        required_subset=RequiredSubset((), (choice,)),
    )


def check(placement, decision, nodes=(HOST, OTHER)):
    returned = ReturnedHosts(lambda: placement.client, LIMIT)
    reasons = returned.objections(decision, nodes)
    assert all(len(query) <= LIMIT for query in placement.queries)
    return reasons


JOINED = (
    'in Placement it is now in an aggregate that the request may not use; if '
    'this persists, run "isolate-aggregates audit"'
)
SHARING = (
    'a sharing provider in Placement is now in an aggregate that the request '
    'may not use'
)


@pytest.mark.parametrize('joined', LOCKED)
def test_a_host_that_has_joined_in_placement_only_is_refused(
    placement, joined
):
    placement.has(host={joined.uuid})
    assert check(placement, shortened()) == {HOST: [JOINED]}


def test_a_provider_below_a_host_counts(placement):
    placement.has(child={LOCKED[0].uuid})
    assert check(placement, shortened()) == {HOST: [JOINED]}


def test_storage_that_has_joined_may_serve_any_host(placement):
    placement.has(disks={LOCKED[0].uuid})
    assert check(placement, shortened()) == {HOST: [SHARING], OTHER: [SHARING]}


def test_storage_in_the_rollup_serves_no_returned_host(placement):
    """The query has left it out, even if another host has joined."""
    placement.has(other={LOCKED[0].uuid}, disks={LOCKED[0].uuid, ROLLUP.uuid})
    assert check(placement, shortened(), [HOST]) == {}


def test_hosts_that_were_not_returned_do_not_matter(placement):
    placement.has(other={LOCKED[0].uuid})
    assert check(placement, shortened(), [HOST]) == {}


def test_members_of_the_rollup_were_not_returned(placement):
    placement.has(other={LOCKED[0].uuid, ROLLUP.uuid})
    assert check(placement, shortened(), [HOST]) == {}
    # Placement is asked about one aggregate and the rollup at a time.
    assert len(placement.queries) == len(LOCKED)


def test_what_is_left_to_host_filters_holds_in_placement_too(placement):
    placement.has(host={FAST[3].uuid}, other={LOCKED[0].uuid})
    assert check(placement, leaving_out()) == {
        OTHER: [
            'aggregates fast-10, fast-11, fast-12, fast-13, fast-14: is fast; '
            'in Placement it is in no aggregate that meets this; if this '
            'persists, run "isolate-aggregates audit"'
        ]
    }


def test_the_membership_of_a_provider_below_is_not_that_of_the_host(
    placement,
):
    placement.has(child={FAST[0].uuid})
    assert list(check(placement, leaving_out(), [HOST])) == [HOST]


def test_placement_is_asked_only_until_all_hosts_are_found(placement):
    placement.has(host={FAST[0].uuid})
    assert check(placement, leaving_out(), [HOST]) == {}
    assert len(placement.queries) == 1


def test_placement_is_not_asked_without_hosts(placement):
    assert check(placement, shortened(), []) == {}
    assert placement.queries == []


def test_an_unavailable_placement_refuses_with_a_sentence():
    with dripping_server() as server:
        client = PlacementClient(server.adapter(), retries=0)
        returned = ReturnedHosts(lambda: client, LIMIT, longest=0.2)
        with pytest.raises(
            exception.RequestRefused,
            match=r'was shortened, and the returned hosts cannot be checked: '
            r'Placement has not answered completely within 0\.2 s',
        ):
            returned.objections(shortened(), [HOST])
        assert not server.has_ended


def test_a_late_check_asks_no_more():
    now = iter([0.0, 0.0, 100.0])
    placement = Placement()
    placement.has()
    returned = ReturnedHosts(
        lambda: placement.client, LIMIT, lambda: next(now)
    )
    with pytest.raises(exception.RequestRefused, match='takes too long'):
        returned.objections(shortened(), [HOST])
    assert len(placement.queries) == 1
