# SPDX-License-Identifier: Apache-2.0
"""Computes the candidate hosts for a request, live or from a snapshot."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses

from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Shortener,
    memberships,
)
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import nova_candidates
from isolate_aggregates_tools.answers.deciding import decided
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.placement.client import AllocationCandidates
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import Request, asking, constraints
from isolate_aggregates_tools.simulator import Simulator

_FORBIDDEN = (
    'in Placement it, or each provider that it would use, is in an aggregate '
    'that the request may not use, and that does not fit into the query'
)


@dataclasses.dataclass(frozen=True)
class CandidateHost:
    """A host with allocation candidates for a request.

    :param free: The free capacity by requested resource class, summed over the
        providers that can serve the request.
    :param is_forbidden: Whether each candidate that Nova considers uses a
        provider in an aggregate that a shortened query leaves out.
    """

    name: str
    uuid: str
    free: Mapping[str, int]
    candidates: int
    is_forbidden: bool = False


@dataclasses.dataclass(frozen=True)
class DroppedHost:
    """A host that Placement offers and one of Nova's host filters drops."""

    name: str
    reasons: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class CandidateHosts:
    """The hosts for a request.

    :param hosts: The hosts that Placement returned and Nova keeps, by name.
    :param dropped_hosts: The hosts that Placement returned and Nova drops, by
        name.
    :param queries: The queries to Placement; with pinned CPUs, the second is
        Nova's fallback.
    :param scheduling: What Nova makes of the answers.
    :param is_simulated: Whether the simulator has answered.
    """

    decision: Decision
    queries: Sequence[ResourceRequest]
    hosts: tuple[CandidateHost, ...]
    dropped_hosts: tuple[DroppedHost, ...] = ()
    scheduling: nova_candidates.Scheduling = nova_candidates.NORMAL
    is_simulated: bool = False

    @property
    def query(self) -> ResourceRequest:
        """The query to Placement, without the fallback."""
        return self.queries[0]


def decide_on(
    cloud: Cloud,
    pipeline: Pipeline,
    request: Request,
    limit: int | None,
    max_length: int = 0,
) -> Decision:
    """Run the request filters for a request in a cloud.

    :param limit: The maximum number of candidates to query; None for all.
    :param max_length: The maximum length of the query in bytes; 0 for no
        limit.
    """
    shortener = Shortener(
        max_length,
        pipeline.locks,
        [OUR_HOST_FILTER]
        + [f.name for f in pipeline.filters if f.is_mirrored],
    )
    decision = decided(request, cloud.index, pipeline)
    return asking.fitted(decision, request, shortener, limit)


def find(
    cloud: Cloud,
    pipeline: Pipeline,
    request: Request,
    limit: int | None,
    max_length: int = 0,
) -> CandidateHosts:
    """Return the candidate hosts for a request.

    :raises RequestRefused: if a filter refuses the request, or the query is
        too long even when shortened.
    """
    decision = decide_on(cloud, pipeline, request, limit, max_length)
    return allowed(cloud, request, decision, limit)


def allowed(
    cloud: Cloud, request: Request, decision: Decision, limit: int | None
) -> CandidateHosts:
    """Return the candidate hosts for a request after a decision."""
    queries = asking.every(decision, request, limit)
    ask, is_simulated = _answering(cloud)
    answers = [(ask(query), query) for query in queries]
    forbidden = _forbidden(answers, decision, cloud, is_simulated)
    hosts = _hosts(answers, cloud, forbidden)
    dropped_hosts = tuple(_dropped(hosts, decision, cloud))
    names = {host.name for host in dropped_hosts}
    return CandidateHosts(
        decision,
        queries,
        tuple(host for host in hosts if host.name not in names),
        dropped_hosts,
        nova_candidates.returned(answers, ask, cloud.compute_nodes),
        is_simulated,
    )


def _answering(
    cloud: Cloud,
) -> tuple[Callable[[ResourceRequest], AllocationCandidates], bool]:
    """Return what answers queries, and whether it is the simulator.

    Without the embedded Placement, the simulator answers for a cloud file.
    """
    try:
        return cloud.placement.allocation_candidates, False
    except tools_errors.EmbeddedPlacementUnavailable:
        snapshot = cloud.snapshot
        simulation = Simulator(
            snapshot.providers, snapshot.traits, snapshot.resource_classes
        )
        return simulation.allocation_candidates, True


def none(
    request: Request, decision: Decision, limit: int | None
) -> CandidateHosts:
    """Return that a request has no candidate hosts after a decision."""
    return CandidateHosts(decision, asking.every(decision, request, limit), ())


def _dropped(
    hosts: Iterable[CandidateHost], decision: Decision, cloud: Cloud
) -> Iterator[DroppedHost]:
    """Yield the hosts that Nova does not use."""
    destination = decision.destination
    for host in hosts:
        service = cloud.compute_nodes.get(host.uuid, host.name)
        reasons = constraints.dropped(destination, service)
        if host.is_forbidden:
            reasons = [_FORBIDDEN]
        elif not host.candidates:
            reasons = [nova_candidates.SKIPPED]
        if reasons:
            yield DroppedHost(host.name, tuple(reasons))


def _forbidden(
    answers: Sequence[tuple[AllocationCandidates, ResourceRequest]],
    decision: Decision,
    cloud: Cloud,
    is_simulated: bool,
) -> frozenset[str]:
    """Return the providers that the shortened query should have excluded."""
    replacement = decision.replacement
    if replacement is None:
        return frozenset()
    if is_simulated:
        return frozenset(
            provider.uuid
            for provider in cloud.snapshot.providers
            if not replacement.left_out.isdisjoint(provider.aggregates)
        )
    returned = {
        uuid
        for answer, _ in answers
        for candidate in answer.allocation_requests
        for provider in candidate
        for uuid in (provider, answer.summaries[provider].root)
    }
    # A query of this length has been answered.
    length = max(len(query.to_querystring()) for _, query in answers)
    left_out = memberships.LeftOut(length, replacement)
    left_out.read(lambda: cloud.placement, frozenset(returned))
    return frozenset(filter(left_out.is_forbidden, returned))


def _hosts(
    answers: Sequence[tuple[AllocationCandidates, ResourceRequest]],
    cloud: Cloud,
    forbidden: frozenset[str],
) -> tuple[CandidateHost, ...]:
    """Return the hosts in some answers, also those that Nova skips."""
    hosts: dict[str, CandidateHost] = {}
    for answer, query in answers:
        for root, offers in answer.by_root(query).items():
            if answer.only_shares(root) and root not in cloud.compute_nodes:
                continue
            considered = nova_candidates.of_node(offers, root)
            candidates = [
                candidate
                for candidate in considered
                if forbidden.isdisjoint((root, *candidate))
            ]
            free = dict.fromkeys(sorted(query.merged_resources()), 0)
            serving = {
                (resource_class, provider)
                for candidate in candidates
                for provider, amounts in candidate.items()
                for resource_class in amounts
            }
            for resource_class, provider in serving:
                summary = answer.summaries[provider]
                free[resource_class] += summary.free(resource_class)
            number = len(candidates)
            if root in hosts:
                number += hosts[root].candidates
                free |= hosts[root].free
            # The provider may have been created after the names were read.
            name = cloud.provider_names.get(root, root)
            hosts[root] = CandidateHost(
                name, root, free, number, bool(considered) and not number
            )
    return tuple(sorted(hosts.values(), key=lambda host: host.name))
