# SPDX-License-Identifier: Apache-2.0
"""Numbers the providers of a snapshot, and keeps sets of them as bitmasks.

Bit ``n`` of a :data:`ProviderSet` is set if the provider with number ``n`` is
a member, so that intersecting "has this trait" with "is in that aggregate" is
a single ``&`` for the whole cloud. All that does not depend on a query is
computed once, when the index is built.
"""

import bisect
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, KeysView, Mapping
import copy
import functools
import itertools
import operator
from typing import NamedTuple

import os_traits

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools.placement.client import ProviderSummary
from isolate_aggregates_tools.placement.provider import Inventory, Provider

ProviderSet = int

_IN, _OUT = b'1'[0], b'0'
# Translates binary digits to one byte per bit, 0 or 1.
_TRUTH = bytes.maketrans(b'01', b'\x00\x01')


# What a change of its traits and aggregates leaves of a provider.
_unmoved = operator.attrgetter(
    'uuid', 'name', 'parent', 'host', 'inventories', 'usages'
)


class Moved(NamedTuple):
    """The traits and aggregates of which providers have changed."""

    traits: frozenset[str]
    aggregates: frozenset[str]


class ProviderIndex:
    """The resource providers of a snapshot, indexed for queries.

    :param providers: The providers; parents before children.
    :param in_use: Whether what is in use counts, or nothing is in use.
    """

    def __init__(
        self, providers: Iterable[Provider], in_use: bool = True
    ) -> None:
        self.providers = tuple(providers)
        self.in_use = in_use
        self.size = len(self.providers)
        self.uuids = [provider.uuid for provider in self.providers]
        # Shared by all candidates, to create fewer objects per response.
        self.single_picks = [((number,),) for number in range(self.size)]
        self.mapping = [(uuid,) for uuid in self.uuids]
        self.numbers = {uuid: number for number, uuid in enumerate(self.uuids)}
        self.parent_of: list[int | None] = [
            None if provider.parent is None else self.numbers[provider.parent]
            for provider in self.providers
        ]
        self.root_of: list[int] = []
        self.trees: dict[int, list[int]] = defaultdict(list)
        for number, parent in enumerate(self.parent_of):
            root = number if parent is None else self.root_of[parent]
            self.root_of.append(root)
            self.trees[root].append(number)
        self.everyone: ProviderSet = (1 << self.size) - 1
        self.roots = self.set_of(self.trees)
        self._with_trait = self._grouped(
            (trait, number)
            for number, provider in enumerate(self.providers)
            for trait in provider.traits
        )
        self._in_aggregate = Groups(
            self,
            (
                (aggregate, number)
                for number, provider in enumerate(self.providers)
                for aggregate in provider.aggregates
            ),
        )
        self.stocks = self._stocks()
        self._share()

    def _share(self) -> None:
        self.sharing = self.with_trait(os_traits.MISC_SHARES_VIA_AGGREGATE)
        self.anchors_of = {
            number: self._anchors_of(number)
            for number in self.members(self.sharing)
        }

    def after(
        self, providers: Iterable[Provider]
    ) -> tuple['ProviderIndex', 'Moved | None']:
        """Return the index of the providers after a change, and what moved.

        If only traits and aggregates have changed, the rest is taken over;
        otherwise, it is not known what moved.
        """
        index = copy.copy(self)
        index.providers = tuple(providers)
        changed = [
            (number, was, now)
            for number, (was, now) in enumerate(
                zip(self.providers, index.providers, strict=False)
            )
            if was is not now
        ]
        if len(index.providers) != self.size or not all(
            _unmoved(was) == _unmoved(now) for _, was, now in changed
        ):
            return ProviderIndex(index.providers, self.in_use), None
        traits: dict[str, list[int]] = defaultdict(list)
        aggregates: dict[str, list[int]] = defaultdict(list)
        for number, was, now in changed:
            for trait in was.traits ^ now.traits:
                traits[trait].append(number)
            for uuid in was.aggregates ^ now.aggregates:
                aggregates[uuid].append(number)
        holders = self._with_trait | {
            trait: self.with_trait(trait) ^ self.set_of(numbers)
            for trait, numbers in traits.items()
        }
        index._with_trait = {
            trait: members for trait, members in holders.items() if members
        }
        index._in_aggregate = self._in_aggregate.after(aggregates)
        index._share()
        vars(index).pop('summaries', None)
        return index, Moved(frozenset(traits), frozenset(aggregates))

    @lazy_property
    def hosts(self) -> list[tuple[str, int]]:
        """The hosts with the numbers of their compute nodes, sorted."""
        return sorted(
            (host, number)
            for number, host in enumerate(self.host_of)
            if host and number in self.trees
        )

    @lazy_property
    def host_of(self) -> list[str]:
        """The host of each provider; empty if it is no compute node."""
        return [provider.host or '' for provider in self.providers]

    @lazy_property
    def nodes(self) -> ProviderSet:
        """The compute nodes."""
        return self.set_of(number for _, number in self.hosts)

    @lazy_property
    def rooms(self) -> list[int]:
        """The first provider with the inventories and usages of each."""
        numbers: dict[Hashable, int] = {}
        return [
            numbers.setdefault(
                (
                    tuple(sorted(provider.inventories.items())),
                    tuple(sorted(provider.usages.items())),
                ),
                number,
            )
            for number, provider in enumerate(self.providers)
        ]

    @lazy_property
    def summaries(self) -> dict[int, list[tuple[str, ProviderSummary]]]:
        """The summaries of the providers of each tree, by root."""
        return {
            root: [self._summary(number) for number in numbers]
            for root, numbers in self.trees.items()
        }

    @property
    def traits(self) -> KeysView[str]:
        """The traits that at least one provider has."""
        return self._with_trait.keys()

    def with_trait(self, trait: str) -> ProviderSet:
        return self._with_trait.get(trait, 0)

    def in_aggregate(self, aggregate: str) -> ProviderSet:
        """Return the members of an aggregate."""
        return self._in_aggregate.any_of((aggregate,))

    def in_any_aggregate(self, aggregates: Iterable[str]) -> ProviderSet:
        """Return the members of at least one of some aggregates.

        ``member_of=in:A,B`` selects these providers, ``member_of=!in:A,B`` all
        others.
        """
        return self._in_aggregate.any_of(aggregates)

    def set_of(self, numbers: Iterable[int]) -> ProviderSet:
        """Return provider numbers, in any order, as a set."""
        numbers = list(numbers)
        if len(numbers) < self.size >> 9:
            return functools.reduce(lambda some, n: some | 1 << n, numbers, 0)
        digits = bytearray(_OUT) * max(self.size, 1)
        for number in numbers:
            digits[-1 - number] = _IN
        return int(digits, 2)

    def flags(self, providers: ProviderSet) -> bytes:
        """Return one byte per provider: 1 for members of the set, else 0."""
        digits = f'{providers:0{self.size}b}'.encode()
        return digits[::-1].translate(_TRUTH)

    def members(self, providers: ProviderSet) -> Iterator[int]:
        """Return the numbers of the providers in a set, in order."""
        if providers.bit_count() < self.size >> 8:
            return _bits(providers)
        return itertools.compress(range(self.size), self.flags(providers))

    def roots_of(self, providers: ProviderSet) -> ProviderSet:
        """Return the roots of the providers' trees."""
        children = providers & ~self.roots
        roots = providers & self.roots
        if children:
            roots |= self.set_of(
                itertools.compress(self.root_of, self.flags(children))
            )
        return roots

    def trees_of(self, roots: ProviderSet) -> ProviderSet:
        """Return all providers in the trees of some roots."""
        if not roots or self.roots == self.everyone:
            return roots
        flags = self.flags(roots)
        return self.set_of(
            number for number, root in enumerate(self.root_of) if flags[root]
        )

    def tree_with(self, uuid: str) -> ProviderSet:
        """Return all providers of a provider's tree; none if it is unknown."""
        if uuid not in self.numbers:
            return 0
        return self.set_of(self.trees[self.root_of[self.numbers[uuid]]])

    def used(self, number: int, resource_class: str) -> int:
        """Return the used amount that counts of a provider's inventory."""
        if not self.in_use:
            return 0
        return self.providers[number].usages.get(resource_class, 0)

    def ancestry(self, number: int) -> Iterator[int]:
        """Yield a provider and its ancestors, up to the root."""
        ancestor: int | None = number
        while ancestor is not None:
            yield ancestor
            ancestor = self.parent_of[ancestor]

    def _grouped(
        self, pairs: Iterable[tuple[str, int]]
    ) -> dict[str, ProviderSet]:
        numbers: dict[str, list[int]] = defaultdict(list)
        for key, number in pairs:
            numbers[key].append(number)
        return {key: self.set_of(members) for key, members in numbers.items()}

    def _stocks(self) -> dict[str, 'Stock']:
        numbers: dict[str, list[int]] = defaultdict(list)
        for number, provider in enumerate(self.providers):
            for resource_class in provider.inventories:
                numbers[resource_class].append(number)
        return {
            resource_class: Stock(self, resource_class, members)
            for resource_class, members in numbers.items()
        }

    def _anchors_of(self, number: int) -> ProviderSet:
        """Return the roots of the other trees that a provider shares with.

        A provider with the trait ``MISC_SHARES_VIA_AGGREGATE`` shares with
        each tree that has a provider, at any level, in one of its aggregates
        (*Modeling with Provider Trees* in Placement's user documentation).
        """
        together = 0
        for aggregate in self.providers[number].aggregates:
            together |= self.in_aggregate(aggregate)
        return self.roots_of(together) & ~(1 << self.root_of[number])

    def _summary(self, number: int) -> tuple[str, ProviderSummary]:
        provider = self.providers[number]
        summary = ProviderSummary(
            uuid=provider.uuid,
            root=self.uuids[self.root_of[number]],
            parent=provider.parent,
            capacity={
                resource_class: inventory.capacity
                for resource_class, inventory in provider.inventories.items()
            },
            used={
                resource_class: provider.usages.get(resource_class, 0)
                for resource_class in provider.inventories
            },
            traits=provider.traits,
        )
        return provider.uuid, summary


