# SPDX-License-Identifier: Apache-2.0
"""The one way from a request to a query that fits.

nova-scheduler, every command and the upgrade check call :func:`decide` and
then :meth:`Decision.fit`, and do not do these steps themselves. There are two
functions because other request filters of Nova may add to the query in
between.
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
    needed,
)
from isolate_aggregates.request import Request, RequestSpec

# Concludes that a query would be too long, as a filter concludes something.
QUERY_LIMIT = 'max_query_length'


@dataclasses.dataclass(frozen=True)
class Decision:
    """Where a request may go, and what to ask of Placement for it.

    :param destination: What the filters concluded, perhaps a refusal.
    :param aggregates: The aggregates that the request was compared with.
    :param shortened: What the query forbids instead of what they forbid;
        None if it is short enough as it is.
    :param fewer: What the query requires in place of what they require; None
        if it requires all of it.
    :param too_long: Why no query fits; None if one does.
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
        # Filters return the same sets for many requests.
        return self.aggregates.remember(
            ('forbidden together', found.forbidden),
            lambda: found.forbidden_aggregates,
        )

    @property
    def required(self) -> Sequence[frozenset[str]]:
        """The sets of uuids of Placement aggregates that the query requires.

        Of each set a host has to be in one.
        """
        if self.fewer is not None:
            return self.fewer.choices
        return needed(self.destination.required_aggregates)

    @property
    def left(self) -> Sequence[Conclusion]:
        """What is left to host filters of Nova, as the query has no room."""
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
        """Whether hosts are to be judged again after Placement."""
        return bool(self.shortened or self.left)

    def check(self) -> None:
        """Raise if the request was refused.

        :raises QueryNotShortened: if no query fits.
        :raises RequestRefused: with every reason of the filters for it.
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
        """Return the decision with a query that fits.

        :param shortener: Makes queries fit.
        :param length: Returns the bytes of the query without what this
            decision forbids; not called if it does not matter.
        :param host_forced: Whether Nova asks no host filters.
        :returns: The decision; a refusal if no query fits.
        :raises IsolateAggregatesError: if that cannot be found out.
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
        """Return the decision with a query of :meth:`query` that fits.

        :param request: The request that was decided on.
        :param shortener: Makes queries fit.
        :param limit: The most candidates to ask for; None for all.
        :raises IsolateAggregatesError: if that cannot be found out.
        """

        def length() -> int:
            query = resources.resource_request(request, limit)
            self.destination.apply_to(query, (), self.required)
            return len(query.to_querystring())

        return self.fit(shortener, length, request.host_forced)

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
        self.destination.apply_to(query, self.forbidden, self.required)
        return query


def decide(
    request: RequestSpec, aggregates: AggregateIndex, pipeline: Pipeline
) -> Decision:
    """Decide where a request may go.

    :param request: What is being scheduled.
    :param aggregates: The aggregates as of one moment.
    :param pipeline: The request filters.
    :returns: The decision; it may be a refusal, see :meth:`Decision.check`.
    :raises RequestRefused: if an image property that a filter declares cannot
        be had.
    :raises FilterError: if a filter fails or breaks its contract.
    """
    return Decision(pipeline.evaluate(request, aggregates), aggregates)
