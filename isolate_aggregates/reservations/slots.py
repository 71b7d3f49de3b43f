# SPDX-License-Identifier: Apache-2.0
"""Writes the slots of a reservation: inventories of reservation providers.

The number of slots is the total of an inventory; those that are not open to
servers are reserved. What is written with a generation is written only if no
client wrote the provider since that generation.
"""

from collections.abc import Callable, Mapping
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.reservations.conflicts import retried

InventoryBody = Mapping[str, Any]
Edit = Callable[[InventoryBody], InventoryBody | None]


def inventory(total: int, opened: int) -> dict[str, Any]:
    """Return an inventory of slots.

    :param opened: How many of them servers may take.
    """
    return {
        'total': total,
        'reserved': total - opened,
        'min_unit': 1,
        'max_unit': 1,
        'step_size': 1,
        'allocation_ratio': 1.0,
    }


def write(
    placement: PlacementClient,
    provider: str,
    resource_class: str,
    total: int,
    opened: int,
    generation: int,
) -> None:
    """Write the slots of one class on a provider; other classes stay.

    :param provider: The uuid of the reservation provider.
    :param total: How many slots; 0 for none.
    :param opened: How many of them servers may take.
    :param generation: The generation at which this was found out.
    :raises ServiceConflict: if another client wrote the provider since.
    :raises ServiceNotFound: if the provider is gone.
    """
    found = inventories.read(placement, provider)
    if found.generation != generation:
        raise exception.ServiceConflict(
            'Placement',
            None,
            f'has resource provider {provider} at generation '
            f'{found.generation}, no longer {generation}; run the command '
            'again.',
        )
    by_class = dict(found.by_class)
    by_class.pop(resource_class, None)
    if total:
        by_class[resource_class] = inventory(total, opened)
    inventories.write(
        placement, provider, inventories.Inventories(generation, by_class)
    )


@retried
def change(
    placement: PlacementClient,
    provider: str,
    resource_class: str,
    new: Edit,
) -> None:
    """Change the inventory of a class, if the provider has one.

    :param provider: The uuid of the reservation provider; that it is gone is
        fine.
    :param new: Takes the inventory as it is and returns what it is to be, None
        for none; called again with what is there then, if another client was
        faster.
    :raises ServiceConflict: if other clients are faster all the time, or an
        inventory that is to go is in use.
    """
    try:
        found = inventories.read(placement, provider)
        before = found.by_class.get(resource_class)
        if before is None:
            return
        after = new(before)
        if after == before:
            return
        by_class = dict(found.by_class)
        del by_class[resource_class]
        if after is not None:
            by_class[resource_class] = after
        inventories.write(
            placement,
            provider,
            inventories.Inventories(found.generation, by_class),
        )
    except exception.ServiceNotFound:
        return


def opened_from(total: int, opened: int) -> Edit:
    """Return an edit that opens all slots, if they are still as they were.

    :param total: How many slots there were.
    :param opened: How many of them were open.
    """

    def edit(before: InventoryBody) -> InventoryBody:
        was = inventory(total, opened)
        if any(before[key] != was[key] for key in ('total', 'reserved')):
            return before
        return {**before, 'reserved': 0}

    return edit


def closed(before: InventoryBody) -> InventoryBody:
    """Return an inventory whose slots no further server may take."""
    return {**before, 'reserved': before['total']}


def gone(before: InventoryBody) -> None:
    """Return no inventory."""
