# SPDX-License-Identifier: Apache-2.0
"""Takes a request apart into its constraints, and together again."""

from collections.abc import Collection, Iterator
import copy

from isolate_aggregates import exception
from isolate_aggregates.destination import Conclusion, Destination
from isolate_aggregates.explain.constraints import (
    Amount,
    Concluded,
    Constraint,
    ForbiddenTrait,
    Isolate,
    RequiredTrait,
    RootTrait,
    SameSubtree,
)
from isolate_aggregates.placement.group import ResourceRequest


class Question:
    """A request as the sum of its constraints.

    :param request: What is asked for, before any filter has spoken.
    :param conclusions: What the request filters concluded.
    """

    def __init__(
        self, request: ResourceRequest, conclusions: Collection[Conclusion]
    ) -> None:
        # Every host is to be judged, not the first so many.
        self._request = copy.deepcopy(request)
        self._request.limit = None
        if self._has_orphans(conclusions):
            raise exception.BadQuery(
                'Placement',
                None,
                'would call the request invalid (400): all resources are in '
                'groups with a suffix, so there is no group that required or '
                'forbidden aggregates could go with.',
            )
        self.constraints: tuple[Constraint, ...] = (
            *(Concluded(conclusion) for conclusion in conclusions),
            *_parts(self._request),
        )

    def without(self, dropped: Collection[Constraint] = ()) -> ResourceRequest:
        """Return the request without some of its constraints.

        :param dropped: The constraints to leave out.
        """
        request = copy.deepcopy(self._request)
        for constraint in dropped:
            constraint.drop(request)
        destination = Destination()
        for constraint in self.constraints:
            if isinstance(constraint, Concluded) and constraint not in dropped:
                conclusion = constraint.conclusion
                destination.add(conclusion.constraint, conclusion.filter_name)
        if '' in request.groups:
            destination.apply_to(request)
        else:
            destination.check()
            request.root_forbidden |= destination.root_forbidden
        return request

    def _has_orphans(self, conclusions: Collection[Conclusion]) -> bool:
        if '' in self._request.groups:
            return False
        destination = Destination()
        for conclusion in conclusions:
            destination.add(conclusion.constraint, conclusion.filter_name)
        return bool(
            destination.required_aggregates
            or destination.forbidden_aggregates
            or destination.in_tree
        )


def _parts(request: ResourceRequest) -> Iterator[Constraint]:
    """Yield the constraints of a request, traits before amounts."""
    for trait in sorted(request.root_required):
        yield RootTrait(trait, True)
    for trait in sorted(request.root_forbidden):
        yield RootTrait(trait, False)
    for suffix, group in sorted(request.groups.items()):
        for trait in sorted(group.required_traits):
            yield RequiredTrait(suffix, frozenset({trait}))
        for choice in dict.fromkeys(group.any_traits):
            yield RequiredTrait(suffix, choice, is_choice=True)
        for trait in sorted(group.forbidden_traits):
            yield ForbiddenTrait(suffix, trait)
    for suffix, group in sorted(request.groups.items()):
        for resource_class, amount in sorted(group.resources.items()):
            yield Amount(suffix, resource_class, amount)
    if request.group_policy == 'isolate':
        yield Isolate()
    for suffixes in dict.fromkeys(request.same_subtree):
        yield SameSubtree(suffixes)
