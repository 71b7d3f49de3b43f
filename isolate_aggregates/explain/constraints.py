# SPDX-License-Identifier: Apache-2.0
"""The constraints a request consists of, one class for each kind.

A constraint can tell which hosts meet it *by itself*, as if it were the only
one, and say in words why a host does not. A host that does not meet one by
itself can not be offered while that one stands.
"""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import functools
from typing import Protocol

import os_traits

from isolate_aggregates.cloud.snapshot import Inventory, Provider
from isolate_aggregates.destination import Conclusion, Destination
from isolate_aggregates.placement.group import RequestGroup, ResourceRequest
from isolate_aggregates.simulator import conditions
from isolate_aggregates.simulator.index import (
    ProviderIndex,
    ProviderSet,
    capacity,
    free,
)

_DISABLED = os_traits.COMPUTE_STATUS_DISABLED


@dataclasses.dataclass(frozen=True)
class Cloud:
    """What a constraint looks at to tell and to say something.

    :param index: The resource providers.
    :param names: Names of aggregates by uuid.
    """

    index: ProviderIndex
    names: Mapping[str, str]

    def aggregates(self, uuids: frozenset[str]) -> str:
        """Name some aggregates in a sentence.

        :param uuids: Their uuids.
        """
        names = sorted(self.names.get(uuid, uuid) for uuid in uuids)
        noun = 'aggregate' if len(names) == 1 else 'aggregates'
        return f'{noun} {", ".join(names)}'

    def tree(self, root: int) -> list[Provider]:
        """Return the providers of a tree, the root first.

        :param root: The number of the root.
        """
        return [self.index.providers[n] for n in self.index.trees[root]]

    def givers(self, root: int, resource_class: str) -> list[Provider]:
        """Return who could give a host something of a resource class.

        :param root: The number of the host's root provider.
        :param resource_class: The resource class.
        """
        lenders = [
            self.index.providers[number]
            for number, borrowers in self.index.borrowers.items()
            if borrowers >> root & 1
        ]
        return [
            provider
            for provider in [*self.tree(root), *lenders]
            if resource_class in provider.inventories
        ]


class Constraint(Protocol):
    """One part of a request that can be dropped by itself."""

    @property
    def label(self) -> str:
        """What it asks for, the same for every host."""

    def met_by(self, cloud: Cloud, request: ResourceRequest) -> ProviderSet:
        """Return the root providers that meet it by itself."""

    def reason(self, cloud: Cloud, root: int) -> str:
        """Say why the tree of a root provider does not meet it."""

    def drop(self, request: ResourceRequest) -> None:
        """Take it off a request."""


def met_around(
    cloud: Cloud,
    group: RequestGroup,
    allows: Callable[[ProviderSet], ProviderSet],
    lends: Callable[[ProviderSet], ProviderSet] | None = None,
) -> ProviderSet:
    """Return the roots around which a condition leaves somebody to give.

    For each resource class of a group there has to be somebody who has any of
    it and meets the condition. Where nobody has any, the condition is not to
    blame.

    :param cloud: The cloud.
    :param group: The request group.
    :param allows: Narrows a set of providers to those the condition allows.
    :param lends: The same for providers that share; ``allows`` if None.
    """
    index = cloud.index
    met = index.roots
    for resource_class in group.resources:
        stock = index.stocks.get(resource_class)
        if stock is None:
            continue
        sharing = stock.providers & index.sharing
        around = _around(
            index,
            allows(stock.providers),
            (lends or allows)(sharing),
        )
        met &= around | ~_around(index, stock.providers, sharing)
    return met


def _around(
    index: ProviderIndex, local: ProviderSet, sharing: ProviderSet
) -> ProviderSet:
    roots = index.roots_of(local)
    for number in index.members(sharing):
        roots |= index.borrowers[number]
    return roots


