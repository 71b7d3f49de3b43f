# SPDX-License-Identifier: Apache-2.0
"""Forced hosts are checked with current data."""

import types

from dripping import dripping_server
from nova import context as nova_context
from nova import objects
import pytest

from isolate_aggregates import exception, query_limit
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Destination, Forbid, Require
from isolate_aggregates.nova import recheck
from isolate_aggregates.query_limit import Replacement
from isolate_aggregates.rest import deadline
from isolate_aggregates_tools.placement.client import PlacementClient

A, B, C = (Aggregate(f'aggregate-{x}', x) for x in 'abc')
# What a query of no more than two aggregates forbids.
LIMIT = query_limit.required_length(2) + len(
    '&required=MISC_SHARES_VIA_AGGREGATE'
)
SHORTENED = Replacement(frozenset({'rollup'}))
CONTEXT = nova_context.get_admin_context()


@pytest.fixture(scope='module', autouse=True)
def _nova():
    objects.register_all()


class Node:
    def __init__(self, host, name):
        self.host, self.hypervisor_hostname, self.uuid = host, name, name


class Cloud:
    """A Nova of one cell, and its Placement."""

    def __init__(self, monkeypatch):
        self.nodes = [Node('h1', 'n1'), Node('h2', 'n2')]
        self.in_nova = {}
        # Aggregates by provider; children begin with the name of their root.
        self.in_placement = {'n1': set(), 'n2': set()}
        self.asked = 0
        self.error = None
        self.took = 0.0
        self.now = 1000.0
        self.broken_cell = False
        cell = objects.CellMapping(uuid='00000000-0000-4000-8000-000000000001')
        monkeypatch.setattr(
            objects.CellMappingList, 'get_all', lambda context: [cell]
        )
        monkeypatch.setattr(nova_context, 'scatter_gather_cells', self.scatter)
        monkeypatch.setattr(
            objects.ComputeNodeList,
            'get_all_by_host',
            lambda context, host: [n for n in self.nodes if n.host == host],
        )
        monkeypatch.setattr(
            objects.ComputeNode,
            'get_by_nodename',
            lambda context, name: next(
                n for n in self.nodes if n.hypervisor_hostname == name
            ),
        )
        # The aggregates of storage that all share.
        self.shared = {}
        self.hosts = recheck.HostCheck(self, lambda: self, LIMIT)

    def scatter(self, context, cells, timeout, read):
        [cell] = cells
        if self.broken_cell:
            return {cell.uuid: nova_context.did_not_respond_sentinel}
        return {cell.uuid: read(context)}

    def aggregates_of(self, hosts):
        return {host: frozenset(self.in_nova.get(host, ())) for host in hosts}

    def answer(self):
        self.asked += 1
        self.now += self.took
        if self.error:
            raise self.error

    def resource_providers(self, in_tree=None, member_of=(), required=()):
        self.answer()
        if in_tree is None:
            assert query_limit.required_length(len(member_of)) <= LIMIT
            assert list(required) == ['MISC_SHARES_VIA_AGGREGATE']
            return [
                {'uuid': name}
                for name, held in self.shared.items()
                if not held.isdisjoint(member_of)
            ]
        return [
            {'uuid': name}
            for name in self.in_placement
            if name.startswith(in_tree)
        ]

    def aggregates(self, provider):
        self.answer()
        return frozenset({**self.in_placement, **self.shared}[provider])

    def check(self, *constraints, **fields):
        """Return the decision after the check."""
        destination = Destination()
        for constraint in constraints:
            destination.add(constraint, 'mine')
        return self.hosts.forced(
            CONTEXT,
            objects.RequestSpec(**fields),
            Decision(destination, AggregateIndex(), SHORTENED),
        )

    def reasons(self, constraint=None, **fields):
        constraint = constraint or Forbid((A,), 'because')
        try:
            assert self.check(constraint, **fields).replacement is SHORTENED
        except exception.RequestRefused as exc:
            return list(exc.reasons)
        return []


@pytest.fixture
def fakes(monkeypatch):
    return Cloud(monkeypatch)


KEPT_OUT = ['forced host h1: aggregate a: because']


def test_a_request_without_forced_hosts_asks_nothing(fakes):
    assert fakes.reasons() == []
    assert fakes.asked == 0


