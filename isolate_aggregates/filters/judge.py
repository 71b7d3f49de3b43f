# SPDX-License-Identifier: Apache-2.0
"""Holds what the request filters concluded against hosts already chosen.

For requests that no scheduler narrows to a destination, such as a rebuild,
and for servers that run already.
"""

from collections.abc import Set

from isolate_aggregates.filters.destination import Destination


def objections(destination: Destination, aggregates: Set[str]) -> list[str]:
    """Return the reasons why a request may not be on a host.

    Looked at are the aggregates of the host; a conclusion about a provider
    tree or about traits of the root provider is no objection.

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
