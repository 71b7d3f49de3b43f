# SPDX-License-Identifier: Apache-2.0
"""The constraints a request consists of, one class for each kind.

A constraint puts itself onto a request, and says in words what there is
against a provider or a host. Whether a host is excluded is not decided here:
that is left to the rules of Placement.
"""

import abc
from collections.abc import Iterator
import dataclasses
import functools

import os_traits

from isolate_aggregates.cloud.snapshot import Inventory, Provider
from isolate_aggregates.destination import Conclusion, Destination
from isolate_aggregates.explain.site import Site, named
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.simulator.index import capacity, free

_DISABLED = os_traits.COMPUTE_STATUS_DISABLED


@dataclasses.dataclass(frozen=True)
class Constraint(abc.ABC):
    """One part of a request that can be dropped by itself.

    :param suffix: The suffix of the request group it belongs to; None if it
        is about the request as a whole.
    """

    suffix: str | None

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """What it asks for, the same for every host."""

    @property
    def where(self) -> str:
        """The request group, for the start of a sentence."""
        return f'group {self.suffix}: ' if self.suffix else ''

    @abc.abstractmethod
    def ask(self, request: ResourceRequest) -> None:
        """Put it onto a request.

        :param request: The request.
        """

    def waive(self, request: ResourceRequest) -> None:  # noqa: B027
        """Leave something in its place on a request that does without it.

        Most leave nothing.

        :param request: The request.
        """

    def objection(self, provider: Provider, site: Site) -> str:
        """Say what keeps a provider from meeting it; nothing if it does.

        :param provider: A provider around the host.
        :param site: The host.
        """
        return ''

    def reason(self, site: Site) -> str:
        """Say why a host is excluded by this constraint alone.

        :param site: The host.
        """
        givers = site.givers(self.suffix or '')
        own = {self.objection(p, site) for p in givers if site.owns(p)}
        if len(own) == 1 and '' not in own:
            # It is true of the host as a whole.
            return f'{self.where}{own.pop()}'
        # Where one meets it who has the same to give, nobody is to blame.
        blamed = {
            provider.uuid
            for alike in site.givers_by_class(self.suffix or '')
            if all(self.objection(provider, site) for provider in alike)
            for provider in alike
        }
        told = site.told(
            (provider, self.objection(provider, site))
            for provider in givers
            if provider.uuid in blamed
        )
        return f'{self.where}{told or self.label}'


@dataclasses.dataclass(frozen=True)
class InAggregates(Constraint):
    """Membership of one of some aggregates.

    :param aggregates: Their uuids.
    """

    aggregates: frozenset[str]

    @property
    def label(self) -> str:
        """The aggregates."""
        return f'{self.where}in one of {", ".join(sorted(self.aggregates))}'

    def ask(self, request: ResourceRequest) -> None:
        """Require it."""
        request.group(self.suffix or '').aggregates.append(self.aggregates)

    def objection(self, provider: Provider, site: Site) -> str:
        """Say that the provider is in none of them."""
        if self.aggregates & _held(provider, self.suffix, site):
            return ''
        return f'not in {site.cloud.aggregates(self.aggregates)}'


@dataclasses.dataclass(frozen=True)
class OutsideAggregates(Constraint):
    """Membership of none of some aggregates.

    :param aggregates: Their uuids.
    """

    aggregates: frozenset[str]

    @property
    def label(self) -> str:
        """The aggregates."""
        return f'{self.where}not in {", ".join(sorted(self.aggregates))}'

    def ask(self, request: ResourceRequest) -> None:
        """Forbid membership."""
        group = request.group(self.suffix or '')
        group.forbidden_aggregates |= self.aggregates

    def objection(self, provider: Provider, site: Site) -> str:
        """Say which of them the provider is in."""
        wrong = self.aggregates & _held(provider, self.suffix, site)
        return f'in {site.cloud.aggregates(wrong)}' if wrong else ''


def _held(
    provider: Provider, suffix: str | None, site: Site
) -> frozenset[str]:
    """Return the aggregates that count as a provider's own.

    In the group without a suffix those of the root count for its tree.
    """
    if not suffix and site.owns(provider):
        return provider.aggregates | site.root.aggregates
    return provider.aggregates


@dataclasses.dataclass(frozen=True)
class InTree(Constraint):
    """The tree of one provider.

    :param provider: Its uuid.
    """

    provider: str

    @property
    def label(self) -> str:
        """The provider."""
        return f'{self.where}in the tree of provider {self.provider}'

    def ask(self, request: ResourceRequest) -> None:
        """Require it."""
        request.group(self.suffix or '').in_tree = self.provider

    def objection(self, provider: Provider, site: Site) -> str:
        """Say that the provider is not in that tree."""
        index = site.cloud.index
        wanted = index.numbers.get(self.provider)
        found = index.root_of[index.numbers[provider.uuid]]
        if wanted is not None and index.root_of[wanted] == found:
            return ''
        return "not in the requested host's tree"


