# SPDX-License-Identifier: Apache-2.0
"""The main job: from a request to the hosts that may be used, and why."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses

from isolate_aggregates.cloud.cloud import Cloud
from isolate_aggregates.decision import Decision, decide
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement.client import AllocationCandidates
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.query_limit import Shortener
from isolate_aggregates.request import Request


@dataclasses.dataclass(frozen=True)
class CandidateHost:
    """A host that may be used.

    :param name: The name of its root resource provider.
    :param uuid: The uuid of that provider.
    :param free: What is left of each requested resource class, over the
        providers that could serve the request.
    :param candidates: In how many ways the host could serve the request.
    """

    name: str
    uuid: str
    free: Mapping[str, int]
    candidates: int


@dataclasses.dataclass(frozen=True)
class DroppedHost:
    """A host that Placement offers, but a host filter of Nova drops.

    :param name: The name of its root resource provider.
    :param reasons: Why, by each host filter that drops it.
    """

    name: str
    reasons: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Where a request may go.

    :param decision: What the request filters concluded, and whether the query
        had to be shortened.
    :param query: What was asked of Placement.
    :param hosts: The hosts it answered with and Nova keeps, by name.
    :param dropped: The hosts it answered with and Nova drops, by name.
    """

    decision: Decision
    query: ResourceRequest
    hosts: tuple[CandidateHost, ...]
    dropped: tuple[DroppedHost, ...] = ()


def decide_on(
    cloud: Cloud,
    pipeline: Pipeline,
    request: Request,
    limit: int | None,
    max_length: int = 0,
) -> Decision:
    """Decide where a request may go in a cloud.

    :param cloud: The cloud.
    :param pipeline: The request filters.
    :param request: The request.
    :param limit: The most candidates to ask for; None for all.
    :param max_length: The most bytes of the query; 0 for no limit.
    :raises InvalidRequest: if flavor and image contradict each other.
    :raises FilterError: if a filter fails or breaks its contract.
    """
    shortener = Shortener(
        max_length,
        pipeline.locks,
        cloud.members(max_length),
        host_filters=[f.name for f in pipeline.filters if f.is_mirrored],
    )
    decision = decide(request, cloud.index, pipeline)
    return decision.fit_own(request, shortener, limit)


def find(
    cloud: Cloud,
    pipeline: Pipeline,
    request: Request,
    limit: int | None,
    max_length: int = 0,
) -> Outcome:
    """Return the hosts that may be used for a request.

    :param cloud: The cloud.
    :param pipeline: The request filters.
    :param request: The request.
    :param limit: The most candidates to ask for; None for all.
    :param max_length: The most bytes of the query; 0 for no limit.
    :raises RequestRefused: if a filter refuses the request, or the query
        cannot be made to fit.
    :raises IsolateAggregatesError: if it cannot be worked out.
    """
    decision = decide_on(cloud, pipeline, request, limit, max_length)
    return allowed(cloud, request, decision, limit)


def allowed(
    cloud: Cloud, request: Request, decision: Decision, limit: int | None
) -> Outcome:
    """Return the hosts that a decision leaves to a request.

    :param limit: The most candidates to ask for; None for all.
    :raises RequestRefused: if the request was refused.
    :raises IsolateAggregatesError: if Placement cannot be asked.
    """
    query = decision.query(request, limit)
    answer = cloud.placement.allocation_candidates(query)
    hosts = _hosts(answer, query, cloud)
    dropped = tuple(_dropped(hosts, decision, cloud))
    names = {host.name for host in dropped}
    kept = tuple(host for host in hosts if host.name not in names)
    return Outcome(decision, query, kept, dropped)


def _dropped(
    hosts: Iterable[CandidateHost], decision: Decision, cloud: Cloud
) -> Iterator[DroppedHost]:
    """Yield the hosts that host filters of Nova drop."""
    destination = decision.destination
    if not destination.host_objections:
        return
    for host in hosts:
        service = cloud.compute_nodes.get(host.uuid, host.name)
        reasons = destination.dropped(service)
        if reasons:
            yield DroppedHost(host.name, tuple(reasons))


def _hosts(
    answer: AllocationCandidates, query: ResourceRequest, cloud: Cloud
) -> tuple[CandidateHost, ...]:
    classes = sorted(query.merged_resources())
    hosts = []
    for root, candidates in answer.by_root(query).items():
        if answer.lends(root) and root not in cloud.compute_nodes:
            continue
        free = dict.fromkeys(classes, 0)
        serving = {
            (resource_class, provider)
            for candidate in candidates
            for provider, amounts in candidate.items()
            for resource_class in amounts
        }
        for resource_class, provider in serving:
            summary = answer.summaries[provider]
            free[resource_class] += summary.free(resource_class)
        # A provider made since the names were read goes by its uuid.
        name = cloud.provider_names.get(root, root)
        hosts.append(CandidateHost(name, root, free, len(candidates)))
    return tuple(sorted(hosts, key=lambda host: host.name))
