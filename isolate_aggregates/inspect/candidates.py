# SPDX-License-Identifier: Apache-2.0
"""The main job: from a request to the hosts that may be used, and why."""

from collections.abc import Mapping
import dataclasses

from isolate_aggregates.cloud.cloud import Cloud
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement import resources
from isolate_aggregates.placement.client import AllocationCandidates
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.query_limit import Shortened, Shortener
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class Host:
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
class Outcome:
    """Where a request may go.

    :param destination: What the request filters concluded.
    :param query: What was asked of Placement.
    :param hosts: The hosts it answered with, by name.
    :param shortened: How the query was made shorter; None if it was not.
    """

    destination: Destination
    query: ResourceRequest
    hosts: tuple[Host, ...]
    shortened: Shortened | None = None


def build_query(
    cloud: Cloud,
    pipeline: Pipeline,
    request: RequestSpec,
    limit: int | None,
    max_length: int = 0,
) -> tuple[Destination, ResourceRequest, Shortened | None]:
    """Return what the filters conclude and what to ask of Placement.

    :param cloud: The cloud.
    :param pipeline: The request filters.
    :param request: The request.
    :param limit: The most candidates to ask for; None for all.
    :param max_length: The most bytes of the query that may be spent on
        aggregates; 0 for no limit.
    :returns: Both, and how the query was made shorter, if it was.
    :raises RequestRefused: if a filter refuses the request, or the query can
        not be made to fit.
    :raises IsolateAggregatesError: if it can not be worked out.
    """
    query = resources.resource_request(request, limit)
    destination = pipeline.run(request, cloud.index)
    shortened = shorten(cloud, pipeline, destination, max_length)
    destination.apply_to(query, shortened.forbidden if shortened else None)
    return destination, query, shortened


def shorten(
    cloud: Cloud,
    pipeline: Pipeline,
    destination: Destination,
    max_length: int,
) -> Shortened | None:
    """Return what a query may forbid in place of what a destination forbids.

    :param cloud: The cloud.
    :param pipeline: The request filters.
    :param destination: What they concluded.
    :param max_length: The most bytes of the query that may be spent on
        aggregates; 0 for no limit.
    :returns: None if the query is short enough as it is.
    :raises RequestRefused: if the query can not be made to fit.
    """
    members = cloud.members(max_length)
    return Shortener(max_length, pipeline.locks, members).shorten(
        destination, cloud.index
    )


def find(
    cloud: Cloud,
    pipeline: Pipeline,
    request: RequestSpec,
    limit: int | None,
    max_length: int = 0,
) -> Outcome:
    """Return the hosts that may be used for a request.

    :param cloud: The cloud.
    :param pipeline: The request filters.
    :param request: The request.
    :param limit: The most candidates to ask for; None for all.
    :param max_length: The most bytes of the query that may be spent on
        aggregates; 0 for no limit.
    :raises RequestRefused: if a filter refuses the request, or the query can
        not be made to fit.
    :raises IsolateAggregatesError: if it can not be worked out.
    """
    destination, query, shortened = build_query(
        cloud, pipeline, request, limit, max_length
    )
    answer = cloud.placement.allocation_candidates(query)
    hosts = _hosts(answer, query, cloud)
    return Outcome(destination, query, hosts, shortened)


def _hosts(
    answer: AllocationCandidates, query: ResourceRequest, cloud: Cloud
) -> tuple[Host, ...]:
    classes = sorted(query.merged_resources())
    hosts = []
    for root, candidates in answer.by_root().items():
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
        hosts.append(Host(name, root, free, len(candidates)))
    return tuple(sorted(hosts, key=lambda host: host.name))
