# SPDX-License-Identifier: Apache-2.0
"""The one way from a request to a query that fits.

nova-scheduler, every command and the upgrade check call :func:`decide`; none
of them does these steps by hand.
"""

import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import Refuse
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement import resources
from isolate_aggregates.placement.group import RequestGroup, ResourceRequest
from isolate_aggregates.query_limit import Shortened, Shortener
from isolate_aggregates.request import Request, RequestSpec

# Concludes that a query would be too long, as a filter concludes something.
QUERY_LIMIT = 'max_query_length'


@dataclasses.dataclass(frozen=True)
class Decision:
    """Where a request may go, and what to ask of Placement for it.

    :param destination: What the filters concluded, perhaps a refusal.
    :param aggregates: The aggregates that the request was compared with.
    :param shortened: What the query forbids in place of what they forbid;
        None if it is short enough as it is.
    :param too_long: Why no query fits; None if one does.
    """

    destination: Destination
    aggregates: AggregateIndex
    shortened: Shortened | None = None
    too_long: exception.QueryNotShortened | None = None

    @property
    def forbidden(self) -> frozenset[str]:
        """The uuids of the Placement aggregates that the query forbids."""
        if self.shortened is not None:
            return self.shortened.forbidden
        return self.destination.forbidden_aggregates

    def check(self) -> None:
        """Raise if the request was refused.

        :raises QueryNotShortened: if no query fits.
        :raises RequestRefused: with every reason of the filters for it.
        """
        if self.too_long is not None:
            raise self.too_long
        self.destination.check()

    def query(
        self, request: Request, limit: int | None = None
    ) -> ResourceRequest:
        """Return what to ask of Placement.

        :param request: The request that was decided on.
        :param limit: The most candidates to ask for; None for all.
        :raises RequestRefused: if the request was refused.
        :raises InvalidRequest: if flavor and image contradict each other.
        """
        self.check()
        query = resources.resource_request(request, limit)
        self.destination.apply_to(query, self.forbidden)
        return query


def decide(
    request: RequestSpec,
    aggregates: AggregateIndex,
    pipeline: Pipeline,
    shortener: Shortener | None = None,
    beside: RequestGroup | None = None,
) -> Decision:
    """Decide where a request may go.

    :param request: What is being scheduled.
    :param aggregates: The aggregates as of one moment.
    :param pipeline: The request filters.
    :param shortener: Makes the query fit; None if none is to be sent.
    :param beside: What else the query will say of aggregates.
    :returns: The decision; it may be a refusal, see :meth:`Decision.check`.
    :raises RequestRefused: if an image property that a filter declares cannot
        be had.
    :raises FilterError: if a filter fails or breaks its contract.
    """
    destination = pipeline.evaluate(request, aggregates)
    if shortener is None or destination.refusals:
        return Decision(destination, aggregates)
    try:
        shortened = shortener.shorten(destination, aggregates, beside)
    except exception.QueryNotShortened as exc:
        for reason in exc.reasons:
            destination.add(Refuse(reason), QUERY_LIMIT)
        return Decision(destination, aggregates, too_long=exc)
    return Decision(destination, aggregates, shortened)