@pytest.mark.parametrize(
    'fields', [{'force_hosts': ['h1']}, {'force_nodes': ['n1']}]
)
def test_a_host_is_checked_with_nova_and_placement(fakes, fields):
    assert fakes.reasons(**fields) == []
    fakes.in_nova = {'h1': {A.uuid}}
    assert fakes.reasons(**fields) == KEPT_OUT
    fakes.in_nova = {'h2': {A.uuid}}
    fakes.in_placement['n2'] = {A.uuid}
    assert fakes.reasons(**fields) == []
    fakes.in_placement['n1'] = {A.uuid}
    assert fakes.reasons(**fields) == KEPT_OUT


def test_all_of_the_tree_of_a_host_counts(fakes):
    fakes.in_placement['n1-child'] = {A.uuid}
    assert fakes.reasons(force_hosts=['h1']) == KEPT_OUT


@pytest.mark.parametrize('number', [1, 5])
def test_the_query_names_what_storage_of_a_host_is_in(fakes, number):
    """Whether there is a candidate without it is not known here."""
    fakes.nodes.append(Node('h1', 'm1'))
    fakes.in_placement['m1'] = set()
    fakes.in_placement['n1'] = {f'storage-{n}' for n in range(number)}
    fakes.shared = {
        'shared': {'storage-0', A.uuid},
        'elsewhere': {'storage-9', B.uuid},
    }
    forbid = Forbid((A, B), 'because')
    [uuid] = fakes.check(forbid, force_hosts=['h1']).forbidden
    assert uuid == A.uuid
    # The query for a single node has nothing else.
    assert fakes.reasons(forbid, force_nodes=['n1']) == []


def test_too_many_aggregates_of_storage_refuse(fakes):
    fakes.in_placement['n1'] = {C.uuid}
    fakes.shared = {'shared': {A.uuid, B.uuid, C.uuid}}
    assert fakes.reasons(
        Forbid((A, B), 'because'), force_hosts=['h1', 'h2']
    ) == [
        'the query to Placement would have to forbid 2 aggregates of the '
        'providers that share their resources with a forced host, more than '
        f'fit into [isolate_aggregates] max_query_length = {LIMIT}; raise it '
        'and the limit of the web server in front of Placement'
    ]


def test_a_required_aggregate_can_be_in_placement_only(fakes):
    fakes.in_placement['n1'] = {A.uuid}
    require = Require((A,), 'because')
    assert fakes.reasons(require, force_hosts=['h1']) == []
    assert fakes.reasons(require, force_hosts=['h2']) == [
        'forced host h2: aggregate a: because'
    ]


def test_only_the_named_node_of_a_host_is_looked_at(fakes):
    fakes.nodes.append(Node('h1', 'm1'))
    fakes.in_placement['m1'] = {A.uuid}
    assert fakes.reasons(force_hosts=['h1'], force_nodes=['n1']) == []
    assert fakes.reasons(force_hosts=['h1']) == KEPT_OUT


def test_an_unknown_forced_host_is_refused(fakes):
    said = ['a forced host or node has no compute node in any cell']
    assert fakes.reasons(force_hosts=['h3']) == said
    assert fakes.reasons(force_hosts=['h1', 'h3']) == said
    assert fakes.reasons(force_hosts=['h1'], force_nodes=['n2']) == said


def test_a_cell_that_does_not_answer_refuses(fakes):
    fakes.broken_cell = True
    assert fakes.reasons(force_hosts=['h1']) == [
        'the nodes of a host cannot be read from every cell'
    ]


def test_a_host_with_too_many_nodes_to_check_is_refused(fakes):
    fakes.nodes = [Node('h1', f'n{n}') for n in range(21)]
    [reason] = fakes.reasons(force_hosts=['h1'])
    assert reason.startswith('the forced hosts have 21 nodes')
    assert fakes.asked == 0


def test_a_slow_placement_refuses_after_a_short_time(fakes, monkeypatch):
    clock = types.SimpleNamespace(monotonic=lambda: fakes.now)
    monkeypatch.setattr(deadline, 'time', clock)
    fakes.took = 3.0
    fakes.in_placement |= {f'n1-{n}': set() for n in range(30)}
    with pytest.raises(exception.ServiceUnreachable, match='takes too long'):
        fakes.reasons(force_hosts=['h1'])
    assert fakes.asked == 2


def test_a_dripping_placement_refuses_at_the_deadline(fakes, monkeypatch):
    monkeypatch.setattr(recheck, 'TIMEOUT', 0.2)
    with dripping_server() as server:
        client = PlacementClient(server.adapter(), retries=0)
        fakes.hosts = recheck.HostCheck(fakes, lambda: client, LIMIT)
        with pytest.raises(
            exception.ServiceUnreachable, match=r'completely within 0\.2 s'
        ):
            fakes.reasons(force_hosts=['h1'])
        assert server.requests == 1
        assert not server.has_ended
