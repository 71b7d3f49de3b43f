# SPDX-License-Identifier: Apache-2.0
"""Takes a request apart into its requirements, and together again."""

from collections.abc import Collection, Iterator, Mapping
import copy

from isolate_aggregates.filters.constraints import Remark
from isolate_aggregates.filters.destination import Conclusion, Destination
from isolate_aggregates.inspect.explain.requirements import (
    Amount,
    Concluded,
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
from isolate_aggregates.placement.group import RequestGroup, ResourceRequest
from isolate_aggregates.placement.simulator import query, refusal


class DividedRequest:
    """A request as the sum of its requirements.

    :param request: What is asked for, before any filter has spoken. Its limit
        is not looked at: every host is to be judged.
    :param conclusions: What the request filters concluded.
    :raises BadQuery: if Placement would call the query invalid.
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
        self._check(request, conclusions)

    @property
    def amounts(self) -> Iterator[Amount]:
        """The amounts that are asked for."""
        return (c for c in self.requirements if isinstance(c, Amount))

    @property
    def classes(self) -> Mapping[str, frozenset[str]]:
        """The resource classes of each group, by its suffix."""
        found: dict[str, frozenset[str]] = {}
        for amount in self.amounts:
            suffix = amount.suffix or ''
            held = found.get(suffix, frozenset())
            found[suffix] = held | {amount.resource_class}
        return found

    def without(
        self, dropped: Collection[Requirement] = ()
    ) -> ResourceRequest:
        """Return the request without some of its requirements.

        Where an amount is dropped, its resource class is replaced by one that
        stands for it, :attr:`Amount.waived`: as if so little was asked for
        that everybody has it. The traits and aggregates of its group are
        asked for all the same.

        :param dropped: The requirements to leave out; only these very objects,
            not their equals.
        :raises RequestRefused: if what is left is refused by a filter.
        """
        left_out = set(map(id, dropped))
        request = ResourceRequest(group_policy=self._policy)
        destination = Destination()
        for requirement in self.requirements:
            if id(requirement) in left_out:
                requirement.waive(request)
            elif isinstance(requirement, Concluded):
                conclusion = requirement.conclusion
                destination.add(conclusion.constraint, conclusion.filter_name)
            else:
                requirement.ask(request)
        destination.apply_to(request)
        return request

    @staticmethod
    def _check(
        request: ResourceRequest, conclusions: Collection[Conclusion]
    ) -> None:
        """Raise if the request is invalid."""
        destination = Destination()
        for conclusion in conclusions:
            conclusion.constraint.narrow(destination)
        # A refusal does not make it right.
        destination.refusals.clear()
        asked = copy.deepcopy(request)
        asked.limit = None
        destination.apply_to(asked)
        if '' in asked.groups and '' not in request.groups:
            raise refusal.Refused(
                'all resources are in groups with a suffix, so there is no '
                'group that required or forbidden aggregates could go with.'
            )
        query.candidates(asked.to_queryparams())


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
    """Yield what a group wants of those that give it something."""
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
