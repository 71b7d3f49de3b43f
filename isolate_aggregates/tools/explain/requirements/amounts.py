# SPDX-License-Identifier: Apache-2.0
"""The requirement of an amount of a resource class."""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.tools.explain.host import HostProviders, provider_names
from isolate_aggregates.tools.explain.requirements.requirement import (
    Requirement,
)
from isolate_aggregates.tools.placement.group import ResourceRequest
from isolate_aggregates.tools.placement.provider import Inventory, Provider


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
