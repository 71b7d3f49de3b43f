# SPDX-License-Identifier: Apache-2.0
"""Checks given hosts against the conclusions of the request filters.

This is for requests without a query to Placement, for example rebuilds, and
for existing servers.
"""

from collections.abc import Set

from isolate_aggregates.filters.destination import (
    Destination,
    ExplainedDestination,
)


def objections(
    destination: ExplainedDestination, aggregates: Set[str]
) -> list[str]:
    """Return the reasons why a request may not use a host.

    Only the aggregates of the host are checked. Conclusions about provider
    trees and traits of the root provider are ignored.
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
