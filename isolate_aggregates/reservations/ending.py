# SPDX-License-Identifier: Apache-2.0
"""Removes a reservation, in an order that leaves nothing behind.

First, access is revoked and slots are closed, so that no server can be booted.
Then the servers are deleted. When none is left, slots and resource class are
deleted, and last, by the caller, the flavor: servers without an allocation,
for example shelved ones, can only be found by their flavor.
"""

from collections.abc import Iterable

from isolate_aggregates import text
from isolate_aggregates.reservations import names, slots
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.tools.placement import inventories


def finish(
    store: ReservationStore, reservation: str, providers: Iterable[str]
) -> str | None:
    """End a reservation as far as possible now; call again for the rest.

    :param providers: The uuids of the reservation providers with its slots.
    :returns: What has to finish first, as a sentence; None if only the flavor
        is left.
    """
    providers = list(providers)
    store.compute.revoke(reservation)
    _change(store, reservation, providers, slots.closed)
    holders = slots.holders(
        store.placement, providers, names.resource_class(reservation)
    )
    servers = set(store.compute.servers_of(reservation))
    for server in sorted(servers):
        store.compute.delete_server(server)
    # Soft-deleted servers are not in Nova's list, but have allocations.
    others = {
        holder
        for holder in sorted(holders - servers)
        if not store.compute.delete_for_good(holder)
    }
    if others:
        # The other consumers are migrations: servers that were resized to
        # another flavor hold their slot until the resize is confirmed.
        store.compute.confirm_resizes(others)
    if servers or holders:
        return _waiting(len(servers | holders))
    remove(store, reservation, providers)
    return None


def remove(
    store: ReservationStore, reservation: str, providers: Iterable[str]
) -> None:
    """Delete slots and resource class of a reservation without servers."""
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


def _waiting(number: int) -> str:
    are = text.plural(number, 'is', 'are')
    return f'{text.counted(number, "server")} {are} being deleted'
