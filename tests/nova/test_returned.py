# SPDX-License-Identifier: Apache-2.0
"""The hosts that a shortened query returns are checked in Placement."""

import functools
import itertools
import types

from dripping import dripping_server
import pytest
from simulated_placement import SimulatedPlacement

from isolate_aggregates import query_limit
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.rollups import Rollup
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Destination, Forbid, Require
from isolate_aggregates.nova import candidates as nova_candidates
from isolate_aggregates.nova import recheck
from isolate_aggregates.nova.candidates import CheckedCandidates
from isolate_aggregates.nova.recheck import HostCheck
from isolate_aggregates.query_limit import Replacement, memberships
from isolate_aggregates.query_limit.required_aggregates import RequiredSubset
from isolate_aggregates.rest import deadline
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.provider import Inventory, Provider


def uuid(number):
    return f'aaaaaaaa-0000-4000-8000-{number:012}'


LOCKED = tuple(Aggregate(uuid(n), f'locked-{n}') for n in range(5))
FAST = tuple(Aggregate(uuid(n), f'fast-{n}') for n in range(10, 15))
ROLLUP = Rollup('lock', uuid(99), frozenset(a.uuid for a in LOCKED))
HOST, OTHER, CHILD, DISKS = (
    f'bbbbbbbb-0000-4000-8000-00000000000{n}' for n in range(4)
)
# Room for two aggregates, or for one and the rollup.
LIMIT = query_limit.forbidden_length(1) + query_limit.forbidden_length(2)


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
    destination = Destination()
    destination.add(Forbid(LOCKED, 'is locked'), 'mine')
    return Decision(
        destination,
        AggregateIndex(LOCKED),
        Replacement(frozenset({ROLLUP.uuid}), (ROLLUP,), ROLLUP.aggregates),
    )


def leaving_out():
    """Return a decision whose query leaves required aggregates out."""
    destination = Destination()
    destination.add(Require(FAST, 'is fast', 'TheirFilter'), 'mine')
    choice = frozenset(a.uuid for a in FAST)
    return Decision(
        destination,
        AggregateIndex(FAST),
        required_subset=RequiredSubset((), (choice,)),
    )


def candidate(*providers):
    """Return an allocation candidate as Nova has it."""
    return {'allocations': dict.fromkeys(providers)}


def candidates(nodes):
    """Return those of some nodes, each of which uses all it can."""
    used = {HOST: [HOST, CHILD, DISKS], OTHER: [OTHER, DISKS]}
    return {node: [candidate(*used[node])] for node in nodes}


def read(placement, decision, found):
    """Read candidates as Nova does; return those left, and the reasons."""
    failures = []
    check = HostCheck(None, lambda: placement.client, LIMIT).candidates(
        decision, failures.append
    )
    reasons = {}
    checked = {
        node: CheckedCandidates(
            check, node, of_node, functools.partial(reasons.setdefault, node)
        )
        for node, of_node in found.items()
    }
    left = {node: list(of_node) for node, of_node in checked.items()}
    assert {node: bool(of_node) for node, of_node in checked.items()} == {
        node: bool(of_node) for node, of_node in left.items()
    }
    assert all(len(query) <= LIMIT for query in placement.queries)
    # What is told of a failure is told once.
    assert [list(failure.reasons) for failure in failures] == [
        why for why in reasons.values() if 'cannot be checked' in why[0]
    ]
    return left, reasons


@pytest.fixture(params=['per provider', 'in bulk'])
def check(request, monkeypatch):
    """Check nodes in both ways of asking Placement."""
    if request.param == 'in bulk':
        monkeypatch.setattr(memberships, '_PROVIDERS_PER_QUERY', 0)

    def check(placement, decision, nodes=(HOST, OTHER)):
        _, reasons = read(placement, decision, candidates(nodes))
        if request.param == 'in bulk':
            assert all('member_of' in query for query in placement.queries)
        return reasons

    return check


MEMBER = (
    'in Placement it, or each provider that it would use, is in an aggregate '
    'that the request may not use'
)


@pytest.mark.parametrize('joined', LOCKED)
def test_a_host_that_is_a_member_in_placement_only_is_refused(
    placement, joined, check
):
    placement.has(host={joined.uuid})
    assert check(placement, shortened()) == {HOST: [MEMBER]}


def test_a_provider_below_a_host_counts(placement, check):
    placement.has(child={LOCKED[0].uuid})
    assert check(placement, shortened()) == {HOST: [MEMBER]}


def test_storage_that_would_be_used_counts(placement, check):
    placement.has(disks={LOCKED[0].uuid})
    assert check(placement, shortened()) == {HOST: [MEMBER], OTHER: [MEMBER]}


@pytest.mark.parametrize('number', [0, 4])
def test_candidates_that_use_nothing_forbidden_are_left(
    placement, monkeypatch, number
):
    monkeypatch.setattr(memberships, '_PROVIDERS_PER_QUERY', number)
    placement.has(disks={LOCKED[0].uuid})
    found = {
        HOST: [candidate(HOST, DISKS), candidate(HOST, CHILD)],
        OTHER: [candidate(OTHER, DISKS)],
    }
    left, reasons = read(placement, shortened(), found)
    assert left == {HOST: [candidate(HOST, CHILD)], OTHER: []}
    assert reasons == {OTHER: [MEMBER]}