@dataclasses.dataclass(frozen=True)
class RootTrait(Constraint):
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

    def ask(self, request: ResourceRequest) -> None:
        """Require or forbid it."""
        traits = (
            request.root_required if self.required else request.root_forbidden
        )
        traits.add(self.trait)

    def reason(self, site: Site) -> str:
        """Say what the root has or lacks."""
        has = 'has no' if self.required else 'has forbidden'
        return f'root provider {has} trait {self.trait}'


@dataclasses.dataclass(frozen=True)
class Concluded(Constraint):
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
    def _alone(self) -> Destination:
        """The destination if there were no other conclusion."""
        destination = Destination()
        self.conclusion.constraint.narrow(destination)
        return destination

    @functools.cached_property
    def _parts(self) -> list[tuple[Constraint, str]]:
        """What it comes to, and how the cause is joined to a text on it."""
        alone = self._alone
        parts: list[tuple[Constraint, str]] = []
        if alone.forbidden_aggregates:
            forbidden = frozenset(alone.forbidden_aggregates)
            parts.append((OutsideAggregates('', forbidden), ', '))
        for choice in alone.required_aggregates:
            parts.append((InAggregates('', choice), ': '))
        if alone.in_tree:
            parts.append((InTree('', alone.in_tree), ': '))
        return parts

    @functools.cached_property
    def _cause(self) -> str:
        constraint = self.conclusion.constraint
        return str(getattr(constraint, 'cause', None) or constraint.reason)

    def ask(self, request: ResourceRequest) -> None:
        """Do nothing: conclusions are folded into one destination."""

    def objection(self, provider: Provider, site: Site) -> str:
        """Say in which aggregate or tree the provider is, or is not."""
        for part, comma in self._parts:
            text = part.objection(provider, site)
            if text:
                return f'{text}{comma}{self._cause}'
        return ''

    def reason(self, site: Site) -> str:
        """Say what is refused, or which aggregate, tree or trait it is."""
        alone = self._alone
        constraint = self.conclusion.constraint
        if alone.refusals:
            return '; '.join(alone.refusals)
        traits = alone.root_forbidden & site.root.traits
        if _DISABLED in traits:
            return 'compute service disabled'
        if traits:
            return (
                f'has trait {", ".join(sorted(traits))}: {constraint.reason}'
            )
        if site.root.aggregates & alone.forbidden_aggregates:
            # Then nothing of the tree may be used.
            return self.objection(site.root, site)
        return super().reason(site)


@dataclasses.dataclass(frozen=True)
class RequiredTrait(Constraint):
    """A trait that is required, or one of several.

    :param choice: The traits; one is enough.
    :param is_choice: Whether it was asked for as a choice.
    """

    choice: frozenset[str]
    is_choice: bool = False

    @property
    def label(self) -> str:
        """The trait."""
        one_of = 'one of ' if self.is_choice else ''
        return f'{self.where}requires {one_of}{self._named}'

    @property
    def _named(self) -> str:
        noun = 'trait' if len(self.choice) == 1 else 'traits'
        return f'{noun} {", ".join(sorted(self.choice))}'

    def ask(self, request: ResourceRequest) -> None:
        """Require it."""
        group = request.group(self.suffix or '')
        if self.is_choice:
            group.any_traits.append(self.choice)
        else:
            group.required_traits |= self.choice

    def objection(self, provider: Provider, site: Site) -> str:
        """Say that the provider does not have it."""
        if self.choice & provider.traits:
            return ''
        none_of = 'has none of' if len(self.choice) > 1 else 'has no'
        return f'{none_of} {self._named}'

    def reason(self, site: Site) -> str:
        """Say that nobody has it, or only somebody of no use."""
        holders = [p for p in site.around if self.choice & p.traits]
        if not holders:
            return f'{self.where}{self.objection(site.root, site)}'
        givers = {giver.uuid for giver in site.givers(self.suffix or '')}
        if givers.isdisjoint(holder.uuid for holder in holders):
            useless = 'where there is nothing of what is asked'
        else:
            useless = 'and nothing would come from the host itself'
        verb = 'is' if len(self.choice) == 1 else 'are'
        return (
            f'{self.where}{self._named} {verb} only on {named(holders)}, '
            f'{useless}'
        )


@dataclasses.dataclass(frozen=True)
class ForbiddenTrait(Constraint):
    """A trait that is forbidden.

    :param trait: The trait.
    """

    trait: str

    @property
    def label(self) -> str:
        """The trait."""
        return f'{self.where}forbids trait {self.trait}'

    def ask(self, request: ResourceRequest) -> None:
        """Forbid it."""
        request.group(self.suffix or '').forbidden_traits.add(self.trait)

    def objection(self, provider: Provider, site: Site) -> str:
        """Say that it is there."""
        if self.trait not in provider.traits:
            return ''
        return f'has forbidden trait {self.trait}'


