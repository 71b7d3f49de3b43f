# SPDX-License-Identifier: Apache-2.0
"""Checks the hosts that Placement returned for a shortened query.

Rollups were verified some time ago, and requirements that are left to host
filters are not in the query at all. So Placement is asked for what the full
query would have excluded: one question for as many aggregates as fit into a
query, whatever the number of hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import functools
import itertools
import time

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.nova.placement import TIMEOUT
from isolate_aggregates.placement import group
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.query_limit import Replacement
from isolate_aggregates.rest.deadline import Deadline

_JOINED = (
    'in Placement it is now in an aggregate that the request may not use; if '
    'this persists, run "isolate-aggregates audit"'
)
_IS_NO_MEMBER = (
    'in Placement it is in no aggregate that meets this; if this persists, '
    'run "isolate-aggregates audit"'
)
_SHARING = (
    'a sharing provider in Placement is now in an aggregate that the request '
    'may not use'
)


class ReturnedHosts:
    """Checks returned hosts by their current memberships in Placement.

    :param limit: The maximum length of a query in bytes; 0 for no limit.
    :param longest: Seconds that a request waits for Placement at most.
    """

    def __init__(
        self,
        placement: Callable[[], PlacementClient],
        limit: int,
        clock: Callable[[], float] = time.monotonic,
        longest: float = TIMEOUT,
    ) -> None:
        self._placement = placement
        self._limit = limit
        self._clock = clock
        self._longest = longest
        self._deadline = Deadline('Placement', longest)

    def objections(
        self, decision: Decision, nodes: Collection[str]
    ) -> Mapping[str, Sequence[str]]:
        """Return the reasons why a request may not use compute nodes.

        :param nodes: The uuids of compute nodes, which are those of their
            providers.
        :returns: The reasons by uuid, for some of the nodes.
        :raises RequestRefused: if Placement does not answer.
        """
        replacement = decision.replacement or Replacement(frozenset())
        left_out = decision.left_out
        if not nodes or not (replacement.replaced or left_out):
            return {}
        # A late call must not refer to a request that no longer waits.
        read = functools.partial(
            self._read,
            frozenset(nodes),
            replacement,
            tuple(left_out),
            self._clock() + self._longest,
        )
        try:
            late_members, is_sharing, missing = self._deadline.run(read)
        except exception.IsolateAggregatesError as exc:
            raise exception.RequestRefused(
                [
                    'the query to Placement was shortened, and the returned '
                    f'hosts cannot be checked: {exc}'
                ]
            ) from exc
        reasons: dict[str, list[str]] = {}
        for node in nodes if is_sharing else ():
            reasons.setdefault(node, []).append(_SHARING)
        for node in late_members:
            reasons.setdefault(node, []).append(_JOINED)
        for reason, lacking in zip(left_out.values(), missing, strict=True):
            for node in lacking:
                reasons.setdefault(node, []).append(
                    f'{reason}; {_IS_NO_MEMBER}'
                )
        return reasons

    def _read(
        self,
        nodes: frozenset[str],
        replacement: Replacement,
        left_out: Sequence[frozenset[str]],
        until: float,
    ) -> tuple[frozenset[str], bool, Sequence[frozenset[str]]]:
        """Ask Placement about nodes.

        :returns: The nodes in aggregates that were replaced, whether a sharing
            provider is in one, and the nodes that are in no aggregate of each
            choice.
        """
        ask = functools.partial(self._ask, until)
        # Members of the rollups have not been returned. The answer is shorter
        # without them, and normally empty.
        room = group.most_aggregates(self._limit) // 2
        rollups = [rollup.uuid for rollup in replacement.rollups[:room]]
        roots: set[str] = set()
        is_sharing = False
        for some in self._parts(replacement.replaced, len(rollups)):
            provider_roots = {
                provider['root_provider_uuid']
                for provider in ask(member_of=some, not_member_of=rollups)
            }
            roots |= provider_roots
            if provider_roots - nodes:
                # They may be shared storage that the returned hosts use.
                is_sharing |= bool(
                    ask(
                        member_of=some,
                        not_member_of=rollups,
                        required=[os_traits.MISC_SHARES_VIA_AGGREGATE],
                    )
                )
        missing = []
        for choice in left_out:
            lacking = set(nodes)
            for some in self._parts(choice, 0):
                if lacking:
                    lacking -= {
                        provider['uuid'] for provider in ask(member_of=some)
                    }
            missing.append(frozenset(lacking))
        return nodes & roots, is_sharing, missing

    def _parts(
        self, aggregates: Collection[str], rollups: int
    ) -> Iterator[list[str]]:
        """Yield parts of the aggregates that fit into a query."""
        room = self._limit - group.forbidden_length(rollups)
        # With "required", the query is a little longer.
        most = max(1, group.most_aggregates(room) - 1)
        remaining = iter(sorted(aggregates))
        while some := list(itertools.islice(remaining, most)):
            yield some

    def _ask(
        self,
        until: float,
        member_of: Collection[str],
        not_member_of: Collection[str] = (),
        required: Collection[str] = (),
    ) -> list[dict[str, str]]:
        # End a call that no request waits for any more.
        if self._clock() > until:
            raise exception.ServiceUnreachable(
                'Placement',
                None,
                'takes too long to return the members of aggregates.',
            )
        return self._placement().resource_providers(
            member_of=member_of,
            not_member_of=not_member_of,
            required=required,
        )
