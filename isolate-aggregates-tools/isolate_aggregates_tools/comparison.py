# SPDX-License-Identifier: Apache-2.0
"""Compares Placement's answer with the documented one.

The simulator computes the documented answer. Nova always uses the answer of
Placement, which has bugs: see the page "Known Placement bugs" of the
documentation. If a query may meet one, the two answers are compared.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Annotated

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.text import counted
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.capacity import simulator
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.documents import Names
from isolate_aggregates_tools.placement.client import AllocationCandidates
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Provider, nodes_by_host
from isolate_aggregates_tools.request import Request, asking

_PAGE = '"Known Placement bugs" in the documentation'

# The candidates of a host, independent of the order of providers and resource
# classes, and how often it has each.
_Candidates = Counter[frozenset[tuple[str, frozenset[tuple[str, int]]]]]


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference between Placement's answer and the documented one.

    :param documented: The number of hosts in the documented answer.
    :param left_out: The hosts that are only in the documented answer.
    :param added: The hosts that are only in Placement's answer.
    :param other_amounts: The hosts with candidates whose amounts were not
        requested or are not free.
    """

    documented: int
    left_out: tuple[str, ...] = ()
    roots: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()
    other_amounts: tuple[str, ...] = ()
    failure: str | None = None

    @property
    def sentences(self) -> Iterator[str]:
        """Sentences that describe the difference."""
        if self.failure:
            yield f'Placement itself gives no answer: {self.failure}'
        if self.left_out:
            yield (
                f'Placement leaves out {len(self.left_out)} of '
                f'{counted(self.documented, "host")} that it should offer '
                'according to its documentation: '
                f'{ranges.folded(self.left_out)}.'
            )
        if self.added:
            yield (
                'Contrary to its documentation, Placement also offers '
                f'{ranges.folded(self.added)}.'
            )
        if self.other_amounts:
            yield (
                'Placement offers amounts that were not requested, or are '
                f'not free, on {ranges.folded(self.other_amounts)}.'
            )
        if self.left_out or self.added or self.other_amounts:
            yield (
                f'See {_PAGE}. If the cloud has changed meanwhile, run the '
                'command again.'
            )


def lines(difference: Difference | None) -> Iterator[str]:
    """Yield the lines below a table about a difference."""
    if difference is not None:
        yield ''
        yield from difference.sentences


@dataclasses.dataclass(frozen=True, kw_only=True)
class Deviation:
    """A difference as part of a JSON document."""

    leaves_out: Annotated[Names, 'Hosts that it should offer, and does not.']
    adds: Annotated[Names, 'Hosts that it should not offer, and does.']
    other_amounts: Annotated[
        Names,
        'Hosts on which it offers amounts that were not requested, or are not '
        'free.',
    ]
    error: Annotated[str | None, 'Why it gives no answer.']


def document(difference: Difference | None) -> Deviation | None:
    """Return a difference as part of a document."""
    if difference is None:
        return None
    return Deviation(
        leaves_out=difference.left_out,
        adds=difference.added,
        other_amounts=difference.other_amounts,
        error=difference.failure,
    )


def difference(
    cloud: Cloud, request: Request, decision: Decision, snapshot: Snapshot
) -> Difference | None:
    """Return how Placement's answer differs from the documented one.

    :param snapshot: The cloud, as far as it decides about the request.
    :returns: None if it does not differ, or the query cannot meet a known bug.
    """
    query = asking.first(decision, request)
    providers = snapshot.providers
    if not may_differ(query, providers):
        return _more_than_free(cloud, query)
    hosts = _hosts(providers)
    own_answer = _by_root(
        query, simulator(providers, query).allocation_candidates(query), hosts
    )
    failure = None
    answer: Mapping[str, _Candidates] = {}
    try:
        answer = _by_root(
            query, cloud.placement.allocation_candidates(query), hosts
        )
    except exception.ServiceFailed as exc:
        failure = str(exc)
    except exception.IsolateAggregatesError as exc:
        return Difference(len(own_answer), failure=str(exc))
    left_out = own_answer.keys() - answer.keys()
    additions = answer.keys() - own_answer.keys()
    other_amounts = {
        root
        for root in own_answer.keys() & answer.keys()
        if not answer[root] <= own_answer[root]
    }
    if not left_out and not additions and not other_amounts and not failure:
        return None

    def names(roots: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(hosts[root] for root in roots))

    return Difference(
        len(own_answer),
        names(left_out),
        frozenset(left_out),
        names(additions),
        names(other_amounts),
        failure,
    )