@dataclasses.dataclass(frozen=True)
class Concluded:
    """What a request filter concluded.

    :param conclusion: The constraint and its filter.
    """

    conclusion: Conclusion

    @property
    def label(self) -> str:
        """The filter and its reason."""
        constraint = self.conclusion.constraint
        return f'{self.conclusion.filter_name}: {constraint.reason}'

    @functools.cached_property
    def alone(self) -> Destination:
        """The destination if there were no other conclusion."""
        destination = Destination()
        self.conclusion.constraint.narrow(destination)
        return destination

    def met_by(self, cloud: Cloud, request: ResourceRequest) -> ProviderSet:
        """Return the roots where aggregates, tree and root trait are right."""
        index, alone = cloud.index, self.alone
        if alone.refusals:
            return 0
        met = conditions.roots_with(index, (), alone.root_forbidden)
        if alone.in_tree:
            met &= index.tree_with(alone.in_tree)
        group = request.groups.get('')
        if group is None:
            return met
        forbidden = conditions.in_any_aggregate(
            index, alone.forbidden_aggregates
        )
        met &= ~forbidden
        spanned = conditions.spanning(index, forbidden)
        met &= met_around(
            cloud, group, lambda p: p & ~spanned, lambda p: p & ~forbidden
        )
        for choice in alone.required_aggregates:
            inside = conditions.in_any_aggregate(index, choice)
            spanning = conditions.spanning(index, inside)
            met &= met_around(
                cloud,
                group,
                lambda p, spanning=spanning: p & spanning,  # type: ignore[misc]
                lambda p, inside=inside: p & inside,  # type: ignore[misc]
            )
        return met

    def reason(self, cloud: Cloud, root: int) -> str:
        """Say which aggregate, tree or trait it is."""
        alone = self.alone
        constraint = self.conclusion.constraint
        cause = getattr(constraint, 'cause', constraint.reason)
        held = frozenset().union(*(p.aggregates for p in cloud.tree(root)))
        wrong = held & alone.forbidden_aggregates
        if alone.refusals:
            return '; '.join(alone.refusals)
        if wrong:
            return f'in {cloud.aggregates(wrong)}, {cause}'
        for choice in alone.required_aggregates:
            if not held & choice:
                return f'not in {cloud.aggregates(choice)}: {cause}'
        traits = alone.root_forbidden & cloud.index.providers[root].traits
        if _DISABLED in traits:
            return 'compute service disabled'
        if traits:
            return f'has trait {", ".join(sorted(traits))}: {cause}'
        if alone.in_tree:
            return f"not in the requested host's tree: {cause}"
        return str(constraint.reason)

    def drop(self, request: ResourceRequest) -> None:
        """Do nothing: the question leaves the conclusion out."""


@dataclasses.dataclass(frozen=True)
class _OfGroup:
    """Part of one request group.

    :param suffix: The suffix of the group.
    """

    suffix: str

    @property
    def _where(self) -> str:
        return f'group {self.suffix}: ' if self.suffix else ''


@dataclasses.dataclass(frozen=True)
class RequiredTrait(_OfGroup):
    """A trait that is required, or one of several.

    :param choice: The traits; one is enough.
    :param is_choice: Whether it was asked for as a choice.
    """

    choice: frozenset[str]
    is_choice: bool = False

    @property
    def label(self) -> str:
        """The trait."""
        return f'{self._where}requires {self._named}'

    @property
    def _named(self) -> str:
        traits = sorted(self.choice)
        one_of = 'one of traits' if self.is_choice else 'trait'
        return f'{one_of} {", ".join(traits)}'

    def met_by(self, cloud: Cloud, request: ResourceRequest) -> ProviderSet:
        """Return the roots with a provider that has the trait."""
        holders = conditions.with_any_trait(cloud.index, self.choice)
        sharing = holders & cloud.index.sharing
        return _around(cloud.index, holders, sharing)

    def reason(self, cloud: Cloud, root: int) -> str:
        """Say that the trait is missing."""
        return f'{self._where}has no {self._named.removeprefix("one of ")}'

    def drop(self, request: ResourceRequest) -> None:
        """Require it no longer."""
        group = request.groups.get(self.suffix)
        if group is None:
            return
        if self.is_choice:
            group.any_traits.remove(self.choice)
        else:
            group.required_traits -= self.choice


@dataclasses.dataclass(frozen=True)
class ForbiddenTrait(_OfGroup):
    """A trait that is forbidden.

    :param trait: The trait.
    """

    trait: str

    @property
    def label(self) -> str:
        """The trait."""
        return f'{self._where}forbids trait {self.trait}'

    def met_by(self, cloud: Cloud, request: ResourceRequest) -> ProviderSet:
        """Return the roots around which somebody without it can give."""
        group = request.groups.get(self.suffix)
        if group is None:
            return cloud.index.roots
        holders = cloud.index.with_trait(self.trait)
        return met_around(cloud, group, lambda p: p & ~holders)

    def reason(self, cloud: Cloud, root: int) -> str:
        """Say that it is there."""
        return f'{self._where}has forbidden trait {self.trait}'

    def drop(self, request: ResourceRequest) -> None:
        """Forbid it no longer."""
        if self.suffix in request.groups:
            request.groups[self.suffix].forbidden_traits.discard(self.trait)


@dataclasses.dataclass(frozen=True)
class RootTrait:
    """A trait that the root provider must have, or must not.

    :param trait: The trait.
    :param required: Whether it must be there.
    """

    trait: str
    required: bool

    @property
    def label(self) -> str:
        """The trait."""
        verb = 'requires' if self.required else 'forbids'
        return f'root provider: {verb} trait {self.trait}'

    def met_by(self, cloud: Cloud, request: ResourceRequest) -> ProviderSet:
        """Return the roots that are right."""
        if self.required:
            return conditions.roots_with(cloud.index, [self.trait], ())
        return conditions.roots_with(cloud.index, (), [self.trait])

    def reason(self, cloud: Cloud, root: int) -> str:
        """Say what the root has or lacks."""
        has = 'has no' if self.required else 'has forbidden'
        return f'root provider {has} trait {self.trait}'

    def drop(self, request: ResourceRequest) -> None:
        """Ask for it no longer."""
        traits = (
            request.root_required if self.required else request.root_forbidden
        )
        traits.discard(self.trait)


