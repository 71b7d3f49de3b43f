# SPDX-License-Identifier: Apache-2.0
"""Placement over a snapshot: a question in, the service's answer out."""

from collections.abc import Iterable
import itertools

import os_resource_classes
import os_traits

from isolate_aggregates.placement.client import AllocationCandidates
from isolate_aggregates.placement.group import RequestGroup, ResourceRequest
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.placement.simulator import (
    conditions,
    groups,
    merge,
    query,
)
from isolate_aggregates.placement.simulator.answer import answer
from isolate_aggregates.placement.simulator.groups import Serving
from isolate_aggregates.placement.simulator.index import (
    ProviderIndex,
    ProviderSet,
)

_NOTHING = AllocationCandidates((), (), {})


class Simulator:
    """Answers as Placement would if it had these providers.

    :param providers: The resource providers; parents before children.
    :param traits: Names of custom traits that exist although no provider has
        them; Placement calls an unknown trait a mistake.
    :param resource_classes: Names of custom resource classes that exist
        although no provider has an inventory of them.
    """

    def __init__(
        self,
        providers: Iterable[Provider],
        traits: Iterable[str] = (),
        resource_classes: Iterable[str] = (),
    ) -> None:
        self.index = ProviderIndex(providers)
        self._traits = {
            *os_traits.get_traits(),
            *self.index.traits,
            *traits,
        }
        self._classes = {
            *os_resource_classes.STANDARDS,
            *self.index.stocks,
            *resource_classes,
        }

    def allocation_candidates(
        self, request: ResourceRequest | str
    ) -> AllocationCandidates:
        """Answer ``GET /allocation_candidates``.

        Candidates come by host, in the order of the snapshot. The service
        promises no order; where ``limit`` leaves some out, it may be others.

        :param request: The request, or the query string of one.
        :raises BadQuery: if the service would call the query invalid.
        :raises InvalidRequest: if no query can be made of the request.
        """
        asked = query.candidates(
            query.parameters(request)
            if isinstance(request, str)
            else request.to_queryparams()
        )
        servings = self.servings(asked)
        if not servings:
            return _NOTHING
        found = merge.combinations(self.index, asked, servings)
        chosen = list(itertools.islice(found, asked.limit))
        return answer(self.index, servings, chosen)

    def hosts(self, request: ResourceRequest) -> ProviderSet:
        """Return the roots of the trees that some candidate takes from.

        Quicker than all candidates: one of each tree is enough. Of a provider
        that shares with others its own tree counts only for a candidate
        around it.

        :raises BadQuery: if the service would call the query invalid.
        :raises InvalidRequest: if no query can be made of the request.
        """
        asked = query.candidates(request.to_queryparams())
        servings = self.servings(asked)
        if not servings:
            return 0
        return merge.local_anchors(self.index, asked, servings)

    def resource_providers(self, query_string: str = '') -> list[Provider]:
        """Answer ``GET /resource_providers``, in the order of the snapshot.

        :raises BadQuery: if the service would call it invalid.
        """
        asked = query.providers(query.parameters(query_string))
        found = self._providers(asked.group)
        return [
            provider
            for provider in map(
                self.index.providers.__getitem__, self.index.members(found)
            )
            if asked.name in (None, provider.name)
            and asked.uuid in (None, provider.uuid)
        ]

    def servings(self, request: ResourceRequest) -> list[Serving]:
        """Return all the ways to serve each group; none if one has none.

        :param request: A request that is not invalid in itself.
        :raises BadQuery: if it comes to a trait or a resource class that it
            does not know. What a later group names is not looked at once a
            group cannot be served, nor is it by the service.
        """
        root_traits = request.root_required | request.root_forbidden
        self._check_traits(root_traits)
        anchors = conditions.roots_with(
            self.index, request.root_required, request.root_forbidden
        )
        if root_traits and not anchors:
            return []
        servings = []
        for group in request.groups.values():
            if not self._is_known(group):
                return []
            serving = groups.serve(self.index, group, anchors)
            anchors_left = self.index.members(serving.anchors)
            if not any(map(serving.around, anchors_left)):
                return []
            servings.append(serving)
        return servings

    def _is_known(self, group: RequestGroup) -> bool:
        """Say whether any provider is where a group wants to be.

        In this order: an aggregate without members keeps an unknown trait
        from being noticed, but not an unknown resource class.
        """
        self._check_classes(group)
        if not self._has_members(group):
            return False
        required = frozenset().union(*conditions.required(group))
        self._check_traits(required | group.forbidden_traits)
        return self._has_tree(group)

    def _has_members(self, group: RequestGroup) -> bool:
        members = conditions.in_aggregates(self.index, group)
        return bool(members or not group.aggregates)

    def _has_tree(self, group: RequestGroup) -> bool:
        return group.in_tree is None or group.in_tree in self.index.numbers

    def _providers(self, group: RequestGroup) -> ProviderSet:
        """Return the providers that each meet all conditions of a group.

        Again a condition that no provider meets keeps what the next ones name
        from being noticed.
        """
        index = self.index
        if not self._has_tree(group):
            return 0
        required = conditions.required(group)
        self._check_traits(frozenset().union(*required))
        if required and not conditions.with_traits(index, group):
            return 0
        self._check_traits(group.forbidden_traits)
        if not self._has_members(group):
            return 0
        self._check_classes(group)
        return conditions.meeting_all(index, group)

    def _check_traits(self, traits: Iterable[str]) -> None:
        self._check('trait', traits, self._traits)

    def _check_classes(self, group: RequestGroup) -> None:
        self._check('resource class', group.resources, self._classes)

    def _check(self, kind: str, names: Iterable[str], known: set[str]) -> None:
        unknown = sorted(set(names) - known)
        if unknown:
            raise query.refused(f'there is no {kind} {", ".join(unknown)}')
