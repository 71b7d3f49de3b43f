# SPDX-License-Identifier: Apache-2.0
"""Splits a request into its requirements, and rebuilds it without some."""

from collections.abc import Collection, Iterator, Mapping
import copy

from isolate_aggregates.filters.constraints import Conclusion, Destination
from isolate_aggregates_tools.explain.conclusions import Concluded
from isolate_aggregates_tools.explain.requirements import (
    Amount,
    ForbiddenTrait,
    InAggregates,
    Isolate,
    OutsideAggregates,
    RequiredTrait,
    Requirement,
    RootTrait,
    SameSubtree,
    WithinTree,
)
from isolate_aggregates_tools.mirrored.mirror import Remark
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.request import constraints
from isolate_aggregates_tools.simulator import query, refusal


class DividedRequest:
    """A request as a list of requirements.

    :param request: The request before any request filter has changed it. Its
        limit is ignored, because every host is explained.
    :raises BadQuery: if Placement would answer the query with 400, whichever
        traits exist.
    """

    def __init__(
        self, request: ResourceRequest, conclusions: Collection[Conclusion]
    ) -> None:
        self.requirements: tuple[Requirement, ...] = (
            *(
                Concluded('', conclusion)
                for conclusion in conclusions
                if not isinstance(conclusion.constraint, Remark)
            ),
            *_parts(request),
        )
        self._policy = request.group_policy
        self.whole = self._checked(request, conclusions)

    @property
    def amounts(self) -> Iterator[Amount]:
        """The requested amounts of resource classes."""
        return (c for c in self.requirements if isinstance(c, Amount))

    @property
    def classes(self) -> Mapping[str, frozenset[str]]:
        """The resource classes of each request group, by suffix."""
        classes: dict[str, frozenset[str]] = {}
        for amount in self.amounts:
            suffix = amount.suffix or ''
            classes[suffix] = classes.get(suffix, frozenset()) | {
                amount.resource_class
            }
        return classes

    def without(
        self, omissions: Collection[Requirement] = ()
    ) -> ResourceRequest:
        """Return the request without some of its requirements.

        A dropped amount is replaced by an amount of the placeholder resource
        class :attr:`Amount.waived`, of which there is always enough. So the
        traits and aggregates of its request group still apply.

        :param omissions: The requirements to leave out, compared by identity.
        :raises RequestRefused: if a filter refuses the remaining request.
        """
        left_out = set(map(id, omissions))
        request = ResourceRequest(group_policy=self._policy)
        destination = Destination()
        for requirement in self.requirements:
            if id(requirement) in left_out:
                requirement.waive(request)
            elif isinstance(requirement, Concluded):
                conclusion = requirement.conclusion
                destination.add(conclusion.constraint, conclusion.filter_name)
            else:
                requirement.add_to(request)
        constraints.add(destination, request)
        return request

    @staticmethod
    def _checked(
        request: ResourceRequest, conclusions: Collection[Conclusion]
    ) -> ResourceRequest:
        """Return the whole request, even if a filter refuses it."""
        destination = Destination()
        for conclusion in conclusions:
            destination.add(conclusion.constraint, conclusion.filter_name)
        destination.refusals.clear()
        whole = copy.deepcopy(request)
        whole.limit = None
        constraints.add(destination, whole)
        if '' in whole.groups and '' not in request.groups:
            raise refusal.Refused(
                'all resources are in request groups with a suffix, so there '
                'is no group to which required or forbidden aggregates can be '
                'added'
            )
        query.candidates(whole.to_queryparams())
        return whole


def _parts(request: ResourceRequest) -> Iterator[Requirement]:
    """Yield the requirements of a request, traits before amounts."""
    for trait in sorted(request.root_required):
        yield RootTrait(None, trait, True)
    for trait in sorted(request.root_forbidden):
        yield RootTrait(None, trait, False)
    groups = [group for _, group in sorted(request.groups.items())]
    for group in groups:
        yield from _conditions(group)
    for group in groups:
        for resource_class, amount in sorted(group.resources.items()):
            yield Amount(group.suffix, resource_class, amount)
    suffixes = frozenset(request.groups) - {''}
    if request.group_policy == 'isolate' and len(suffixes) > 1:
        yield Isolate(None, suffixes)
    for subtree in dict.fromkeys(request.same_subtree):
        yield SameSubtree(None, subtree)


def _conditions(group: RequestGroup) -> Iterator[Requirement]:
    """Yield the requirements of a group on the providers that serve it."""
    suffix = group.suffix
    if group.in_tree:
        yield WithinTree(suffix, group.in_tree)
    for choice in dict.fromkeys(group.aggregates):
        yield InAggregates(suffix, choice)
    for aggregate in sorted(group.forbidden_aggregates):
        yield OutsideAggregates(suffix, frozenset({aggregate}))
    for trait in sorted(group.required_traits):
        yield RequiredTrait(suffix, frozenset({trait}))
    for choice in dict.fromkeys(group.any_traits):
        yield RequiredTrait(suffix, choice, is_choice=True)
    for trait in sorted(group.forbidden_traits):
        yield ForbiddenTrait(suffix, trait)
