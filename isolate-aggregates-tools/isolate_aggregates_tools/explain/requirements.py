# SPDX-License-Identifier: Apache-2.0
"""The requirements that a request consists of, one class per kind.

A requirement can add itself to a request, and writes the message for a
provider or host that does not meet it. It does not decide whether a host is
excluded; the simulator does, by Placement's rules.
"""

import abc
from collections.abc import Hashable, Iterator
import dataclasses

from isolate_aggregates import text
from isolate_aggregates_tools import nova_candidates
from isolate_aggregates_tools.explain.host import HostProviders, provider_names
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Inventory, Provider


@dataclasses.dataclass(frozen=True)
class Requirement(abc.ABC):
    """A part of a request that can be dropped separately.

    :param suffix: The suffix of its request group; None if it applies to the
        whole request.
    """

    suffix: str | None

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """The kind of the requirement, for documents."""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """A description of the requirement, independent of hosts."""

    @property
    def where(self) -> str:
        """The request group, as a prefix of messages."""
        return f'group {self.suffix}: ' if self.suffix else ''

    def add_to(self, request: ResourceRequest) -> None:  # noqa: B027
        """Add the requirement to a request, if it is a part of the query."""

    def waive(self, request: ResourceRequest) -> None:  # noqa: B027
        """Add a placeholder to a request that is built without it.

        Most requirements need none.
        """

    def objection(self, provider: Provider, host: HostProviders) -> str:
        """Return why a provider does not meet it; empty if it does."""
        return ''

    def depends_on(self, root: Provider) -> Hashable:
        """Return a key; hosts with equal keys have the same reason.

        It is called for hosts with a single provider. None if the reason may
        differ between hosts, which is the default.
        """
        return None

    def reason(self, host: HostProviders) -> str:
        """Return why this requirement excludes a host."""
        providers = host.providers_for(self.suffix or '')
        own = {self.objection(p, host) for p in providers if host.owns(p)}
        if len(own) == 1 and '' not in own:
            # The same objection applies to the whole host.
            return f'{self.where}{own.pop()}'
        # Of the providers of a resource class, one that meets the requirement
        # is enough, so the others are not reported.
        unfit = {
            provider.uuid
            for alike in host.providers_by_class(self.suffix or '')
            if all(self.objection(provider, host) for provider in alike)
            for provider in alike
        }
        objections = host.in_words(
            (provider, self.objection(provider, host))
            for provider in providers
            if provider.uuid in unfit
        )
        return f'{self.where}{objections or self.label}'


@dataclasses.dataclass(frozen=True)
class RequiredTrait(Requirement):
    """A required trait, or a choice of several.

    :param choice: The traits, of which one is enough.
    :param is_choice: Whether the request has them as a choice (``in:``).
    """

    kind = 'required-trait'

    choice: frozenset[str]
    is_choice: bool = False

    @property
    def label(self) -> str:
        one_of = 'one of ' if self.is_choice else ''
        return f'{self.where}requires {one_of}{self._named}'

    @property
    def _named(self) -> str:
        return text.named('trait', self.choice, most=None)

    def add_to(self, request: ResourceRequest) -> None:
        group = request.group(self.suffix or '')
        if self.is_choice:
            group.any_traits.append(self.choice)
        else:
            group.required_traits |= self.choice

    def objection(self, provider: Provider, host: HostProviders) -> str:
        if self.choice & provider.traits:
            return ''
        none_of = 'has none of' if len(self.choice) > 1 else 'has no'
        return f'{none_of} {self._named}'

    def depends_on(self, root: Provider) -> Hashable:
        return ()

    def reason(self, host: HostProviders) -> str:
        holders = [p for p in host.around if self.choice & p.traits]
        if not holders:
            return f'{self.where}{self.objection(host.root, host)}'
        providers = {
            provider.uuid for provider in host.providers_for(self.suffix or '')
        }
        if providers.isdisjoint(holder.uuid for holder in holders):
            useless = 'where none of the requested resources are'
        else:
            useless = 'and the host itself would provide nothing'
        verb = text.plural(len(self.choice), 'is', 'are')
        return (
            f'{self.where}{self._named} {verb} only on '
            f'{provider_names(holders)}, {useless}'
        )


@dataclasses.dataclass(frozen=True)
class ForbiddenTrait(Requirement):
    """A forbidden trait."""

    kind = 'forbidden-trait'

    trait: str

    @property
    def label(self) -> str:
        return f'{self.where}forbids trait {self.trait}'

    def add_to(self, request: ResourceRequest) -> None:
        request.group(self.suffix or '').forbidden_traits.add(self.trait)

    def objection(self, provider: Provider, host: HostProviders) -> str:
        if self.trait not in provider.traits:
            return ''
        return f'has forbidden trait {self.trait}'