def test_hosts_that_were_not_returned_do_not_matter(placement, check):
    placement.has(other={LOCKED[0].uuid})
    assert check(placement, shortened(), [HOST]) == {}


def test_members_of_the_rollup_were_not_returned(placement, check):
    placement.has(other={LOCKED[0].uuid, ROLLUP.uuid})
    assert check(placement, shortened(), [HOST]) == {}


def test_what_is_left_to_host_filters_holds_in_placement_too(placement, check):
    placement.has(host={FAST[3].uuid}, other={LOCKED[0].uuid})
    assert check(placement, leaving_out()) == {
        OTHER: [
            'aggregates fast-10, fast-11, fast-12, fast-13, fast-14: is fast; '
            'in Placement it is in no aggregate that meets this; if this '
            'persists, run "isolate-aggregates audit"'
        ]
    }


def test_the_membership_of_a_provider_below_is_not_that_of_the_host(
    placement, check
):
    placement.has(child={FAST[0].uuid})
    assert list(check(placement, leaving_out(), [HOST])) == [HOST]


def test_placement_is_not_asked_without_hosts(placement, check):
    assert check(placement, shortened(), []) == {}
    assert placement.queries == []


def test_an_unshortened_query_needs_no_check():
    decision = Decision(Destination(), AggregateIndex())
    assert HostCheck(None, None, LIMIT).candidates(decision, None) is None


def test_an_unavailable_placement_refuses_with_a_sentence(monkeypatch):
    monkeypatch.setattr(recheck, 'TIMEOUT', 0.2)
    with dripping_server() as server:
        client = PlacementClient(server.adapter(), retries=0)
        placement = types.SimpleNamespace(client=client, queries=[])
        left, reasons = read(placement, shortened(), candidates([HOST, OTHER]))
        assert left == {HOST: [], OTHER: []}
        # It is told once.
        assert reasons == {
            HOST: [
                'the query to Placement was shortened, and the returned hosts '
                'cannot be checked: Placement has not answered completely '
                'within 0.2 s; check whether it is overloaded.'
            ]
        }
        assert not server.has_ended


def test_a_late_check_asks_no_more(monkeypatch):
    now = iter([0.0, 0.0, 100.0])
    clock = types.SimpleNamespace(monotonic=lambda: next(now))
    monkeypatch.setattr(deadline, 'time', clock)
    placement = Placement()
    placement.has()
    left, reasons = read(placement, shortened(), candidates([HOST, OTHER]))
    assert left == {HOST: [], OTHER: []}
    assert 'takes too long' in reasons[HOST][0]
    assert len(placement.queries) == 1


def test_all_calls_of_a_request_have_one_deadline(monkeypatch):
    """Many hosts that are read in turn must not add up their time."""
    seconds = []
    clock = types.SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr(nova_candidates, 'time', clock)
    run = deadline.Deadline.run

    def running(self, call, left):
        seconds.append(left)
        return run(self, call, left)

    monkeypatch.setattr(deadline.Deadline, 'run', running)
    placement = Placement()
    placement.has()
    found = {HOST: [candidate(HOST)], OTHER: [candidate(OTHER)]}
    assert read(placement, shortened(), found) == (found, {})
    assert seconds == [5.0, 4.0]


def test_only_what_nova_uses_is_read(placement):
    """A query may return hundreds of hosts."""
    placement.has()
    check = HostCheck(None, lambda: placement.client, LIMIT).candidates(
        shortened(), None
    )
    hosts = [
        CheckedCandidates(check, node, [candidate(node)] * 3, None)
        for node in [HOST, *map(uuid, range(500))]
    ]
    # Nova logs all hosts, claims the first one, and runs its filters again.
    assert {len(host) for host in hosts} == {3}
    assert hosts[0]
    assert hosts[0][0] == candidate(HOST)
    assert len(placement.queries) == 1
    again = CheckedCandidates(check, HOST, hosts[0], None)
    assert again[-1] == candidate(HOST)
    assert again[:2] == [candidate(HOST)] * 2
    assert len(placement.queries) == 1
    with pytest.raises(IndexError):
        _ = again[3]


def test_if_many_hosts_are_read_the_aggregates_are_asked(placement):
    """As by a host filter that reads the candidates of all hosts."""
    placement.has(other={LOCKED[0].uuid})
    nodes = [HOST, *map(uuid, range(100, 200)), OTHER]
    found = {node: [candidate(node)] for node in nodes}
    placement.load(
        Provider(
            node,
            node,
            aggregates=frozenset({LOCKED[0].uuid} if node == OTHER else ()),
        )
        for node in nodes
    )
    left, reasons = read(placement, shortened(), found)
    assert reasons == {OTHER: [MEMBER]}
    assert {node for node in nodes if not left[node]} == {OTHER}
    # Five queries, each of which may be repeated to see that it arrived.
    assert len(placement.queries) <= 4 * 5 + 2 * 5


def test_a_node_that_may_not_be_used_ends_the_reading(placement):
    placement.has(host={LOCKED[0].uuid})
    found = {HOST: [candidate(HOST), candidate(HOST, CHILD, DISKS)]}
    _, reasons = read(placement, shortened(), found)
    assert reasons == {HOST: [MEMBER]}
    assert len(placement.queries) == 1
