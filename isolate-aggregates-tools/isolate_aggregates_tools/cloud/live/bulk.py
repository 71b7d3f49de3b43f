# SPDX-License-Identifier: Apache-2.0
"""What a few calls to Placement tell of all resource providers."""

from collections.abc import Collection, Mapping
from concurrent import futures
import dataclasses

from isolate_aggregates_tools.placement.client import (
    PlacementClient,
    ProviderSummary,
)
from isolate_aggregates_tools.placement.provider import Inventory

Amounts = Mapping[str, Collection[int]]


@dataclasses.dataclass(frozen=True)
class Bulk:
    """What is known of providers without a call for each of them.

    :param summaries: The summaries of candidates, by uuid.
    :param members: The aggregates of all providers that are in any; None if
        unknown.
    :param sufficient: The providers from which each amount can be allocated,
        by resource class; None if unknown.
    :param amounts: The amounts by resource class that :attr:`sufficient` is
        about.
    """

    summaries: Mapping[str, ProviderSummary] = dataclasses.field(
        default_factory=dict
    )
    members: Mapping[str, frozenset[str]] | None = None
    sufficient: Mapping[str, frozenset[str]] | None = None
    amounts: Amounts = dataclasses.field(default_factory=dict)

    def inventories(self, uuid: str) -> Mapping[str, Inventory] | None:
        """Return inventories that answer for the amounts as the real ones.

        Apart from the capacity they have default values.

        :returns: None if an amount cannot be allocated from the provider: then
            the real ones tell why.
        """
        summary = self.summaries.get(uuid)
        if summary is None or self.sufficient is None:
            return None
        for resource_class, amounts in self.amounts.items():
            if resource_class in summary.capacity and (
                uuid not in self.sufficient[resource_class]
                # It has changed between two calls.
                or summary.free(resource_class) < max(amounts)
            ):
                return None
        return {
            name: Inventory(amount)
            for name, amount in summary.capacity.items()
        }


def sufficient(
    placement: PlacementClient,
    amounts: Amounts,
    classes: Collection[str],
    pool: futures.Executor,
) -> Mapping[str, frozenset[str]]:
    """Return the providers from which each of some amounts can be allocated.

    :param classes: The resource classes that exist.
    """
    pairs = [
        (name, amount)
        for name in sorted(amounts)
        for amount in sorted(amounts[name])
        if name in classes
    ]
    found: dict[str, frozenset[str]] = {}
    for (name, _), uuids in zip(
        pairs,
        pool.map(lambda pair: _holders(placement, *pair), pairs),
        strict=True,
    ):
        found[name] = found.get(name, uuids) & uuids
    return {name: found.get(name, frozenset()) for name in amounts}


def _holders(
    placement: PlacementClient, name: str, amount: int
) -> frozenset[str]:
    return placement.read(
        f'/resource_providers?resources={name}:{amount}',
        lambda document: frozenset(
            entry['uuid'] for entry in document['resource_providers']
        ),
    )