class Groups:
    """Sets of providers by key.

    A large cloud has thousands of small ones. These are kept as numbers:
    bitmasks would take most of the memory, and most of the time to unite.
    """

    def __init__(
        self, index: ProviderIndex, pairs: Iterable[tuple[str, int]]
    ) -> None:
        self._index = index
        self._small: dict[str, list[int]] = defaultdict(list)
        for key, number in pairs:
            self._small[key].append(number)
        self._large = {
            key: index.set_of(numbers)
            for key, numbers in self._small.items()
            if len(numbers) >= index.size >> 9
        }
        for key in self._large:
            del self._small[key]

    def after(self, moved: Mapping[str, Iterable[int]]) -> 'Groups':
        """Return the sets after some numbers have left or joined them."""
        groups = copy.copy(self)
        groups._small, groups._large = self._small.copy(), self._large.copy()
        for key, numbers in moved.items():
            if key in self._large:
                groups._large[key] ^= self._index.set_of(numbers)
                continue
            small = set(self._small.get(key, ())).symmetric_difference(numbers)
            groups._small[key] = sorted(small)
            if len(small) >= self._index.size >> 9:
                groups._large[key] = self._index.set_of(groups._small.pop(key))
        return groups

    def any_of(self, keys: Iterable[str]) -> ProviderSet:
        """Return the members of at least one of some sets."""
        numbers: list[int] = []
        together = 0
        for key in keys:
            together |= self._large.get(key, 0)
            numbers += self._small.get(key, ())
        return together | self._index.set_of(numbers) if numbers else together


