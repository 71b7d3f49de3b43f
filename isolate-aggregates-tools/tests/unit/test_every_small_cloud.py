# SPDX-License-Identifier: Apache-2.0
"""No shortcut admits a host that the plain path excludes. Read this first.

The *plain path* forbids every closed aggregate by uuid, in its current state.
It is safe, but the query can be too long. A *shortcut* sends a shorter query,
or uses earlier data. The rule of this package is that a shortcut admits a
subset of the hosts that the plain path admits, or refuses the request. This
file checks all clouds of up to three hosts, three aggregates and two locks,
with all requests. Nothing is random.

This takes only seconds, because whether a host is offered depends only on its
own memberships, never on other hosts. So there is a limited number of *kinds*
of hosts: by their aggregates in Nova, by their aggregates in Placement (which
can differ), and by their rollups. A single cloud with one host of each kind
represents all clouds: the result of a query for three hosts follows from their
kinds. A set of kinds is a bitmask, as in the simulator, and "A admits no more
than B" is ``not A & ~B``.

The numbers in the last lines of the tests count the checked cases.
"""

import dataclasses
import functools
import itertools
import operator

from isolate_aggregates import query_limit
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.rollups import uuid_of
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Shortener
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools import testing
from isolate_aggregates_tools.placement import group
from isolate_aggregates_tools.request import Request, asking
from isolate_aggregates_tools.simulator import Simulator
from isolate_aggregates_tools.simulator import query as query_strings


def subsets(things):
    """Return every subset, the smallest first."""
    return [
        frozenset(some)
        for size in range(len(things) + 1)
        for some in itertools.combinations(things, size)
    ]


