# SPDX-License-Identifier: Apache-2.0
"""The queries to Placement for a request and the decision on it."""

from collections.abc import Iterable

from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.query_limit import Shortener
from isolate_aggregates.tools.placement.group import ResourceRequest
from isolate_aggregates.tools.request import constraints, resources
from isolate_aggregates.tools.request.request import Request


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
        add(decision.destination, query, (), ())
        return len(query.to_querystring())

    return decision.fit(shortener, length, request.host_forced)


def first(
    decision: Decision, request: Request, limit: int | None = None
) -> ResourceRequest:
    """Return the query to Placement."""
    decision.check()
    query = resources.resource_request(request, limit)
    add(decision.destination, query, decision.forbidden, decision.required)
    return query


def every(
    decision: Decision, request: Request, limit: int | None = None
) -> list[ResourceRequest]:
    """Return all queries to Placement: two if Nova has a fallback."""
    return [first(decision, each, limit) for each in request.variants]


def add(
    destination: Destination,
    request: ResourceRequest,
    forbidden: Iterable[str] | None = None,
    required: Iterable[frozenset[str]] | None = None,
) -> None:
    """Add all constraints of a destination to a query.

    As in Nova's ``resources_from_request_spec``, aggregates and tree are added
    to the unsuffixed request group.

    :param forbidden: The uuids of aggregates to forbid instead; None to
        forbid those of the destination.
    :param required: Sets of aggregate uuids to require instead; None to
        require those of the destination.
    """
    destination.check()
    request.root_required |= constraints.required_root(destination)
    request.root_forbidden |= constraints.forbidden_root(destination)
    if forbidden is None:
        forbidden = destination.forbidden_aggregates
    if required is None:
        required = destination.required_aggregates
    if required or forbidden:
        group = request.group()
        group.aggregates.extend(required)
        group.forbidden_aggregates.update(forbidden)
    if tree := constraints.tree(destination):
        request.group().in_tree = tree
