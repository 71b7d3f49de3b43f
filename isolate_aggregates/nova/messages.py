# SPDX-License-Identifier: Apache-2.0
"""What is told of a request: to its user, in the log, and to metrics.

Nova writes the reason of a failure into the fault of the server, where its
user can read it. Users always get the same message, because different ones
could reveal endpoints, aggregates, or whether a reservation of another project
exists. The reason is in the log, with the same request ID.
"""

from __future__ import annotations

from collections.abc import Callable

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.pipeline import Timer
from isolate_aggregates.query_limit import OUR_HOST_FILTER
from isolate_aggregates.text import escaped

LOG = logging.getLogger(__name__)


def server(spec: objects.RequestSpec) -> str:
    """Return the server and the project of a request, as text."""
    uuid = spec.instance_uuid if 'instance_uuid' in spec else None
    project = spec.project_id if 'project_id' in spec else None
    return f'server {uuid} of project {escaped(str(project))}'


def refused(
    context: nova_context.RequestContext,
    spec: objects.RequestSpec,
    error: exception.IsolateAggregatesError,
) -> nova_exception.RequestFilterFailed:
    """Log why a request is refused, and return the error for its user."""
    reason = (
        '; '.join(error.reasons)
        if isinstance(error, exception.RequestRefused)
        else str(error)
    )
    LOG.info(
        'Refused to schedule %(server)s, request %(request)s: %(reason)s',
        {
            'server': server(spec),
            'request': context.request_id,
            'reason': reason,
        },
    )
    return nova_exception.RequestFilterFailed(
        reason='no host may be used for this request; an operator can look up '
        f'the reason by its request ID, {context.request_id}'
    )


def left_to_host_filters(
    spec: objects.RequestSpec, decision: Decision
) -> None:
    """Warn that requirements are left to our host filter."""
    LOG.warning(
        'The query to Placement for %(server)s would be longer than '
        '[isolate_aggregates] max_query_length, so these constraints are left '
        'to %(host_filter)s. Host filters check only the hosts that Placement '
        'returns, at most [scheduler] max_placement_results. This is logged '
        'only once: %(left)s',
        {
            'server': server(spec),
            'host_filter': OUR_HOST_FILTER,
            'left': '; '.join(
                escaped(conclusion.constraint.reason)
                for conclusion in decision.left_to_host_filters
            ),
        },
    )


class Observer:
    """Ignores what the metrics and the records of a worker need.

    It is used without metrics, so that prometheus-client is not imported.
    ``timer`` is called with the duration of each filter; None if durations are
    not measured.
    """

    timer: Timer | None = None

    #: Notes a decision before it is in the request spec.
    decided: Callable[[Decision, objects.RequestSpec], None] = staticmethod(
        lambda decision, spec: None
    )
    #: Notes that a request is refused, or that its hosts cannot be checked.
    failed: Callable[
        [exception.IsolateAggregatesError, Decision | None], None
    ] = staticmethod(lambda error, decision: None)

    #: Notes that a host that passed the host filters may not be used.
    unusable: Callable[[str], None] = staticmethod(lambda host: None)

    def passed(
        self, started_at: float, destination: Destination, is_shortened: bool
    ) -> None:
        """Record a request that passed the filters.

        :param started_at: When the first filter began, by the monotonic clock.
        """

    def refused(
        self, name: str, error: exception.IsolateAggregatesError
    ) -> None:
        """Record a refused request, and the filter that refused it, if any."""

    def excluded(self, hosts: int, most: int) -> None:
        """Record the hosts that were excluded after a shortened query.

        :param most: The maximum number of hosts that Placement returns.
        """

    def no_host(self, cause: str) -> None:
        """Record a request that got no host, and the primary cause."""

    def shadowed(self, effect: str) -> None:
        """Record what filters in shadow would have changed of a request."""

    def unreadable(self) -> None:
        """Record a failure or timeout when reading the aggregates."""