@dataclasses.dataclass(frozen=True)
class Amount(_OfGroup):
    """An amount of a resource class.

    :param resource_class: The resource class.
    :param amount: The amount.
    """

    resource_class: str
    amount: int

    @property
    def label(self) -> str:
        """The amount."""
        return f'{self._where}asks {self.resource_class} {self.amount}'

    def met_by(self, cloud: Cloud, request: ResourceRequest) -> ProviderSet:
        """Return the roots around which somebody can give the amount."""
        fit = conditions.fitting(cloud.index, self.resource_class, self.amount)
        return _around(cloud.index, fit, fit & cloud.index.sharing)

    def reason(self, cloud: Cloud, root: int) -> str:
        """Say who has how little left, or gives out other amounts."""
        givers = cloud.givers(root, self.resource_class)
        name = f'{self._where}{self.resource_class}'
        if not givers:
            return f'{name}: has none'
        if [provider.parent for provider in givers] == [None]:
            return f'{name}: {self.shortage(givers[0])}'
        each = '; '.join(f'{p.name}: {self.shortage(p)}' for p in givers)
        return f'{name}: {each}'

    def shortage(self, provider: Provider) -> str:
        """Say why a provider does not give the amount.

        :param provider: A provider that has an inventory of the class.
        """
        inventory = provider.inventories[self.resource_class]
        left = free(provider, self.resource_class)
        used = provider.usages.get(self.resource_class, 0)
        problems = list(_unit_problems(inventory, self.amount))
        if left < self.amount:
            problems.append(
                f'asks {self.amount}, free {max(left, 0)} '
                f'({_formula(inventory)} - {used} used)'
            )
        return ', '.join(problems) or f'asks {self.amount}, free {left}'

    def drop(self, request: ResourceRequest) -> None:
        """Ask for nothing of the class; a group for nothing is no group."""
        group = request.groups.get(self.suffix)
        if group is None:
            return
        group.resources.pop(self.resource_class, None)
        if not group.resources:
            del request.groups[self.suffix]
            request.same_subtree = [
                suffixes
                for suffixes in request.same_subtree
                if self.suffix not in suffixes
            ]


def _unit_problems(inventory: Inventory, amount: int) -> Iterator[str]:
    if amount > inventory.max_unit:
        yield f'asks {amount}, max_unit {inventory.max_unit}'
    if amount < inventory.min_unit:
        yield f'asks {amount}, min_unit {inventory.min_unit}'
    if amount % inventory.step_size:
        yield f'asks {amount}, step_size {inventory.step_size}'


def _formula(inventory: Inventory) -> str:
    total = f'{inventory.total} total'
    if inventory.reserved:
        total = f'({total} - {inventory.reserved} reserved)'
    formula = f'{total} x {inventory.allocation_ratio}'
    exact = (inventory.total - inventory.reserved) * inventory.allocation_ratio
    if exact != capacity(inventory):
        formula += ' rounded down'
    return formula


@dataclasses.dataclass(frozen=True)
class Isolate:
    """``group_policy=isolate``."""

    label = 'group_policy isolate'

    def met_by(self, cloud: Cloud, request: ResourceRequest) -> ProviderSet:
        """Return all roots: it takes groups to break the policy."""
        return cloud.index.roots

    def reason(self, cloud: Cloud, root: int) -> str:
        """Say what the policy wants."""
        return 'group_policy isolate: the groups find no provider each'

    def drop(self, request: ResourceRequest) -> None:
        """Let groups share a provider."""
        request.group_policy = 'none'


@dataclasses.dataclass(frozen=True)
class SameSubtree:
    """``same_subtree`` of some groups.

    :param suffixes: Their suffixes.
    """

    suffixes: frozenset[str]

    @property
    def label(self) -> str:
        """The groups."""
        return f'same_subtree of groups {", ".join(sorted(self.suffixes))}'

    def met_by(self, cloud: Cloud, request: ResourceRequest) -> ProviderSet:
        """Return all roots: it takes the groups to be apart."""
        return cloud.index.roots

    def reason(self, cloud: Cloud, root: int) -> str:
        """Say which groups it is about."""
        return (
            f'groups {", ".join(sorted(self.suffixes))} find no providers in '
            'one subtree'
        )

    def drop(self, request: ResourceRequest) -> None:
        """Let the groups be apart."""
        if self.suffixes in request.same_subtree:
            request.same_subtree.remove(self.suffixes)