AGGREGATES = tuple(f'aaaaaaaa-0000-4000-8000-00000000000{n}' for n in '123')
LOCKS = ('trait:CUSTOM_X', 'trait:CUSTOM_Y')
ROLLUPS = tuple(map(uuid_of, LOCKS))
FILTERS = Pipeline({'isolate_aggregates': IsolateAggregates()})


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of host, by what such a host is a member of."""

    in_nova: frozenset[str]
    in_placement: frozenset[str]
    in_rollups: frozenset[str]


KINDS = tuple(
    itertools.starmap(
        Kind,
        itertools.product(
            subsets(AGGREGATES), subsets(AGGREGATES), subsets(ROLLUPS)
        ),
    )
)
EVERYONE = (1 << len(KINDS)) - 1


def where(condition):
    """Return the kinds of hosts that meet a condition."""
    return sum(1 << n for n, kind in enumerate(KINDS) if condition(kind))


# One host of every kind. Each has both traits: what a host has is for
# Placement to see to, what it is a member of is what this is about.
PLACEMENT = Simulator(
    testing.make_provider(
        f'host-{number}',
        inventories={'VCPU': 1},
        traits=['CUSTOM_X', 'CUSTOM_Y'],
        aggregates=kind.in_placement | kind.in_rollups,
    )
    for number, kind in enumerate(KINDS)
)


@functools.cache
def offered(query):
    """Return the kinds of hosts that Placement offers."""
    answer = PLACEMENT.allocation_candidates(query)
    asked = query_strings.candidates(query_strings.parameters(query))
    return PLACEMENT.index.set_of(
        PLACEMENT.index.numbers[uuid] for uuid in answer.by_root(asked)
    )


def clouds():
    """Yield each way to lock up to three aggregates with two locks."""
    for number in range(len(AGGREGATES) + 1):
        for tags in itertools.product(subsets(LOCKS), repeat=number):
            yield AggregateIndex(
                Aggregate(uuid, uuid, dict.fromkeys(locks, 'required'))
                for uuid, locks in zip(AGGREGATES, tags, strict=False)
            )


def requests():
    """Yield a request with each set of keys."""
    for keys in subsets(LOCKS):
        extra_specs = dict.fromkeys(keys, 'required')
        yield Request(Flavor('f', vcpus=1, extra_specs=extra_specs))


def query_of(decision, request):
    """Return the query string of a decision."""
    return asking.first(decision, request).to_querystring()


def test_the_simulator_answers_as_placement_documents_member_of():
    """``member_of``: in one of each choice, in none of the forbidden."""
    members = {
        uuid: where(lambda k, u=uuid: u in k.in_placement | k.in_rollups)
        for uuid in (*AGGREGATES, *ROLLUPS)
    }

    def in_any(uuids):
        return functools.reduce(operator.or_, map(members.get, uuids), 0)

    choices = subsets(AGGREGATES)[1:]
    required = [(), *((one,) for one in choices)]
    required += itertools.combinations(choices, 2)
    asked = 0
    for choices, forbidden in itertools.product(required, subsets(members)):
        query = group.ResourceRequest()
        query.group().resources['VCPU'] = 1
        query.group().aggregates.extend(choices)
        query.group().forbidden_aggregates.update(forbidden)

        expected = EVERYONE & ~in_any(forbidden)
        for choice in choices:
            expected &= in_any(choice)

        assert offered(query.to_querystring()) == expected
        asked += 1
    assert asked == (1 + 7 + 21) * 2**5


def test_the_plain_path_admits_the_hosts_of_novas_in_tree_filter():
    """A host must be in no aggregate with a lock that no key opens.

    This is the rule of ``isolate_aggregates`` in Nova, in other words than
    those of the filter. ``tests/nova/test_in_tree.py`` asks Nova's own code.
    """
    asked = 0
    for cloud, request in itertools.product(clouds(), requests()):
        locks_of = {one.uuid: set(one.metadata) for one in cloud}
        keys = set(request.flavor.extra_specs)

        def is_open(kind, locks_of=locks_of, keys=keys):
            mine = (locks_of.get(uuid, set()) for uuid in kind.in_placement)
            return set().union(*mine) <= keys

        decision = decide(request, cloud, FILTERS)
        assert offered(query_of(decision, request)) == where(is_open)
        asked += 1
    assert (len(KINDS), asked) == (256, (1 + 4 + 16 + 64) * 4)


def test_the_host_check_agrees_with_placement():
    """It judges forced hosts, rebuilds and shortened queries."""
    asked = 0
    for cloud, request in itertools.product(clouds(), requests()):
        decision = decide(request, cloud, FILTERS)
        by_placement = offered(query_of(decision, request))
        for membership in subsets(AGGREGATES):
            such = where(lambda k, m=membership: k.in_placement == m)
            objections = decision.destination.objections(membership)
            assert by_placement & such == (0 if objections else such)
            asked += 1
    assert asked == 85 * 4 * 8


def without_members_of(aggregates):
    """Return the kinds of hosts that are in none of some in Placement."""
    return where(lambda kind: aggregates.isdisjoint(kind.in_placement))


def in_sync(cloud):
    """Return the kinds of hosts that ``isolate-aggregates sync`` leaves alone.

    They are in the rollup of each lock on an aggregate that they are in.
    """
    rollups_of = {one.uuid: set(map(uuid_of, one.metadata)) for one in cloud}
    return where(
        lambda kind: (
            kind.in_rollups
            == set().union(
                *(rollups_of.get(uuid, ()) for uuid in kind.in_placement)
            )
        )
    )


def test_a_shortened_query_admits_a_subset_of_the_full_one():
    """After the check of the hosts that it does not exclude."""
    asked = shortened = 0
    for cloud in clouds():
        for request in requests():
            plain = decide(request, cloud, FILTERS)
            expected_hosts = offered(query_of(plain, request))
            without = len(
                query_of(plain, request)
            ) - query_limit.forbidden_length(len(plain.forbidden))
            synchronized = in_sync(cloud)
            for most in (0, 1, 2):
                asked += 1
                limit = without + query_limit.forbidden_length(most)
                short = asking.fitted(
                    decide(request, cloud, FILTERS),
                    request,
                    Shortener(limit, FILTERS.locks, [OUR_HOST_FILTER]),
                    None,
                )
                query = query_of(short, request)
                assert len(query) <= limit
                got = offered(query)
                if not short.replacement:
                    assert got == expected_hosts
                    continue
                shortened += 1

                got &= without_members_of(short.replacement.left_out)
                assert not got & ~expected_hosts
                # Nor is anything lost.
                assert got & synchronized == expected_hosts & synchronized
    assert (asked, shortened) == (1020, 399)
