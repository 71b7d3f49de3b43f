# SPDX-License-Identifier: Apache-2.0
"""Reads what no list has of a single reservation, if something is wrong."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent import futures
import datetime
from types import MappingProxyType

from isolate_aggregates import exception
from isolate_aggregates.reservations import errors, record, slots
from isolate_aggregates.reservations.reservation import Reservation
from isolate_aggregates.reservations.state import ObservedState
from isolate_aggregates.reservations.status import LATE, Details, Remaining
from isolate_aggregates.reservations.store import ReservationStore

# Parallel requests.
_PARALLEL = 8


def read(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
    stale: Mapping[str, str] = MappingProxyType({}),
) -> Details:
    """Return the details of a reservation.

    :param stale: What :func:`stale_records` returns.
    """
    return Details(
        newest=_newest(store, state, reservation),
        remaining=dict(_remaining(store, state, reservation, now)),
        stale=stale.get(reservation.id, ''),
    )


def _newest(
    store: ReservationStore, state: ObservedState, reservation: Reservation
) -> dict[str, list[str]]:
    """Return the servers that were created last on oversold hosts.

    :returns: As many as have no slot, by name of the host.
    """
    oversold = {
        name: on_host.oversold
        for name, on_host in state.slots(reservation.id).items()
        if on_host.oversold
    }
    if not oversold:
        return {}
    # Nova lists those that were created last first.
    servers = store.compute.servers_of(reservation.id)
    newest = {}
    for name, number in oversold.items():
        holders = _holders(store, state, reservation, name)
        newest[name] = [server for server in servers if server in holders][
            :number
        ]
    return newest


def _remaining(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    now: datetime.datetime,
) -> Iterator[tuple[str, Remaining]]:
    """Yield what keeps an end from completing, by name of the host.

    On a host that has not failed, servers may take some time to be deleted.
    They are not deleted before all slots are closed.
    """
    on_hosts = state.slots(reservation.id)
    if not reservation.has_ended(now) or any(
        on_host.open for on_host in on_hosts.values()
    ):
        return
    assert reservation.end is not None
    is_late = now - reservation.end >= LATE
    for name, on_host in sorted(on_hosts.items()):
        if not on_host.used or not (is_late or state.hosts[name].has_failed):
            continue
        holders = sorted(_holders(store, state, reservation, name))
        servers = [
            holder for holder in holders if store.compute.has_server(holder)
        ]
        others = [holder for holder in holders if holder not in servers]
        if holders:
            yield name, Remaining(servers, others)


def _holders(
    store: ReservationStore,
    state: ObservedState,
    reservation: Reservation,
    host: str,
) -> set[str]:
    """Return the consumers of the slots on a host."""
    provider = state.hosts[host].provider
    return slots.holders(
        store.placement,
        [provider] if provider else [],
        reservation.resource_class,
    )


def stale_records(
    store: ReservationStore,
    state: ObservedState,
    reservations: Iterable[Reservation],
) -> dict[str, str]:
    """Find records that are older than their slots.

    :returns: What is wrong, as the predicate of a sentence, by reservation id.
    """
    by_id = {reservation.id: reservation for reservation in reservations}
    providers = sorted(
        {provider for name in by_id for provider in state.slot_providers(name)}
    )
    with futures.ThreadPoolExecutor(_PARALLEL) as pool:
        numbers = pool.map(
            lambda provider: slots.changes(store.placement, provider),
            providers,
        )
        suspects = {
            name
            for changes in numbers
            for name, change in changes.items()
            if name in by_id and change > by_id[name].change
        }
    stale = {}
    for name in sorted(suspects):
        try:
            check_record(store, state, by_id[name])
        except errors.StaleRecord as exc:
            stale[name] = exc.problem
        except exception.ServiceConflict:
            # Another command has changed it since it was read.
            continue
    return stale


def check_record(
    store: ReservationStore, state: ObservedState, reservation: Reservation
) -> None:
    """Check that the record of a reservation is not older than its slots.

    :raises StaleRecord: if it is.
    :raises ServiceConflict: if another command has changed it since it was
        read.
    """
    change = slots.last_change(
        store.placement,
        state.slot_providers(reservation.id),
        reservation.resource_class,
    )
    if change <= reservation.change:
        return
    # The slots were read after the record, and written after theirs.
    revisions = record.read(store.compute.revisions(reservation))
    newest = revisions.reservations.get(reservation.id)
    if newest is None or newest.change >= change:
        raise conflict(reservation.id)
    raise errors.StaleRecord(reservation.id, change)


def conflict(reservation: str) -> exception.ServiceConflict:
    """Return the error that a record has changed since it was read."""
    return exception.ServiceConflict(
        'Nova',
        None,
        f'has a new record of reservation {reservation}; run the command '
        'again.',
    )