class Stock:
    """The inventories of one resource class."""

    def __init__(
        self,
        index: ProviderIndex,
        resource_class: str,
        numbers: list[int],
    ) -> None:
        self._index = index
        self.providers = index.set_of(numbers)
        # Most providers have the same inventory.
        same: dict[int, tuple[Inventory, list[int]]] = {}
        for number in numbers:
            inventory = index.providers[number].inventories[resource_class]
            same.setdefault(id(inventory), (inventory, []))[1].append(number)
        by_free = []
        by_units: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for inventory, members in same.values():
            capacity = inventory.capacity
            by_free += [
                (capacity - index.used(number, resource_class), number)
                for number in members
            ]
            units = inventory.min_unit, inventory.max_unit, inventory.step_size
            by_units[units] += members
        by_free.sort()
        self._free = [amount for amount, _ in by_free]
        self._numbers = [number for _, number in by_free]
        self._by_units = [
            (units, index.set_of(members))
            for units, members in by_units.items()
        ]

    def with_free(self, amount: int) -> ProviderSet:
        """Return the providers with at least this much free capacity."""
        first = bisect.bisect_left(self._free, amount)
        if first == 0:
            return self.providers
        return self._index.set_of(self._numbers[first:])

    def accepting(self, amount: int) -> ProviderSet:
        """Return the providers that accept this amount in one allocation.

        It must lie between ``min_unit`` and ``max_unit`` and be a multiple of
        ``step_size``. A ``step_size`` of zero accepts nothing: in Placement's
        SQL query, ``amount % 0`` is NULL.
        """
        accepting = 0
        for (smallest, largest, step), providers in self._by_units:
            in_steps = step and amount % step == 0
            if in_steps and smallest <= amount <= largest:
                accepting |= providers
        return accepting


def _bits(number: int) -> Iterator[int]:
    """Yield the places of the ones, which must be few, in order."""
    while number:
        yield (number & -number).bit_length() - 1
        number &= number - 1
