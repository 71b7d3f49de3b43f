# SPDX-License-Identifier: Apache-2.0
"""Writes slots, as inventories of reservation providers.

The ``total`` of an inventory is the number of slots; slots that are closed to
servers are ``reserved``. A write carries the provider's generation, so that it
fails if another client has changed the provider since.
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

    :param opened: The number of slots that servers may use.
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
    """Write the slots of one resource class; other classes do not change.

    :param provider: The uuid of the reservation provider.
    :param total: The number of slots; 0 deletes the inventory.
    :param opened: The number of slots that servers may use.
    :param generation: The generation that the decision was based on.
    :raises ServiceConflict: if the provider has another generation now.
    """
    current = inventories.read(placement, provider)
    if current.generation != generation:
        raise exception.ServiceConflict(
            'Placement',
            None,
            f'has resource provider {provider} at generation '
            f'{current.generation}, no longer {generation}; run the command '
            'again.',
        )
    by_class = dict(current.by_class)
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
    """Change the inventory of a resource class, if the provider has one.

    :param provider: The uuid of the reservation provider, which may be gone.
    :param new: Takes the current inventory and returns the new one, or None to
        delete it. It is called again after a conflict.
    :raises ServiceConflict: if there are conflicts on all attempts, or an
        inventory to delete is in use.
    """
    try:
        current = inventories.read(placement, provider)
        before = current.by_class.get(resource_class)
        if before is None:
            return
        after = new(before)
        if after == before:
            return
        by_class = dict(current.by_class)
        del by_class[resource_class]
        if after is not None:
            by_class[resource_class] = after
        inventories.write(
            placement,
            provider,
            inventories.Inventories(current.generation, by_class),
        )
    except exception.ServiceNotFound:
        return


def opened_from(total: int, opened: int) -> Edit:
    """Return an edit that opens all slots unless they have changed.

    :param total: The number of slots when they were read.
    :param opened: The number of open slots then.
    """

    def edit(before: InventoryBody) -> InventoryBody:
        was = inventory(total, opened)
        if any(before[key] != was[key] for key in ('total', 'reserved')):
            return before
        return {**before, 'reserved': 0}

    return edit


def closed(before: InventoryBody) -> InventoryBody:
    """Return the inventory with all slots closed."""
    return {**before, 'reserved': before['total']}


def gone(before: InventoryBody) -> None:
    """Return None, which deletes the inventory."""
