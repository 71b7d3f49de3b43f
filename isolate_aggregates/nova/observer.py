# SPDX-License-Identifier: Apache-2.0
"""The interface for metrics of the request filters in nova-scheduler.

This implementation records nothing. It is used without metrics, so that
prometheus-client is not imported.
"""

from isolate_aggregates import exception
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.pipeline import Timer


class Observer:
    """Ignores all events.

    ``timer`` is called with the duration of each filter; None if durations are
    not measured.
    """

    timer: Timer | None = None

    def passed(
        self,
        started_at: float,
        destination: Destination,
        is_shortened: bool,
    ) -> None:
        """Record a request that passed the filters.

        :param started_at: The start of the first filter, by the monotonic
            clock.
        """

    def refused(
        self, name: str, error: exception.IsolateAggregatesError
    ) -> None:
        """Record a refused request."""

    def excluded(self, hosts: int, most: int) -> None:
        """Record the hosts that were excluded after a shortened query.

        :param most: The maximum number of hosts that Placement returns.
        """

    def unreadable(self) -> None:
        """Record a failure or timeout when reading the aggregates."""
