# SPDX-License-Identifier: Apache-2.0
"""What nova-scheduler makes of the allocation candidates of Placement.

Nova looks up candidates by the uuids of compute nodes, and receives no more
than a maximum number of them; see ``nova/scheduler/manager.py``.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
import dataclasses
from typing import Annotated, Any

from isolate_aggregates.text import listed, plural
from isolate_aggregates_tools.documents import Count
from isolate_aggregates_tools.placement.client import AllocationCandidates
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.simulator import Simulator

SKIPPED = (
    'Nova skips it: all resources would come from other providers, and none '
    'from the compute node itself'
)

# More candidates are not counted.
_MOST = 100_000

_Candidate = Mapping[str, Mapping[str, int]]


def of_node(candidates: Iterable[_Candidate], node: str) -> list[_Candidate]:
    """Return the candidates of a host that Nova takes.

    :param node: The uuid of the compute node, the root of its tree.
    """
    return [candidate for candidate in candidates if node in candidate]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limited:
    """More candidates than Nova asks for, in a JSON document."""

    candidates: Count
    hosts: Annotated[Count, 'The number of hosts with candidates.']
    max_placement_results: Count


@dataclasses.dataclass(frozen=True)
class Scheduling:
    """What differs between Placement's offers and what Nova does with them.

    :param candidates: The number of candidates; None if Nova receives all.
    :param hosts: The number of hosts with candidates, if there are more
        candidates than Nova receives.
    :param limit: The maximum number that Nova requests.
    :param mixed: The hosts on which Nova may use resources of other hosts.
    """

    candidates: int | None = None
    hosts: int = 0
    limit: int = 0
    mixed: tuple[str, ...] = ()

    @property
    def sentences(self) -> Iterator[str]:
        """Sentences that describe the differences."""
        if self.candidates is not None:
            yield self._of_limit(self.candidates)
        if self.mixed:
            shares = plural(
                len(self.mixed),
                'shares its inventory',
                'share their inventory',
            )
            yield (
                'Nova may start it with resources of another host on '
                f'{listed(self.mixed)}, which {shares}. This is a mistake of '
                'Nova: see "Known Placement bugs" in the documentation.'
            )

    def _of_limit(self, candidates: int) -> str:
        number = (
            f'more than {_MOST}' if candidates > _MOST else str(candidates)
        )
        if self.hosts == 1:
            return (
                f'Placement computes {number} allocation candidates for one '
                'host, as several of its child providers can serve the same '
                'request group. With Placement 13 or newer, [placement] '
                'max_allocation_candidates in its configuration limits them.'
            )
        way = (
            f'Increase [scheduler] max_placement_results to {self.hosts} or '
            'more.'
            if self.hosts > self.limit
            else 'The candidates differ in the child providers that they use. '
            'With Placement 13 or newer, set [placement] '
            'allocation_candidates_generation_strategy to breadth-first in '
            'its configuration: then each host is among those that Nova '
            'sees, also if max_allocation_candidates limits them.'
        )
        return (
            f'Of {number} allocation candidates on {self.hosts} hosts Nova '
            f'sees {self.limit}, and not always the same. If host filters '
            'drop their hosts, Nova finds no host, although others would do. '
            f'{way}'
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines below a table."""
        for sentence in self.sentences:
            yield ''
            yield sentence

    def document(self) -> dict[str, Any]:
        """Return the entries of a document."""
        return {
            'limited': None
            if self.candidates is None
            else Limited(
                candidates=self.candidates,
                hosts=self.hosts,
                max_placement_results=self.limit,
            ),
            'nova_mixes_hosts': self.mixed,
        }


# Nova receives all candidates, and no host gets those of another.
NORMAL = Scheduling()


def simulated(
    queries: Collection[tuple[Simulator, ResourceRequest]],
    providers: Iterable[Provider],
) -> Scheduling:
    """Return what Nova makes of the candidates in a snapshot.

    :param queries: The queries, each with the simulator that answers it.
    """
    exceeding = [
        (number, simulation.hosts(query).bit_count(), query.limit)
        for simulation, query in queries
        if query.limit
        and (number := simulation.count(query, _MOST + 1)) > query.limit
    ]
    nodes = {
        provider.uuid: provider.host
        for provider in providers
        if provider.host and provider.is_sharing
    }
    mixed: set[str] = set()
    for simulation, query in queries if nodes else ():
        whole = dataclasses.replace(query, limit=_MOST)
        answer = simulation.allocation_candidates(whole)
        mixed.update(mixing(answer, query, nodes))
    return Scheduling(*_most(exceeding), tuple(sorted(mixed)))


def returned(
    answers: Iterable[tuple[AllocationCandidates, ResourceRequest]],
    ask: Callable[[ResourceRequest], AllocationCandidates],
    nodes: Mapping[str, str],
) -> Scheduling:
    """Return what Nova makes of answers of Placement.

    All candidates are requested only if Placement has returned as many as
    Nova requests.

    :param ask: Returns Placement's answer to a query.
    """
    exceeding = []
    mixed: set[str] = set()
    for answer, query in answers:
        if len(answer.allocation_requests) == query.limit:
            whole = ask(dataclasses.replace(query, limit=None))
            number = len(whole.allocation_requests)
            if number > query.limit:
                hosts = len(whole.by_root(query))
                exceeding.append((number, hosts, query.limit))
        mixed.update(mixing(answer, query, nodes))
    return Scheduling(*_most(exceeding), tuple(sorted(mixed)))


def _most(
    exceeding: Collection[tuple[int, int, int]],
) -> tuple[int | None, int, int]:
    return max(exceeding, default=(None, 0, 0))


def mixing(
    answer: AllocationCandidates,
    query: ResourceRequest,
    nodes: Mapping[str, str],
) -> Iterator[str]:
    """Yield the hosts on which Nova may use resources of other hosts.

    A compute node can share its inventory. Then it is in candidates of other
    hosts, and Nova takes these for its own, too.

    :param nodes: The names of hosts by uuid of their compute nodes.
    """
    own = answer.by_root(query)
    for node in {p for c in answer.allocation_requests for p in c}:
        if node in nodes:
            taken = of_node(answer.allocation_requests, node)
            if len(taken) > len(of_node(own.get(node, ()), node)):
                yield nodes[node]
