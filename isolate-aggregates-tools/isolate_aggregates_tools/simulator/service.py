# SPDX-License-Identifier: Apache-2.0
"""The Placement simulator: takes queries, returns Placement's responses."""

from collections.abc import Iterable
import itertools
import sys

import os_resource_classes
import os_traits

from isolate_aggregates_tools.placement.client import AllocationCandidates
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.simulator import (
    groups,
    merge,
    query,
    refusal,
)
from isolate_aggregates_tools.simulator.answer import answer
from isolate_aggregates_tools.simulator.groups import Serving
from isolate_aggregates_tools.simulator.index import ProviderIndex, ProviderSet

_NOTHING = AllocationCandidates((), (), {})
# get_traits() walks all of os_traits on every call.
_STANDARD_TRAITS = tuple(os_traits.get_traits())


class Simulator:
    """Answers queries as a Placement with these providers would.

    :param providers: The resource providers, parents before children; or an
        index of them, which several simulators can share.
    :param traits: Names of further custom traits that exist, for those that no
        provider has. Placement rejects queries for unknown traits.
    :param resource_classes: Names of further custom resource classes that
        exist, for those that no provider has an inventory of.
    :param max_amount: The largest amount that Placement's database can
        compare; None for any.
    """

    def __init__(
        self,
        providers: Iterable[Provider] | ProviderIndex,
        traits: Iterable[str] = (),
        resource_classes: Iterable[str] = (),
        max_amount: int | None = None,
    ) -> None:
        self._max_amount = max_amount
        self.index = (
            providers
            if isinstance(providers, ProviderIndex)
            else ProviderIndex(providers)
        )
        self.traits = frozenset(
            (*_STANDARD_TRAITS, *self.index.traits, *traits)
        )
        self.resource_classes = frozenset(
            (
                *os_resource_classes.STANDARDS,
                *self.index.stocks,
                *resource_classes,
            )
        )

    def allocation_candidates(
        self, request: ResourceRequest | str, minor: int = query.NEWEST
    ) -> AllocationCandidates:
        """Answer ``GET /allocation_candidates``.

        Candidates are grouped by host, in the order of the snapshot.
        Placement guarantees no order, so with ``limit`` it may return
        different candidates.

        :param minor: The microversion, without the ``1.``; at least 29.
        :raises BadQuery: if Placement would answer with 400.
        :raises ServiceFailed: if Placement would answer with 500.
        :raises InvalidRequest: if the request cannot be written as a query.
        """
        resource_request = query.candidates(
            query.parameters(request)
            if isinstance(request, str)
            else request.to_queryparams(),
            minor,
        )
        servings = self.servings(resource_request)
        if not servings:
            return _NOTHING
        combinations = itertools.islice(
            merge.combinations(self.index, resource_request, servings),
            min(resource_request.limit or sys.maxsize, sys.maxsize),
        )
        return answer(self.index, servings, list(combinations))

    def hosts(self, request: ResourceRequest) -> ProviderSet:
        """Return the compute nodes for which Nova takes a candidate.

        Nova skips a host if no candidate allocates from the root of its tree,
        which is the compute node. This is faster than listing all candidates,
        because one per tree is enough. The root of a sharing provider is
        included only if it is the anchor of a candidate that uses it.
        """
        request = query.candidates(request.to_queryparams())
        servings = self.servings(request)
        if not servings:
            return 0
        return merge.node_anchors(self.index, request, servings)

    def count(self, request: ResourceRequest, most: int) -> int:
        """Return the number of allocation candidates, up to a maximum.

        The limit of the request is ignored.
        """
        parsed = query.candidates(request.to_queryparams())
        servings = self.servings(parsed)
        if not servings:
            return 0
        candidates = merge.combinations(self.index, parsed, servings)
        return sum(1 for _ in itertools.islice(candidates, most))

    def resource_providers(
        self, query_string: str = '', minor: int = query.NEWEST
    ) -> list[Provider]:
        """Answer ``GET /resource_providers``, in the order of the snapshot."""
        provider_query = query.providers(query.parameters(query_string), minor)
        numbers = self.index.members(self._providers(provider_query.group))
        return [
            provider
            for provider in map(self.index.providers.__getitem__, numbers)
            if provider_query.name in (None, provider.name)
            and provider_query.uuid in (None, provider.uuid)
        ]

    def servings(self, request: ResourceRequest) -> list[Serving]:
        """Return the ways to serve each group; empty if a group has none.

        :raises BadQuery: if the request has an unknown trait or resource
            class. As in Placement, the groups after one that cannot be served
            are not checked.
        """
        root_traits = request.root_required | request.root_forbidden
        self._check_traits(root_traits)
        anchors = groups.roots_with(
            self.index, request.root_required, request.root_forbidden
        )
        if root_traits and not anchors:
            return []
        servings = []
        for group in request.groups.values():
            if not self._is_known(group):
                return []
            serving = groups.serve(self.index, group, anchors)
            if not (serving.alone or self._has_pick(serving)):
                return []
            servings.append(serving)
        return servings

    def _has_pick(self, serving: Serving) -> bool:
        return any(map(serving.around, self.index.members(serving.anchors)))

    def _is_known(self, group: RequestGroup) -> bool:
        """Return whether a group's aggregates and tree have any providers.

        The order of the checks is Placement's: with an aggregate that has no
        members, an unknown trait is not reported, but an unknown resource
        class is.
        """
        self._check_classes(group)
        if not self._has_members(group):
            return False
        required = frozenset().union(*groups.required(group))
        self._check_traits(required | group.forbidden_traits)
        if not self._has_tree(group):
            return False
        self._check_amounts(group)
        return True

    def _has_members(self, group: RequestGroup) -> bool:
        members = groups.in_aggregates(self.index, group)
        return bool(members or not group.aggregates)

    def _has_tree(self, group: RequestGroup) -> bool:
        return group.in_tree is None or group.in_tree in self.index.numbers

    def _providers(self, group: RequestGroup) -> ProviderSet:
        """Return the providers that each meet all conditions of a group.

        As in Placement, names in the conditions after one that no provider
        meets are not checked.
        """
        index = self.index
        if not self._has_tree(group):
            return 0
        required = groups.required(group)
        self._check_traits(frozenset().union(*required))
        if required and not groups.with_traits(index, group):
            return 0
        self._check_traits(group.forbidden_traits)
        if not self._has_members(group):
            return 0
        self._check_classes(group)
        # Placement compares all amounts in one statement here.
        for amount in group.resources.values():
            self._check_amount(amount)
        return groups.meeting_all(index, group)

    def _check_amounts(self, group: RequestGroup) -> None:
        """Fail on the first amount that the database cannot compare.

        As in Placement, the amounts after one that no provider has are not
        compared.
        """
        if self._max_amount is None:
            return
        for resource_class, amount in group.resources.items():
            self._check_amount(amount)
            if not groups.in_tree(self.index, group) & groups.fitting(
                self.index, resource_class, amount
            ):
                return

    def _check_amount(self, amount: int) -> None:
        if self._max_amount is not None and amount > self._max_amount:
            raise refusal.Overflow(amount)

    def _check_traits(self, traits: Iterable[str]) -> None:
        self._check('trait', traits, self.traits)

    def _check_classes(self, group: RequestGroup) -> None:
        self._check('resource class', group.resources, self.resource_classes)

    def _check(
        self, kind: str, names: Iterable[str], existing: frozenset[str]
    ) -> None:
        unknown = sorted(set(names) - existing)
        if unknown:
            raise refusal.Refused(f'there is no {kind} {", ".join(unknown)}')
