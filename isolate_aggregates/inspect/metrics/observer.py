# SPDX-License-Identifier: Apache-2.0
"""The interface for counting the work of request filters in nova-scheduler.

This implementation counts nothing, for use without metrics; prometheus-client
is not imported.
"""

from isolate_aggregates import exception
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.pipeline import Timer


class Observer:
    """Takes no notice of anything.

    ``timer`` is told how long each filter took; None if that is not measured.
    """

    timer: Timer | None = None

    def passed(
        self, started_at: float, destination: Destination, shortened: bool
    ) -> None:
        """Note that a request may go to Placement.

        :param started_at: When the filters began, by the monotonic clock.
        :param destination: What they concluded.
        :param shortened: Whether the query had to be shortened.
        """

    def refused(
        self, name: str, error: exception.IsolateAggregatesError
    ) -> None:
        """Note that a request was refused."""

    def verified(self, result: str) -> None:
        """Note that a rollup was compared with what Placement says.

        :param result: One of
            :data:`~isolate_aggregates.query_limit.verification.RESULTS`.
        """

    def unreadable(self) -> None:
        """Note that the aggregates could not be read, or not in time."""
