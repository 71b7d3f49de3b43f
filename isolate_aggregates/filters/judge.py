# SPDX-License-Identifier: Apache-2.0
"""Checks chosen hosts against the conclusions of the request filters.

It is for requests without a query to Placement, such as a rebuild, and for
running servers.
"""

from collections.abc import Set

from isolate_aggregates.filters.destination import Destination


def objections(destination: Destination, aggregates: Set[str]) -> list[str]:
    """Return the reasons why a request may not be on a host.

    Only the aggregates of the host are checked; a conclusion about a provider
    tree or about traits of the root provider is not an objection.

    :param destination: What the filters concluded about the request.
    :param aggregates: Uuids of the aggregates that the host is in.
    """
    if destination.refusals:
        return list(destination.refusals)
    if _is_allowed(destination, aggregates):
        return []
    return [
        conclusion.constraint.reason
        for conclusion in destination.conclusions
        if not _is_allowed(conclusion.alone, aggregates)
    ]


def _is_allowed(destination: Destination, aggregates: Set[str]) -> bool:
    return destination.forbidden_aggregates.isdisjoint(aggregates) and not any(
        choice.isdisjoint(aggregates)
        for choice in destination.required_aggregates
    )
