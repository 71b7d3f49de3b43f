# SPDX-License-Identifier: Apache-2.0
"""Entry points for a proposed hook in Nova.

A Nova with this hook runs the request filters in ``[scheduler]
request_filters``, and loads those that are not its own from entry points. See
the page "Proposals for Nova and Placement" of the documentation.
"""

from __future__ import annotations

from nova import context as nova_context
from nova import objects

from isolate_aggregates import exception
from isolate_aggregates.nova import messages, registration
from isolate_aggregates.nova.runner import Runner


def isolate_aggregates_pipeline(
    context: nova_context.RequestContext, request_spec: objects.RequestSpec
) -> bool:
    """Add constraints to a request spec, or refuse it.

    :raises RequestFilterFailed: if no host may serve the request.
    """
    return _runner(context, request_spec)(context, request_spec)


def isolate_aggregates_query_limit(
    context: nova_context.RequestContext, request_spec: objects.RequestSpec
) -> bool:
    """Shorten the query if necessary, or refuse the request.

    :raises RequestFilterFailed: if no host may serve the request.
    """
    return _runner(context, request_spec).finish(context, request_spec)


def _runner(
    context: nova_context.RequestContext, spec: objects.RequestSpec
) -> Runner:
    runner = registration.installed()
    if runner is None:
        raise messages.refused(
            context,
            spec,
            exception.ConfigError(
                '[filter_scheduler] available_filters',
                'lacks isolate_aggregates.nova.all_filters, which creates the '
                'request filters; add it after '
                'nova.scheduler.filters.all_filters.',
            ),
        )
    return runner
