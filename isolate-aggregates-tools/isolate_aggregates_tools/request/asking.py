# SPDX-License-Identifier: Apache-2.0
"""The queries to Placement for a request and the decision on it."""

from collections.abc import Mapping

from isolate_aggregates.decision import Decision
from isolate_aggregates.query_limit import Shortener
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import constraints, resources
from isolate_aggregates_tools.request.request import Request


def fitted(
    decision: Decision,
    request: Request,
    shortener: Shortener,
    limit: int | None,
) -> Decision:
    """Return the decision so that its :func:`first` query is not too long.

    :param limit: The maximum number of candidates; None for all.
    """

    def length() -> int:
        query = resources.resource_request(request, limit)
        constraints.add(decision.destination, query, (), ())
        return len(query.to_querystring())

    return decision.fit(shortener, length, request.host_forced)


def first(
    decision: Decision, request: Request, limit: int | None = None
) -> ResourceRequest:
    """Return the query to Placement."""
    decision.check()
    query = resources.resource_request(request, limit)
    constraints.add(
        decision.destination, query, decision.forbidden, decision.required
    )
    return query


def every(
    decision: Decision, request: Request, limit: int | None = None
) -> list[ResourceRequest]:
    """Return all queries to Placement: two if Nova has a fallback."""
    return [first(decision, each, limit) for each in request.variants]


def named(decision: Decision) -> frozenset[str]:
    """Return the uuids of the aggregates that decide about the request."""
    destination = decision.destination
    return frozenset().union(
        destination.forbidden_aggregates,
        decision.forbidden,
        *destination.required_aggregates,
        *decision.required,
    )


def amounts(request: Request) -> Mapping[str, frozenset[int]] | None:
    """Return the amounts that its queries request, by resource class.

    :returns: None if several groups request a class: then their sums matter.
    """
    found: dict[str, frozenset[int]] = {}
    for variant in request.variants:
        groups = resources.resource_request(variant).groups.values()
        pairs = [pair for group in groups for pair in group.resources.items()]
        if len(dict(pairs)) < len(pairs):
            return None
        for name, amount in pairs:
            found[name] = found.get(name, frozenset()) | {amount}
    return found
