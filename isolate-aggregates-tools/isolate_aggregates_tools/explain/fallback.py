# SPDX-License-Identifier: Apache-2.0
"""Explains a request, also if Nova sends two queries for pinned CPUs.

Nova asks for PCPU and then for VCPU, for hosts that do not provide PCPU yet. A
host needs to be offered for one of the two.
"""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.explain.requirements import Requirement
from isolate_aggregates_tools.explain.verdicts import (
    Cause,
    Count,
    Explanation,
    Verdict,
    explain,
)
from isolate_aggregates_tools.request import Request, resources


def of_request(
    snapshot: Snapshot, request: Request, destination: Destination
) -> Explanation:
    """Explain a request for all queries that Nova sends for it.

    :param destination: The conclusions of the request filters, which may
        include a refusal.
    :raises BadQuery: if Placement would answer the query with 400.
    """
    first, *fallbacks = (
        explain(snapshot, resources.resource_request(variant), destination)
        for variant in request.variants
    )
    return combined(first, *fallbacks) if fallbacks else first


def combined(main: Explanation, fallback: Explanation) -> Explanation:
    """Return the explanation of a request with a fallback query."""
    others = {verdict.provider: verdict for verdict in fallback.verdicts}
    # Hosts with equal causes share the same object.
    causes: dict[tuple[int, int], tuple[Cause, ...]] = {}
    verdicts = []
    for verdict in main.verdicts:
        other = others[verdict.provider]
        key = id(verdict.causes), id(other.causes)
        if key not in causes:
            causes[key] = _combined(verdict, other)
        verdicts.append(
            dataclasses.replace(
                verdict,
                causes=causes[key],
                by_fallback=other.is_candidate and not verdict.is_candidate,
            )
        )
    candidates = frozenset(v.provider for v in verdicts if v.is_candidate)
    return Explanation(
        main.divided,
        tuple(verdicts),
        tuple(_counts(main, fallback, candidates)),
        () if candidates else _remedies(main, fallback),
    )


def _combined(verdict: Verdict, other: Verdict) -> tuple[Cause, ...]:
    if verdict.is_candidate or other.is_candidate:
        return ()
    return tuple(dict.fromkeys((*verdict.causes, *other.causes)))


def _counts(
    main: Explanation, fallback: Explanation, candidates: frozenset[str]
) -> Iterator[Count]:
    """Yield the counts of both, of hosts that neither query offers."""
    causes = {count.cause for count in main.counts}
    more = (count for count in fallback.counts if count.cause not in causes)
    for count in (*main.counts, *more):
        yield dataclasses.replace(
            count,
            excludes=count.excludes - candidates,
            only=count.only - candidates,
        )


def _remedies(
    main: Explanation, fallback: Explanation
) -> tuple[tuple[Requirement, ...], ...]:
    """Return the smallest sets of requirements to drop from either query."""
    remedies = dict.fromkeys((*main.remedies, *fallback.remedies))
    size = min(map(len, remedies), default=0)
    return tuple(remedy for remedy in remedies if len(remedy) == size)
