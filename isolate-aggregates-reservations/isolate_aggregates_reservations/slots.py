# SPDX-License-Identifier: Apache-2.0
"""Reads and writes slots, as inventories of reservation providers.

The ``total`` of an inventory is the number of slots. They are closed to
servers in one of two ways:

* Slots without servers, such as all before the start, are *planned*: their
  ``min_unit`` is larger than their ``max_unit``, so that Placement accepts no
  amount. The ``allocation_ratio`` makes that visible in the capacity, which is
  all that the summaries of allocation candidates have of an inventory.
* Slots that may have servers, on hosts to leave and after the end, are
  ``reserved``. Placement checks ``min_unit`` and ``max_unit`` also for a
  server that has a slot already and is moved; ``reserved`` it does not
  (``findings/placement-min-above-max.sh``). Their capacity is 0, so their
  inventory must be read to know their number.

An inventory also carries the number of the change that it was written for, as
``max_unit - 1``. So if Nova's database is restored from a backup, or flavors
of a record are deleted, Placement still knows that the record is too old to
decide what is deleted. Servers take one slot each, whatever ``max_unit`` is.

A write carries the provider's generation, so that it fails if another client
has changed the provider since.
"""

from collections.abc import Callable, Container, Iterable, Mapping
import contextlib
import logging
from typing import Any

import tenacity

from isolate_aggregates import exception
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.state import HostSlots
from isolate_aggregates_tools.placement import inventories
from isolate_aggregates_tools.placement.client import (
    PlacementClient,
    ProviderSummary,
)

LOG = logging.getLogger(__name__)

# Each server that is created or deleted can cause a conflict.
_ATTEMPTS = 20
_LONGEST_PAUSE = 0.5  # seconds

retried = tenacity.retry(
    retry=tenacity.retry_if_exception_type(exception.ServiceConflict),
    stop=tenacity.stop_after_attempt(_ATTEMPTS),
    # Random, or two clients could conflict again on every attempt.
    wait=tenacity.wait_random_exponential(0.02, _LONGEST_PAUSE),
    before_sleep=tenacity.before_sleep_log(LOG, logging.DEBUG),
    reraise=True,
)


InventoryBody = Mapping[str, Any]
# Takes an inventory, and returns the new one; None for none.
Edit = Callable[[InventoryBody | None], InventoryBody | None]

# The allocation ratio of planned slots: larger than any number of slots, and
# stored exactly by databases with numbers of six digits.
_PLANNED = 1_000_000


def inventory(slots: HostSlots, change: int = 0) -> dict[str, Any]:
    """Return the inventory of slots.

    :param change: The number of the change that they are written for.
    """
    is_planned = not slots.open and not slots.used
    return {
        'total': slots.total,
        'reserved': 0 if is_planned else slots.total - slots.open,
        'min_unit': change + 2 if is_planned else 1,
        'max_unit': change + 1,
        'step_size': 1,
        'allocation_ratio': float(_PLANNED) if is_planned else 1.0,
    }


def opened(total: int, change: int = 0) -> dict[str, Any]:
    return inventory(HostSlots(total, total, 0), change)


def change_of(body: InventoryBody) -> int:
    number: int = body['max_unit'] - 1
    return number


def from_inventories(
    by_class: Mapping[str, InventoryBody], used: Mapping[str, int]
) -> dict[str, HostSlots]:
    return {
        reservation: _slots(body, used.get(name, 0))
        for name, body in by_class.items()
        if (reservation := names.reservation_of(name))
    }


def _slots(body: InventoryBody, used: int) -> HostSlots:
    free = max(0, body['total'] - body['reserved'])
    if body['min_unit'] <= body['max_unit']:
        return HostSlots(body['total'], free, used)
    is_visible = body['allocation_ratio'] == _PLANNED
    return HostSlots(body['total'], 0, used, is_planned=is_visible)


