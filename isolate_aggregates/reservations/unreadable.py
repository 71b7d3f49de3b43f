# SPDX-License-Identifier: Apache-2.0
"""Finds reservations whose record cannot be read, or was deleted by hand."""

from collections.abc import Callable, Mapping
import logging

from isolate_aggregates import exception, text
from isolate_aggregates.placement import inventories
from isolate_aggregates.reservations import names
from isolate_aggregates.reservations.observed import (
    HostSlots,
    ObservedState,
    ReservationHost,
)
from isolate_aggregates.reservations.store import ReservationStore

LOG = logging.getLogger(__name__)

# Called for each reservation that cannot be read, with what is wrong.
OnUnreadable = Callable[[exception.ReservationError], None]


def log_unreadable(problem: exception.ReservationError) -> None:
    LOG.error('%s', problem)


def find_unreadable(
    store: ReservationStore, observed: ObservedState
) -> list[exception.ReservationError]:
    """Return what is wrong with each reservation that cannot be read.

    Their slots stay, and nothing else can be planned on the hosts of a
    reservation that has no record at all.
    """
    records = observed.records
    readable_or_foreign = {*records.reservations, *records.foreign}
    lost: dict[str, dict[str, HostSlots]] = {}
    for host in observed.hosts.values():
        for name, slots in host.slots.items():
            if name not in readable_or_foreign and _is_lost(store, host, name):
                lost.setdefault(name, {})[host.name] = slots
    return [
        *records.problems.values(),
        *(
            exception.ReservationError(
                name, _problem(observed, name, lost[name])
            )
            for name in sorted(lost)
        ),
    ]


def _is_lost(
    store: ReservationStore, host: ReservationHost, reservation: str
) -> bool:
    """Return whether a host has slots of a reservation without a record.

    The slots and the records were not read at the same time, and the
    reservation may have ended in between: then its slots were deleted before
    its record.
    """
    if store.compute.record(reservation) is not None:
        return False
    try:
        current = inventories.read(store.placement, host.provider or '')
    except exception.ServiceNotFound:
        return False
    return names.resource_class(reservation) in current.by_class


def _problem(
    observed: ObservedState, reservation: str, slots: Mapping[str, HostSlots]
) -> str:
    """Return the predicate of a sentence about a reservation."""
    total = sum(on_host.total for on_host in slots.values())
    used = sum(on_host.used for on_host in slots.values())
    name = names.resource_class(reservation)
    providers = sorted(observed.hosts[host].provider or '' for host in slots)
    free = ' and '.join(
        'openstack resource provider inventory delete --resource-class '
        f'{name} {provider}'
        for provider in providers
    )
    servers = (
        f', {used} with {text.plural(used, "a server", "servers")}'
        if used
        else ''
    )
    first = 'first delete the servers, then ' if used else ''
    return (
        f'has no record in Nova, but {text.counted(total, "slot")} on '
        f'{text.named("host", slots)}{servers}; no other slots are planned '
        'there. To keep '
        f'it, run reservation create --id {reservation} with its values; to '
        f'free its slots, {first}run {free}'
    )
