# SPDX-License-Identifier: Apache-2.0
"""Checks the hosts that Placement returned for a shortened query.

Forbidden aggregates that do not fit into a query, and requirements that are
left to host filters, are checked by the current memberships of the providers
that serve the request: of a host, of those below it, and of sharing ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import functools
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.nova.placement import TIMEOUT
from isolate_aggregates.placement import PlacementReader
from isolate_aggregates.query_limit import Replacement, memberships
from isolate_aggregates.rest.deadline import Deadline

_IS_MEMBER = (
    'in Placement it, or each provider that it would use, is in an aggregate '
    'that the request may not use'
)
_IS_NO_MEMBER = (
    'in Placement it is in no aggregate that meets this; if this persists, '
    'run "isolate-aggregates audit"'
)

# The allocation candidates of a host, as Nova has them: the providers that
# each uses are the keys of its "allocations".
Candidates = list[dict[str, Any]]


class ReturnedHosts:
    """Checks returned hosts by their current memberships in Placement.

    :param limit: The maximum length of a query in bytes; 0 for no limit.
    """

    def __init__(
        self,
        placement: Callable[[], PlacementReader],
        limit: int,
    ) -> None:
        self._placement = placement
        self._limit = limit
        self._deadline = Deadline('Placement', TIMEOUT)

    def objections(
        self, decision: Decision, candidates: Mapping[str, Candidates]
    ) -> Mapping[str, Sequence[str]]:
        """Return the reasons why a request may not use compute nodes.

        :param candidates: The allocation candidates of each compute node, by
            its uuid, which is that of its provider. Those that the request may
            not use are removed.
        :returns: The reasons by uuid, for some of the nodes.
        :raises RequestRefused: if Placement does not answer.
        """
        replacement = decision.replacement or Replacement(frozenset())
        left_out = decision.left_out
        if not candidates or not (replacement.left_out or left_out):
            return {}
        # A late call must not refer to a request that no longer waits.
        read = functools.partial(
            memberships.members,
            self._deadline.in_time(
                self._placement, 'the members of aggregates'
            ),
            self._limit,
            frozenset(candidates).union(
                *(
                    candidate['allocations']
                    for of_node in candidates.values()
                    for candidate in of_node
                )
            ),
            replacement,
            tuple(left_out),
        )
        try:
            forbidden, choices = self._deadline.run(read)
        except exception.IsolateAggregatesError as exc:
            raise exception.RequestRefused(
                [
                    'the query to Placement was shortened, and the returned '
                    f'hosts cannot be checked: {exc}'
                ]
            ) from exc
        reasons: dict[str, list[str]] = {}
        for node, of_node in candidates.items():
            of_node[:] = [
                candidate
                for candidate in of_node
                if forbidden.isdisjoint((node, *candidate['allocations']))
            ]
            if not of_node:
                reasons.setdefault(node, []).append(_IS_MEMBER)
            for reason, members in zip(
                left_out.values(), choices, strict=True
            ):
                if node not in members:
                    reasons.setdefault(node, []).append(
                        f'{reason}; {_IS_NO_MEMBER}'
                    )
        return reasons
