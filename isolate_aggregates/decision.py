# SPDX-License-Identifier: Apache-2.0
"""Turns a request into a query to Placement that is within the limit.

nova-scheduler, all commands and the upgrade check use :func:`decide` and then
:meth:`Decision.fit`. These are separate because Nova's other request filters
may extend the query in between.
"""

from collections.abc import Callable, Sequence
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import Refuse
from isolate_aggregates.filters.destination import Conclusion, Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement import resources
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.query_limit import (
    Required,
    Shortened,
    Shortener,
)
from isolate_aggregates.request import Request, RequestSpec

# The name under which a query that is too long is reported, like a filter's.
QUERY_LIMIT = 'max_query_length'


@dataclasses.dataclass(frozen=True)
class Decision:
    """The constraints on a request, and the query for them.

    :param destination: The conclusions of the filters, possibly a refusal.
    :param aggregates: The aggregates that the filters used.
    :param shortened: The aggregates that the query forbids instead of those of
        the destination; None if it was not shortened.
    :param fewer: The aggregates that the query requires instead of those of
        the destination; None if it requires all of them.
    :param too_long: Why the query cannot be shortened enough; None if it can.
    """

    destination: Destination
    aggregates: AggregateIndex
    shortened: Shortened | None = None
    fewer: Required | None = None
    too_long: exception.QueryNotShortened | None = None

    @property
    def forbidden(self) -> frozenset[str]:
        """The uuids of the Placement aggregates that the query forbids."""
        if self.shortened is not None:
            return self.shortened.forbidden
        found = self.destination
        if len(found.forbidden) < 2:
            return found.forbidden_aggregates
        # Cached, as filters return the same sets for many requests.
        return self.aggregates.remember(
            ('forbidden together', found.forbidden),
            lambda: found.forbidden_aggregates,
        )

    @property
    def required(self) -> Sequence[frozenset[str]]:
        """The sets of Placement aggregate uuids that the query requires.

        A host must be in at least one aggregate of each set.
        """
        if self.fewer is not None:
            return self.fewer.choices
        return self.destination.required_aggregates

    @property
    def left(self) -> Sequence[Conclusion]:
        """The conclusions that are left to Nova's host filters."""
        if self.fewer is None or not self.fewer.left:
            return ()
        return [
            conclusion
            for conclusion in self.destination.conclusions
            if not set(conclusion.alone.required_aggregates).isdisjoint(
                self.fewer.left
            )
        ]

    @property
    def is_looked_at_again(self) -> bool:
        """Whether hosts must be checked again after Placement."""
        return bool(self.shortened or self.left)

    def check(self) -> None:
        """Raise if the request was refused.

        :raises QueryNotShortened: if the query cannot be shortened enough.
        :raises RequestRefused: with all reasons of the filters.
        """
        if self.too_long is not None:
            raise self.too_long
        self.destination.check()

    def fit(
        self,
        shortener: Shortener,
        length: Callable[[], int],
        host_forced: bool = False,
    ) -> 'Decision':
        """Return the decision with a query that is within the limit.

        :param shortener: Shortens queries.
        :param length: Returns the length in bytes of the query without the
            aggregates that this decision forbids. It is not called if the
            length does not matter.
        :param host_forced: Whether Nova skips its host filters.
        :returns: The decision; a refusal if the query cannot be shortened
            enough.
        :raises IsolateAggregatesError: if rollups cannot be verified.
        """
        found = self.destination
        narrows = found.forbidden or found.required_aggregates
        if found.refusals or not narrows or not shortener.limit:
            return self
        try:
            fitting = shortener.fit(
                found, self.aggregates, length(), host_forced
            )
        except exception.QueryNotShortened as exc:
            for reason in exc.reasons:
                found.add(Refuse(reason), QUERY_LIMIT)
            return dataclasses.replace(self, too_long=exc)
        return dataclasses.replace(
            self, shortened=fitting.shortened, fewer=fitting.required
        )

    def fit_own(
        self, request: Request, shortener: Shortener, limit: int | None
    ) -> 'Decision':
        """Return the decision so that :meth:`query` is within the limit.

        :param request: The request that was decided on.
        :param shortener: Shortens queries.
        :param limit: The maximum number of candidates; None for all.
        :raises IsolateAggregatesError: if rollups cannot be verified.
        """

        def length() -> int:
            query = resources.resource_request(request, limit)
            self.destination.apply_to(query, (), self.required)
            return len(query.to_querystring())

        return self.fit(shortener, length, request.host_forced)

    def query(
        self, request: Request, limit: int | None = None
    ) -> ResourceRequest:
        """Return the query to Placement.

        :param request: The request that was decided on.
        :param limit: The maximum number of candidates; None for all.
        :raises RequestRefused: if the request was refused.
        :raises InvalidRequest: if flavor and image contradict each other.
        """
        self.check()
        query = resources.resource_request(request, limit)
        self.destination.apply_to(query, self.forbidden, self.required)
        return query


def decide(
    request: RequestSpec, aggregates: AggregateIndex, pipeline: Pipeline
) -> Decision:
    """Run the request filters for a request.

    :param request: The request that is being scheduled.
    :param aggregates: An index of all aggregates.
    :param pipeline: The request filters.
    :returns: The decision, which may be a refusal; see
        :meth:`Decision.check`.
    :raises RequestRefused: if an image property that a filter needs cannot be
        read.
    :raises FilterError: if a filter fails or breaks its contract.
    """
    return Decision(pipeline.evaluate(request, aggregates), aggregates)
