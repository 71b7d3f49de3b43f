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

Only one step depends on several hosts: verification, which asks Placement
whether a rollup lacks a host. Its result can be decomposed in the same way: a
rollup lacks a host if it lacks any of them. So the test of verification checks
all clouds of up to three hosts. The tests after it check all possible results
of verification, with the kinds of hosts for which each result is true.

The numbers in the last lines of the tests count the checked cases.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
import dataclasses
import functools
import itertools
import operator

from simulated_placement import SimulatedPlacement, VerifiedInTurn

from isolate_aggregates import testing
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.rollups import Rollup, rollups, uuid_of
from isolate_aggregates.decision import Decision, decide
from isolate_aggregates.filters import host_check
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement import group
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.query_limit import PlacementMembers, Shortener
from isolate_aggregates.query_limit.members import AnswersAtOnce, Coverage
from isolate_aggregates.request import Flavor
from isolate_aggregates.tools.request import Request, asking
from isolate_aggregates.tools.simulator import Simulator
from isolate_aggregates.tools.simulator import query as query_strings

# A set of kinds of hosts; bit n is KINDS[n].
Kinds = int


def subsets(things: Collection[str]) -> list[frozenset[str]]:
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
EVERYONE: Kinds = (1 << len(KINDS)) - 1


def where(condition: Callable[[Kind], bool]) -> Kinds:
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
def offered(query: str) -> Kinds:
    """Return the kinds of hosts that Placement offers."""
    answer = PLACEMENT.allocation_candidates(query)
    asked = query_strings.candidates(query_strings.parameters(query))
    return PLACEMENT.index.set_of(
        PLACEMENT.index.numbers[uuid] for uuid in answer.by_root(asked)
    )


def clouds() -> Iterator[AggregateIndex]:
    """Yield each way to lock up to three aggregates with two locks."""
    for number in range(len(AGGREGATES) + 1):
        for tags in itertools.product(subsets(LOCKS), repeat=number):
            yield AggregateIndex(
                Aggregate(uuid, uuid, dict.fromkeys(locks, 'required'))
                for uuid, locks in zip(AGGREGATES, tags, strict=False)
            )


def requests() -> Iterator[Request]:
    """Yield a request with each set of keys."""
    for keys in subsets(LOCKS):
        extra_specs = dict.fromkeys(keys, 'required')
        yield Request(Flavor('f', vcpus=1, extra_specs=extra_specs))


def query_of(decision: Decision, request: Request) -> str:
    """Return the query string of a decision."""
    return asking.first(decision, request).to_querystring()


def test_the_simulator_answers_as_placement_documents_member_of():
    """``member_of``: in one of each choice, in none of the forbidden."""
    members = {
        uuid: where(lambda k, u=uuid: u in k.in_placement | k.in_rollups)
        for uuid in (*AGGREGATES, *ROLLUPS)
    }

    def in_any(uuids: Iterable[str]) -> Kinds:
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

        def is_open(kind: Kind, locks_of=locks_of, keys=keys) -> bool:
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
            objections = host_check.objections(
                decision.destination, membership
            )
            assert by_placement & such == (0 if objections else such)
            asked += 1
    assert asked == 85 * 4 * 8


Client = Callable[[], PlacementClient]


def by_a_command(rollup: Rollup, client: Client) -> frozenset[str]:
    """Return what commands verify of a rollup, with a single query."""
    room = group.forbidden_length(1) + group.forbidden_length(3)
    return PlacementMembers(client, room).coverage(rollup).verified


def by_nova_scheduler(rollup: Rollup, client: Client) -> frozenset[str]:
    """Return what the thread verifies of a rollup, with several queries."""
    room = group.forbidden_length(1) + group.forbidden_length(1)
    members = VerifiedInTurn(client, room)
    members.use([rollup])
    members.finish()
    return members.coverage(rollup).verified


