# SPDX-License-Identifier: Apache-2.0
"""Runs request filters for a request, and returns what they conclude."""

from collections.abc import Iterable, Mapping

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import RequestSpec


def reasons_for(
    request: RequestSpec,
    aggregates: Iterable[Aggregate],
    filters: Mapping[str, RequestFilter],
) -> list[str]:
    """Return the reason of each constraint, in the order of the filters.

    :param request: The request, which the filters may refuse.
    :param aggregates: The host aggregates of the cloud.
    :param filters: Filters by name, in the order in which they run. They need
        not be installed.
    :raises FilterError: if a filter fails or violates its contract.
    """
    decision = decide(request, AggregateIndex(aggregates), Pipeline(filters))
    return [
        conclusion.constraint.reason
        for conclusion in decision.destination.conclusions
    ]
