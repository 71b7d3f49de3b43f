# SPDX-License-Identifier: Apache-2.0
"""Turns a request into a query to Placement that is within the limit.

nova-scheduler, all commands and the upgrade check use :func:`decide` and then
:meth:`Decision.fit`. These are separate because Nova's other request filters
may extend the query in between.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import TYPE_CHECKING

from isolate_aggregates import exception, query_limit
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import (
    Cause,
    Conclusion,
    Destination,
    Refuse,
)
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.query_limit import Replacement, Shortener
from isolate_aggregates.request import RequestSpec

if TYPE_CHECKING:
    from isolate_aggregates.query_limit.required_aggregates import (
        RequiredSubset,
    )

# The name under which a query that is too long is reported, like a filter's.
QUERY_LIMIT = 'max_query_length'


@dataclasses.dataclass(frozen=True)
class Decision:
    """The constraints on a request, and the query for them.

    :param replacement: The aggregates that the query forbids instead of those
        of the destination; None if it was not shortened.
    :param required_subset: The aggregates that the query requires instead of
        those of the destination; None if it requires all of them.
    :param too_long: Why the query cannot be shortened enough; None if it can.
    """

    destination: Destination
    aggregates: AggregateIndex
    replacement: Replacement | None = None
    required_subset: 'RequiredSubset | None' = None
    too_long: exception.QueryNotShortened | None = None

    @property
    def forbidden(self) -> frozenset[str]:
        """The uuids of the Placement aggregates that the query forbids."""
        if self.replacement is not None:
            return self.replacement.forbidden
        destination = self.destination
        if len(destination.forbidden) < 2:
            return destination.forbidden_aggregates
        # Cached, as filters return the same sets for many requests.
        return self.aggregates.remember(
            ('forbidden together', destination.forbidden),
            lambda: destination.forbidden_aggregates,
        )

    @property
    def required(self) -> Sequence[frozenset[str]]:
        """The sets of Placement aggregate uuids that the query requires.

        A host must be in at least one aggregate of each set.
        """
        if self.required_subset is not None:
            return self.required_subset.choices
        return self.destination.required_aggregates

    @property
    def left_out(self) -> Mapping[frozenset[str], str]:
        """The required aggregates that are left to our host filter.

        The values are the reasons why one of them is required.
        """
        if self.required_subset is None:
            return {}
        return {
            choice: '; '.join(
                str(conclusion.constraint.reason)
                for conclusion in self.destination.conclusions
                if choice in conclusion.alone.required_aggregates
            )
            for choice in self.required_subset.left_out
        }

    @property
    def left_to_host_filters(self) -> Sequence[Conclusion]:
        """The conclusions that are left to our host filter."""
        if self.required_subset is None or not self.required_subset.left_out:
            return ()
        return [
            conclusion
            for conclusion in self.destination.conclusions
            if not set(conclusion.alone.required_aggregates).isdisjoint(
                self.required_subset.left_out
            )
        ]

    @property
    def needs_host_check(self) -> bool:
        """Whether hosts must be checked again after Placement."""
        return bool(self.replacement or self.left_to_host_filters)

    def check(self) -> None:
        """Raise if the request was refused."""
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

        :param length: Returns the length in bytes of the query without the
            aggregates of this decision. It is not called if the length does
            not matter.
        :returns: The decision; a refusal if the query cannot be shortened
            enough.
        """
        destination = self.destination
        narrows = destination.forbidden or destination.required_aggregates
        if destination.refusals or not narrows or not shortener.limit:
            return self
        rest = length()
        # An upper bound, which counts aggregates in several sets repeatedly.
        number = sum(map(len, destination.forbidden))
        plain = rest + query_limit.forbidden_length(number)
        for choice in destination.required_aggregates:
            plain += query_limit.required_length(len(choice))
        if plain <= shortener.limit:
            return self
        # Imported late, with the first query that is too long.
        from isolate_aggregates.query_limit.shortener import fit

        try:
            replacement, required = fit(
                shortener, destination, self.aggregates, rest, host_forced
            )
        except exception.QueryNotShortened as exc:
            for reason in exc.reasons:
                destination.add(
                    Refuse(Cause('query-too-long', reason)), QUERY_LIMIT
                )
            return dataclasses.replace(self, too_long=exc)
        return dataclasses.replace(
            self,
            replacement=replacement,
            required_subset=required,
        )


def decide(
    request: RequestSpec, aggregates: AggregateIndex, pipeline: Pipeline
) -> Decision:
    """Run the request filters for a request.

    :returns: The decision, which may be a refusal; see
        :meth:`Decision.check`.
    """
    return Decision(pipeline.evaluate(request, aggregates), aggregates)
