# SPDX-License-Identifier: Apache-2.0
"""Takes away what a reservation has, in an order that forgets nothing.

Nobody may boot any more, then the servers go, and only when none is left the
slots, the class and at last the flavor: without it the servers that hold no
allocation, as shelved ones do, could not be found any more.
"""

from collections.abc import Iterable

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories
from isolate_aggregates.reservations import slots
from isolate_aggregates.reservations.record import Reservation
from isolate_aggregates.reservations.site import Site


def finish(
    site: Site, reservation: Reservation, providers: Iterable[str]
) -> str | None:
    """End a reservation as far as it can be at the moment.

    :param site: The cloud.
    :param reservation: The reservation.
    :param providers: The uuids of the reservation providers that have slots
        of it.
    :returns: What is in the way of the rest, which the next call completes;
        None if nothing is left of it.
    :raises ServiceError: if anything can not be done.
    """
    providers = list(providers)
    site.compute.revoke(reservation)
    _change(site, reservation, providers, slots.closed)
    holders = _holders(site, reservation, providers)
    servers = set(site.compute.servers(reservation))
    for server in sorted(servers):
        site.compute.delete_server(server)
    # Nova lists no servers that were deleted but can be restored.
    others = {
        holder
        for holder in sorted(holders - servers)
        if not site.compute.delete_for_good(holder)
    }
    if others:
        # Of servers that were resized to another flavor and left the
        # reservation; it is only the way back that holds its slot.
        site.compute.confirm_resizes(others)
    if servers or holders:
        return _waiting(len(servers | holders))
    remove(site, reservation, providers)
    return None


def remove(
    site: Site, reservation: Reservation, providers: Iterable[str]
) -> None:
    """Take away slots, class and flavor of a reservation without servers.

    :param site: The cloud.
    :param reservation: The reservation.
    :param providers: The uuids of the reservation providers that have slots
        of it.
    :raises ServiceError: if anything can not be done.
    """
    _change(site, reservation, providers, slots.gone)
    inventories.delete_class(site.placement, reservation.resource_class)
    site.compute.delete_record(reservation)


def _change(
    site: Site,
    reservation: Reservation,
    providers: Iterable[str],
    new: slots.Change,
) -> None:
    for provider in providers:
        slots.change(site.placement, provider, reservation.resource_class, new)


def _holders(
    site: Site, reservation: Reservation, providers: Iterable[str]
) -> set[str]:
    """Return the consumers of the slots: servers, and migrations of them."""
    found = set()
    for provider in providers:
        try:
            consumers = inventories.consumers(site.placement, provider)
        except exception.ServiceNotFound:
            continue
        found |= {
            consumer
            for consumer, amounts in consumers.items()
            if reservation.resource_class in amounts
        }
    return found


def _waiting(number: int) -> str:
    what = '1 server is' if number == 1 else f'{number} servers are'
    return f'{what} being deleted'