@dataclasses.dataclass(frozen=True)
class Amount(Requirement):
    """An amount of a resource class."""

    kind = 'resource-amount'

    resource_class: str
    amount: int

    @property
    def label(self) -> str:
        return f'{self.where}requests {self.resource_class} {self.amount}'

    @property
    def waived(self) -> str:
        """The placeholder resource class that replaces a dropped amount."""
        group = (self.suffix or '').encode().hex().upper()
        return f'CUSTOM_WAIVED_{self.resource_class}_{group}'

    def add_to(self, request: ResourceRequest) -> None:
        group = request.group(self.suffix or '')
        group.resources[self.resource_class] = self.amount

    def waive(self, request: ResourceRequest) -> None:
        request.group(self.suffix or '').resources[self.waived] = 1

    def objection(self, provider: Provider, host: HostProviders) -> str:
        shortage = self._shortage(provider)
        if not shortage or self.resource_class not in provider.inventories:
            return shortage
        return f'{self.resource_class}: {shortage}'

    def reason(self, host: HostProviders) -> str:
        name = f'{self.where}{self.resource_class}'
        providers = [
            p for p in host.around if self.resource_class in p.inventories
        ]
        if not providers:
            return f'{name}: has none'
        shortages = [(p, self._shortage(p)) for p in providers]
        if providers == [host.root]:
            return f'{name}: {shortages[0][1]}'
        enough = [p for p, shortage in shortages if not shortage]
        if enough:
            return (
                f'{name}: only {provider_names(enough)} has enough, and the '
                'host itself would provide nothing'
            )
        return f'{name}: {host.in_words(shortages)}'

    def _shortage(self, provider: Provider) -> str:
        """Return why a provider cannot provide the amount, or ''."""
        inventory = provider.inventories.get(self.resource_class)
        if inventory is None:
            return f'has no {self.resource_class}'
        problems = list(_unit_problems(inventory, self.amount))
        if provider.free(self.resource_class) < self.amount:
            problems.append(in_words(provider, self.resource_class))
        return (
            ', '.join([f'requested {self.amount}', *problems])
            if problems
            else ''
        )


def _unit_problems(inventory: Inventory, amount: int) -> Iterator[str]:
    if amount > inventory.max_unit:
        yield f'max_unit {inventory.max_unit}'
    if amount < inventory.min_unit:
        yield f'min_unit {inventory.min_unit}'
    if amount % inventory.step_size:
        yield f'step_size {inventory.step_size}'


def in_words(provider: Provider, resource_class: str) -> str:
    """Return a provider's free capacity as text, with its calculation."""
    inventory = provider.inventories[resource_class]
    total = f'{inventory.total} total'
    if inventory.reserved:
        total = f'({total} - {inventory.reserved} reserved)'
    # Without rounding errors: 1.0, 1.5, 16.0.
    ratio = round(float(inventory.allocation_ratio), 6)
    formula = f'{total} x {ratio}'
    exact = round((inventory.total - inventory.reserved) * ratio, 6)
    if exact != inventory.capacity:
        formula += ' rounded down'
    free = max(provider.free(resource_class), 0)
    usage = provider.usages.get(resource_class, 0)
    return f'free {free} ({formula} - {usage} used)'


@dataclasses.dataclass(frozen=True)
class InAggregates(Requirement):
    """Membership of at least one aggregate, given by uuid."""

    kind = 'required-aggregates'

    aggregates: frozenset[str]

    @property
    def label(self) -> str:
        return f'{self.where}in one of {", ".join(sorted(self.aggregates))}'

    def add_to(self, request: ResourceRequest) -> None:
        request.group(self.suffix or '').aggregates.append(self.aggregates)

    def objection(self, provider: Provider, host: HostProviders) -> str:
        if self.aggregates & _held(provider, self.suffix, host):
            return ''
        return f'not in {host.context.aggregates(self.aggregates)}'


@dataclasses.dataclass(frozen=True)
class OutsideAggregates(Requirement):
    """Membership of none of the aggregates, given by uuid."""

    kind = 'forbidden-aggregates'

    aggregates: frozenset[str]

    @property
    def label(self) -> str:
        return f'{self.where}not in {", ".join(sorted(self.aggregates))}'

    def add_to(self, request: ResourceRequest) -> None:
        group = request.group(self.suffix or '')
        group.forbidden_aggregates |= self.aggregates

    def objection(self, provider: Provider, host: HostProviders) -> str:
        wrong = self.aggregates & _held(provider, self.suffix, host)
        return f'in {host.context.aggregates(wrong)}' if wrong else ''