def test_verification_finds_every_host_missing_in_a_rollup():
    """In every cloud of up to three hosts, in one question or in several.

    An aggregate is replaced by a rollup only if no host is in the aggregate
    and not in the rollup. Two hosts of one kind are as good as one.
    """
    hosts = list(itertools.product(subsets(AGGREGATES), (True, False)))
    some_clouds = [
        cloud
        for size in range(4)
        for cloud in itertools.combinations(hosts, size)
    ]
    some_rollups = [
        Rollup(LOCKS[0], ROLLUPS[0], replaced)
        for replaced in subsets(AGGREGATES)
        if len(replaced) > 1
    ]
    placement = SimulatedPlacement()
    asked = 0
    for cloud in some_clouds:
        placement.load(
            testing.make_provider(
                f'host{number}', aggregates=held | {*ROLLUPS[:1] * in_rollup}
            )
            for number, (held, in_rollup) in enumerate(cloud)
        )
        lacking = frozenset().union(*(h for h, inside in cloud if not inside))
        for rollup, verify in itertools.product(
            some_rollups, (by_a_command, by_nova_scheduler)
        ):
            result = verify(rollup, lambda: placement.client)
            assert result == rollup.aggregates - lacking
            asked += 1
    assert (len(some_clouds), asked) == (1 + 16 + 120 + 560, 697 * 4 * 2)


class Answer(AnswersAtOnce):
    """Yield the possible results of verification: the covered aggregates.

    More may be possible, as not everything may have been verified yet.
    """

    def __init__(self, covered: Iterable[tuple[Rollup, frozenset[str]]]):
        self._covered = dict(covered)

    def coverage(self, rollup: Rollup) -> Coverage:
        """Return what is known of a rollup."""
        return Coverage(self._covered[rollup], rollup.aggregates)

    @functools.cached_property
    def true_of(self) -> Kinds:
        """The kinds of hosts that no rollup lacks, if this is the answer."""
        return where(
            lambda kind: all(
                rollup.uuid in kind.in_rollups
                or not kind.in_placement & covered
                for rollup, covered in self._covered.items()
            )
        )


def answers(cloud: AggregateIndex) -> Iterator[Answer]:
    """Yield each answer that verification can give in a cloud."""
    all_rollups = rollups(FILTERS.locks(cloud))
    for covered in itertools.product(
        *(subsets(r.aggregates) for r in all_rollups)
    ):
        yield Answer(zip(all_rollups, covered, strict=True))


def passed_by_host_filter(decision: Decision) -> Kinds:
    """Return the kinds of hosts that a shortened query is judged to suit."""
    return where(
        lambda kind: (
            not host_check.objections(decision.destination, kind.in_nova)
        )
    )


@functools.cache
def known_to_nova(closed: frozenset[str]) -> Kinds:
    """Return the kinds that are in no closed aggregate in Placement alone."""
    return where(lambda kind: kind.in_placement & closed <= kind.in_nova)


def in_sync(cloud: AggregateIndex) -> Kinds:
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
    """The rule holds for all results of verification and all later changes.

    For each host, one of these applies:

    * The result of verification is still true. Then Placement offers the host
      only if it would for the full query.
    * It has joined an aggregate since, in Nova and so in Placement too. Then
      the host filter, which reads the current aggregates in Nova, passes it
      only if the full query would admit it.
    * It has joined an aggregate since in Placement only, not in Nova. This is
      not noticed until the rollups are verified again. Only in this case can a
      shortened query admit a host that the full one excludes.
    """
    asked = shortened = refusals = 0
    for cloud in clouds():
        results = list(answers(cloud))
        for request in requests():
            plain = decide(request, cloud, FILTERS)
            expected_hosts = offered(query_of(plain, request))
            without = len(query_of(plain, request)) - group.forbidden_length(
                len(plain.forbidden)
            )
            passed = passed_by_host_filter(plain)
            joined_in_nova = known_to_nova(plain.forbidden)
            synchronized = in_sync(cloud)
            for answer, most in itertools.product(results, (1, 2)):
                asked += 1
                limit = without + group.forbidden_length(most)
                short = asking.fitted(
                    decide(request, cloud, FILTERS),
                    request,
                    Shortener(limit, FILTERS.locks, answer),
                    None,
                )
                if short.too_long:
                    refusals += 1
                    continue
                query = query_of(short, request)
                assert len(query) <= limit
                got = offered(query)
                if not short.replacement:
                    assert got == expected_hosts
                    continue
                shortened += 1

                assert not got & answer.true_of & ~expected_hosts
                assert not got & passed & joined_in_nova & ~expected_hosts
                # Nor is anything lost.
                assert got & synchronized == expected_hosts & synchronized
    assert (asked, shortened, refusals) == (5040, 839, 1609)
