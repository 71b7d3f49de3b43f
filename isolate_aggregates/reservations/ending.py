# SPDX-License-Identifier: Apache-2.0
"""Removes everything of a reservation, in an order that leaves nothing behind.

First booting is stopped, then the servers are deleted. Only when none is left
are slots and class deleted, and then, by the caller, the flavor: without it,
servers without an allocation, such as shelved ones, could no longer be found.
"""

from collections.abc import Iterable

from isolate_aggregates import exception, text
from isolate_aggregates.placement import inventories
from isolate_aggregates.reservations import names, slots
from isolate_aggregates.reservations.store import ReservationStore


def finish(
    store: ReservationStore, reservation: str, providers: Iterable[str]
) -> str | None:
    """End a reservation as far as it can be at the moment.

    :param providers: The uuids of the reservation providers that have slots
        of it.
    :returns: What is in the way of the rest, which the next call completes;
        None if only the flavor is left of it.
    """
    providers = list(providers)
    store.access.revoke(reservation)
    _change(store, reservation, providers, slots.closed)
    holders = _holders(store, reservation, providers)
    servers = set(store.compute.servers_of(reservation))
    for server in sorted(servers):
        store.compute.delete_server(server)
    # Nova lists no servers that were deleted but can be restored.
    others = {
        holder
        for holder in sorted(holders - servers)
        if not store.compute.delete_for_good(holder)
    }
    if others:
        # Of servers that were resized to another flavor and left the
        # reservation; it is only the way back that holds its slot.
        store.compute.confirm_resizes(others)
    if servers or holders:
        return _waiting(len(servers | holders))
    remove(store, reservation, providers)
    return None


def remove(
    store: ReservationStore, reservation: str, providers: Iterable[str]
) -> None:
    """Remove slots and class of a reservation without servers.

    :param providers: The uuids of the reservation providers that have slots
        of it.
    """
    _change(store, reservation, providers, slots.gone)
    inventories.delete_class(
        store.placement, names.resource_class(reservation)
    )


def _change(
    store: ReservationStore,
    reservation: str,
    providers: Iterable[str],
    new: slots.Edit,
) -> None:
    for provider in providers:
        slots.change(
            store.placement, provider, names.resource_class(reservation), new
        )


def _holders(
    store: ReservationStore, reservation: str, providers: Iterable[str]
) -> set[str]:
    """Return the consumers of the slots: servers, and migrations of them."""
    found = set()
    for provider in providers:
        try:
            consumers = inventories.consumers(store.placement, provider)
        except exception.ServiceNotFound:
            continue
        found |= {
            consumer
            for consumer, amounts in consumers.items()
            if names.resource_class(reservation) in amounts
        }
    return found


def _waiting(number: int) -> str:
    are = text.plural(number, 'is', 'are')
    return f'{text.counted(number, "server")} {are} being deleted'
