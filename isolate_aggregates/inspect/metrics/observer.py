# SPDX-License-Identifier: Apache-2.0
"""What the request filters in nova-scheduler tell of their work.

Here nobody listens, which is how it is without metrics; prometheus-client is
not imported.
"""

from collections.abc import Callable

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.request import RequestSpec

# Runs a filter over a request and adds to the destination.
Narrow = Callable[[Destination, RequestSpec, AggregateIndex], None]


class Observer:
    """Takes no notice of anything."""

    def timed(self, name: str, narrow: Narrow) -> Narrow:
        """Return what runs a filter from now on."""
        return narrow

    def passed(self, started_at: float, shortened: bool) -> None:
        """Note that a request may go to Placement.

        :param started_at: When the filters began, by the monotonic clock.
        :param shortened: Whether the query had to be shortened.
        """

    def refused(
        self, name: str, error: exception.IsolateAggregatesError
    ) -> None:
        """Note that a request was refused."""