@dataclasses.dataclass(frozen=True)
class Amount(Constraint):
    """An amount of a resource class.

    :param resource_class: The resource class.
    :param amount: The amount.
    """

    resource_class: str
    amount: int

    @property
    def label(self) -> str:
        """The amount."""
        return f'{self.where}asks {self.resource_class} {self.amount}'

    @property
    def waived(self) -> str:
        """The resource class that stands for no amount worth mentioning."""
        group = (self.suffix or '').encode().hex().upper()
        return f'CUSTOM_WAIVED_{self.resource_class}_{group}'

    def ask(self, request: ResourceRequest) -> None:
        """Ask for it."""
        group = request.group(self.suffix or '')
        group.resources[self.resource_class] = self.amount

    def waive(self, request: ResourceRequest) -> None:
        """Ask for so little that it does not count."""
        request.group(self.suffix or '').resources[self.waived] = 1

    def objection(self, provider: Provider, site: Site) -> str:
        """Say how little the provider has left."""
        shortage = self._shortage(provider)
        if not shortage or self.resource_class not in provider.inventories:
            return shortage
        return f'{self.resource_class}: {shortage}'

    def reason(self, site: Site) -> str:
        """Say who has how little left, or gives out other amounts."""
        name = f'{self.where}{self.resource_class}'
        givers = [
            p for p in site.around if self.resource_class in p.inventories
        ]
        if not givers:
            return f'{name}: has none'
        shortages = [(p, self._shortage(p)) for p in givers]
        if givers == [site.root]:
            return f'{name}: {shortages[0][1]}'
        enough = [p for p, shortage in shortages if not shortage]
        if enough:
            return (
                f'{name}: only {named(enough)} has enough, and nothing would '
                'come from the host itself'
            )
        return f'{name}: {site.told(shortages)}'

    def _shortage(self, provider: Provider) -> str:
        """Say why a provider does not give the amount, if it does not."""
        inventory = provider.inventories.get(self.resource_class)
        if inventory is None:
            return f'has no {self.resource_class}'
        problems = list(_unit_problems(inventory, self.amount))
        if free(provider, self.resource_class) < self.amount:
            problems.append(in_words(provider, self.resource_class))
        return (
            ', '.join([f'asks {self.amount}', *problems]) if problems else ''
        )


def _unit_problems(inventory: Inventory, amount: int) -> Iterator[str]:
    if amount > inventory.max_unit:
        yield f'max_unit {inventory.max_unit}'
    if amount < inventory.min_unit:
        yield f'min_unit {inventory.min_unit}'
    if amount % inventory.step_size:
        yield f'step_size {inventory.step_size}'


def in_words(provider: Provider, resource_class: str) -> str:
    """Say how much a provider has left, and how that comes about.

    :param provider: A provider that has an inventory of the class.
    :param resource_class: The resource class.
    """
    inventory = provider.inventories[resource_class]
    total = f'{inventory.total} total'
    if inventory.reserved:
        total = f'({total} - {inventory.reserved} reserved)'
    # As it is written: 1.0, 1.5, 16.0.
    ratio = round(float(inventory.allocation_ratio), 6)
    formula = f'{total} x {ratio}'
    exact = round((inventory.total - inventory.reserved) * ratio, 6)
    if exact != capacity(inventory):
        formula += ' rounded down'
    left = max(free(provider, resource_class), 0)
    used = provider.usages.get(resource_class, 0)
    return f'free {left} ({formula} - {used} used)'


@dataclasses.dataclass(frozen=True)
class Isolate(Constraint):
    """``group_policy=isolate``.

    :param suffixes: The suffixes of the groups it keeps apart.
    """

    suffixes: frozenset[str]

    @property
    def label(self) -> str:
        """The policy."""
        return 'group_policy isolate'

    def ask(self, request: ResourceRequest) -> None:
        """Keep groups apart."""
        request.group_policy = 'isolate'

    def waive(self, request: ResourceRequest) -> None:
        """Let groups share a provider."""
        request.group_policy = 'none'

    def reason(self, site: Site) -> str:
        """Say which groups it is about."""
        groups = ', '.join(sorted(self.suffixes))
        return f'{self.label}: groups {groups} find no provider each'


@dataclasses.dataclass(frozen=True)
class SameSubtree(Constraint):
    """``same_subtree`` of some groups.

    :param suffixes: Their suffixes.
    """

    suffixes: frozenset[str]

    @property
    def label(self) -> str:
        """The groups."""
        return f'same_subtree of groups {", ".join(sorted(self.suffixes))}'

    def ask(self, request: ResourceRequest) -> None:
        """Keep the groups together."""
        request.same_subtree.append(self.suffixes)

    def reason(self, site: Site) -> str:
        """Say which groups it is about."""
        groups = ', '.join(sorted(self.suffixes))
        return f'groups {groups} find no providers in one subtree'