def from_summary(
    summary: ProviderSummary, changing: Container[str]
) -> dict[str, HostSlots] | None:
    """Return the slots in a provider's summary, by reservation id.

    :param changing: The ids of reservations that may have open and closed
        slots on one host.
    :returns: None if the inventories must be read, because the capacity does
        not tell the number of slots.
    """
    slots = {}
    for name, capacity in summary.capacity.items():
        reservation = names.reservation_of(name)
        if reservation is None:
            continue
        number, rest = divmod(capacity, _PLANNED)
        if not capacity or (number and rest) or reservation in changing:
            return None
        slots[reservation] = HostSlots(
            number or capacity,
            0 if number else capacity,
            summary.used.get(name, 0),
            is_planned=bool(number),
        )
    return slots


def changes(placement: PlacementClient, provider: str) -> dict[str, int]:
    """Return the numbers of the changes that slots were written for.

    :param provider: The uuid of a reservation provider, which may be gone.
    :returns: The numbers by reservation id.
    """
    try:
        by_class = inventories.read(placement, provider).by_class
    except exception.ServiceNotFound:
        return {}
    return {
        reservation: change_of(body)
        for name, body in by_class.items()
        if (reservation := names.reservation_of(name))
    }


def holders(
    placement: PlacementClient,
    providers: Iterable[str],
    resource_class: str,
) -> set[str]:
    """Return the consumers of slots: servers and their migrations.

    :param providers: The uuids of reservation providers, which may be gone.
    """
    found = set()
    for provider in providers:
        with contextlib.suppress(exception.ServiceNotFound):
            consumers = inventories.consumers(placement, provider)
            found |= {
                consumer
                for consumer, amounts in consumers.items()
                if resource_class in amounts
            }
    return found


def write(
    placement: PlacementClient,
    provider: str,
    resource_class: str,
    slots: HostSlots,
    generation: int,
    change: int = 0,
) -> int:
    """Write the slots of one resource class; other classes do not change.

    :param provider: The uuid of the reservation provider.
    :param slots: The new slots, with their servers; a ``total`` of 0 deletes
        the inventory.
    :param generation: The generation that the decision was based on.
    :param change: The number of the last change in the record.
    :returns: The new generation.
    :raises ServiceConflict: if the provider has another generation now.
    :raises StaleRecord: if the slots were written for a later change.
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
    before = by_class.pop(resource_class, None)
    if before is not None and change_of(before) > change:
        reservation = names.reservation_of(resource_class) or resource_class
        raise errors.StaleRecord(reservation, change_of(before))
    if slots.total:
        by_class[resource_class] = inventory(slots, change)
    return inventories.write(
        placement, provider, inventories.Inventories(generation, by_class)
    )


@retried
def change(
    placement: PlacementClient,
    provider: str,
    resource_class: str,
    new: Edit,
) -> None:
    """Change the inventory of a resource class, unless the provider is gone.

    :param provider: The uuid of the reservation provider.
    :param new: Called again after a conflict.
    :raises ServiceConflict: if there are conflicts on all attempts, or an
        inventory to delete is in use.
    """
    try:
        current = inventories.read(placement, provider)
        by_class = dict(current.by_class)
        before = by_class.pop(resource_class, None)
        after = new(before)
        if after == before:
            return
        if after is not None:
            by_class[resource_class] = after
        inventories.write(
            placement,
            provider,
            inventories.Inventories(current.generation, by_class),
        )
    except exception.ServiceNotFound:
        return


def opened_from(slots: HostSlots) -> Edit:
    """Return an edit that opens all slots unless they have changed."""

    def edit(before: InventoryBody | None) -> InventoryBody | None:
        if before is None:
            return None
        now = _slots(before, slots.used)
        if (now.total, now.open) != (slots.total, slots.open):
            return before
        return opened(slots.total, change_of(before))

    return edit


def closed(before: InventoryBody | None) -> InventoryBody | None:
    """Return the inventory with all slots closed; they may have servers."""
    if before is None or not _slots(before, used=0).open:
        return before
    return {
        **opened(before['total'], change_of(before)),
        'reserved': before['total'],
    }


def mark(placement: PlacementClient, provider: str) -> None:
    """Give a reservation provider its unit of the marker class."""
    inventories.create_class(placement, names.MARKER)
    change(placement, provider, names.MARKER, lambda _: opened(1))


def gone(before: InventoryBody | None) -> None:
    """Return None, which deletes the inventory."""