def difference_after_answer(
    cloud: Cloud, request: Request, decision: Decision
) -> Difference | None:
    """Return the same as :func:`difference`, after Placement has answered.

    The resource providers are read only if the query may meet a known bug.
    """
    query = asking.first(decision, request)
    shares = os_traits.MISC_SHARES_VIA_AGGREGATE
    if not _repeats_class(query) and (
        len(query.groups) < 2
        or not cloud.placement.resource_providers(required=[shares])
    ):
        return _more_than_free(cloud, query)
    return difference(cloud, request, decision, cloud.snapshot)


def may_differ(query: ResourceRequest, providers: Iterable[Provider]) -> bool:
    """Return whether a query may meet a known bug of Placement."""
    sharing = [provider for provider in providers if provider.is_sharing]
    return (
        _repeats_class(query)
        or bool(sharing and len(query.groups) > 1)
        or any(provider.parent for provider in sharing)
    )


def _repeats_class(query: ResourceRequest) -> bool:
    """Return whether amounts of several request groups may be added up."""
    return query.group_policy != 'none' and _is_combined(query)


def _is_combined(query: ResourceRequest) -> bool:
    """Return whether several request groups ask for one resource class."""
    classes = [rc for group in query.groups.values() for rc in group.resources]
    return len(set(classes)) < len(classes)


def _more_than_free(cloud: Cloud, query: ResourceRequest) -> Difference | None:
    """Return the hosts on which Placement offers more than is free.

    With ``[workarounds] optimize_for_wide_provider_trees`` it compares the sum
    of several request groups with the capacity, as if nothing was used. With
    ``group_policy=none`` there can be millions of documented candidates, so
    they are not computed: the summaries in its own answer tell. A Placement in
    this process does not have the option.
    """
    if isinstance(cloud, SnapshotCloud) or not _is_combined(query):
        return None
    try:
        answer = cloud.placement.allocation_candidates(query)
    except exception.IsolateAggregatesError as exc:
        return Difference(0, failure=str(exc))
    free: dict[str, list[bool]] = {
        root: [
            all(
                amount <= answer.summaries[provider].free(resource_class)
                for provider, amounts in candidate.items()
                for resource_class, amount in amounts.items()
            )
            for candidate in candidates
        ]
        for root, candidates in answer.by_root(query).items()
    }
    if all(map(all, free.values())):
        return None
    hosts = _hosts(cloud.snapshot.providers)

    def names(wanted: Callable[[list[bool]], bool]) -> tuple[str, ...]:
        found = (root for root in hosts if wanted(free.get(root, [True])))
        return tuple(sorted(hosts[root] for root in found))

    return Difference(
        sum(map(any, free.values())),
        added=names(lambda each: not any(each)),
        other_amounts=names(lambda each: any(each) and not all(each)),
    )


def _hosts(providers: Iterable[Provider]) -> Mapping[str, str]:
    """Return the names of the hosts, by uuid of their root providers."""
    return {
        # A compute service for bare metal can have many nodes.
        node.uuid: host if len(nodes) == 1 else f'{host} ({node.name})'
        for host, nodes in nodes_by_host(providers).items()
        for node in nodes
    }


def _by_root(
    query: ResourceRequest,
    answer: AllocationCandidates,
    hosts: Mapping[str, str],
) -> Mapping[str, _Candidates]:
    """Return the candidates of each host, by uuid of its root provider."""
    return {
        root: Counter(
            frozenset(
                (provider, frozenset(amounts.items()))
                for provider, amounts in candidate.items()
            )
            for candidate in candidates
        )
        for root, candidates in answer.by_root(query).items()
        if root in hosts
    }