def _held(
    provider: Provider, suffix: str | None, host: HostProviders
) -> frozenset[str]:
    """Return the aggregates that apply to a provider.

    In the unsuffixed group, the aggregates of the root apply to its tree.
    """
    if not suffix and host.owns(provider):
        return provider.aggregates | host.root.aggregates
    return provider.aggregates


@dataclasses.dataclass(frozen=True)
class WithinTree(Requirement):
    """Membership of a provider's tree, given by the uuid of the provider."""

    kind = 'provider-tree'

    provider: str

    @property
    def label(self) -> str:
        return f'{self.where}in the tree of provider {self.provider}'

    def add_to(self, request: ResourceRequest) -> None:
        request.group(self.suffix or '').in_tree = self.provider

    def objection(self, provider: Provider, host: HostProviders) -> str:
        index = host.context.index
        number = index.numbers.get(self.provider)
        root = index.root_of[index.numbers[provider.uuid]]
        if number is not None and index.root_of[number] == root:
            return ''
        return "not in the requested host's tree"


@dataclasses.dataclass(frozen=True)
class RootTrait(Requirement):
    """A trait that the root provider must have or must not have."""

    kind = 'root-trait'

    trait: str
    required: bool

    @property
    def label(self) -> str:
        verb = 'requires' if self.required else 'forbids'
        return f'root provider: {verb} trait {self.trait}'

    def add_to(self, request: ResourceRequest) -> None:
        traits = (
            request.root_required if self.required else request.root_forbidden
        )
        traits.add(self.trait)

    def reason(self, host: HostProviders) -> str:
        has = 'has no' if self.required else 'has forbidden'
        return f'root provider {has} trait {self.trait}'


@dataclasses.dataclass(frozen=True)
class Isolate(Requirement):
    """``group_policy=isolate``."""

    kind = 'group-policy'

    suffixes: frozenset[str]

    @property
    def label(self) -> str:
        return 'group_policy isolate'

    def add_to(self, request: ResourceRequest) -> None:
        request.group_policy = 'isolate'

    def waive(self, request: ResourceRequest) -> None:
        request.group_policy = 'none'

    def reason(self, host: HostProviders) -> str:
        groups = ', '.join(sorted(self.suffixes))
        return f'{self.label}: groups {groups} find no separate providers'


@dataclasses.dataclass(frozen=True)
class SameSubtree(Requirement):
    """``same_subtree`` for some request groups."""

    kind = 'same-subtree'

    suffixes: frozenset[str]

    @property
    def label(self) -> str:
        return f'same_subtree of groups {", ".join(sorted(self.suffixes))}'

    def add_to(self, request: ResourceRequest) -> None:
        request.same_subtree.append(self.suffixes)

    def reason(self, host: HostProviders) -> str:
        groups = ', '.join(sorted(self.suffixes))
        return f'groups {groups} find no providers in a single subtree'


@dataclasses.dataclass(frozen=True)
class FromNode(Requirement):
    """An allocation from the compute node itself, which Nova relies on.

    Nova looks up allocation candidates by compute node. It skips a host if all
    resources come from child providers or sharing providers.
    """

    kind = 'compute-node'

    @property
    def label(self) -> str:
        return 'Nova: takes something from the compute node itself'

    def reason(self, host: HostProviders) -> str:
        return nova_candidates.SKIPPED


@dataclasses.dataclass(frozen=True)
class AtRoot(Requirement):
    """A compute node that is the root of its provider tree.

    Nova creates no other ones, but clients can move one below another
    provider. Then Placement offers it as a part of the other tree.
    """

    kind = 'root-node'

    @property
    def label(self) -> str:
        return 'Nova: the compute node is the root of its provider tree'

    def reason(self, host: HostProviders) -> str:
        parent = host.name_of(host.root.parent)
        return (
            f'its compute node is below resource provider {parent}, but Nova '
            'expects it to be the root of its tree'
        )


@dataclasses.dataclass(frozen=True)
class Accepted(Requirement):
    """A query that Placement does not reject as invalid."""

    kind = 'accepted-query'

    @property
    def label(self) -> str:
        return 'Placement accepts the query'

    def reason(self, host: HostProviders) -> str:
        return 'Placement rejects the query'
