# SPDX-License-Identifier: Apache-2.0
"""The queries to Placement for a request and the decision on it."""

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
