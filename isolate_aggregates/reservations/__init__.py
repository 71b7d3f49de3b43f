# SPDX-License-Identifier: Apache-2.0
"""Reservations of capacity for servers, kept in Placement and Nova alone.

A reservation is an amount of slots of one size for a project. Its record is a
private flavor, its slots are inventories of a resource class of its own on
*reservation providers*, children of the compute nodes. There is no other
database. All functions take a :class:`ReservationStore`, which is made of a
connection and the name of the pool, and the time as an aware ``datetime``::

    store = ReservationStore(connection, pool='freepool')
    now = store.now()

    enable_host(store, host)              -> ReservationHost
    disable_host(store, host)
    delete_pool(store)
    would_enable_host(store, host)        -> bool
    would_disable_host(store, host)       -> bool
    would_delete_pool(store, disabled)    -> bool
    list_hosts(store)                     -> list[ReservationHost]

    new(project, amount, shape, start, end, affinity, id,
        allow_uncounted)              -> Reservation
    preview(store, reservation, now)      -> Status
    find(store, reservation, now)         -> Status
    create(store, reservation, now)       -> Status
    show(store, id, now)                  -> Status
    list_reservations(store, now)         -> list[Status]
    calendar(store, now, start, end)      -> list[HostCalendar]
    update(store, id, now, amount=, end=,
           project=, start=, affinity=,
           dry_run=)                      -> Status
    end(store, id, now)                   -> Status
    move(store, id, now, hosts, dry_run=) -> Status
    evacuate(store, id)                   -> list[str]
    to_evacuate(store, id, leaving=)      -> list[str]
    repair(store, now, id)                -> list[Status]
    to_repair(store, now, id)             -> (set[str], list[str])

    reconcile(store, id, now, move=)      -> Status
    reconcile_all(store, now, move=)      -> list[Status]

All of them may run at the same time, on several machines, by clocks that
differ by some seconds (``ReservationStore.now`` refuses more). There is no
lock: the record of a reservation is written as numbered revisions, each of
which exists once (``record``), slots are written with the generations at which
they were decided on, and access is given after both were read again
(``reconciliation``). The pool itself is not guarded: after ``enable_host`` and
``disable_host`` for one host at the same time, repeat the one that is wanted.

Errors that can be foreseen are
:class:`~isolate_aggregates.exception.IsolateAggregatesError`, above all
``ReservationError``, ``ReservationHostError``, ``NotFound``,
``InvalidRequest`` and ``ServiceError``.

What :mod:`.blazar` shares with it: ``names``, ``slots`` (writing inventories),
``ending`` (what goes when) and ``room`` (what hosts have room for; pure).
"""

from isolate_aggregates.reservations.creation import create, preview
from isolate_aggregates.reservations.healing import FailedHosts
from isolate_aggregates.reservations.hosts import (
    delete_pool,
    disable_host,
    enable_host,
    list_hosts,
    would_delete_pool,
    would_disable_host,
    would_enable_host,
)
from isolate_aggregates.reservations.observed import (
    HostState,
    ReservationHost,
    Slots,
)
from isolate_aggregates.reservations.operations import (
    UNCHANGED,
    end,
    evacuate,
    move,
    repair,
    to_evacuate,
    to_repair,
    update,
)
from isolate_aggregates.reservations.reconciler import reconcile, reconcile_all
from isolate_aggregates.reservations.reservation import (
    PendingChange,
    Reservation,
    Shape,
    Terms,
)
from isolate_aggregates.reservations.room import Period
from isolate_aggregates.reservations.status import Phase, Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.views import (
    HostCalendar,
    calendar,
    find,
    list_reservations,
    show,
)
from isolate_aggregates.reservations.wanted import new

__all__ = [
    'UNCHANGED',
    'FailedHosts',
    'HostCalendar',
    'HostState',
    'PendingChange',
    'Period',
    'Phase',
    'Reservation',
    'ReservationHost',
    'ReservationStore',
    'Shape',
    'Slots',
    'Status',
    'Terms',
    'calendar',
    'create',
    'delete_pool',
    'disable_host',
    'enable_host',
    'end',
    'evacuate',
    'find',
    'list_hosts',
    'list_reservations',
    'move',
    'new',
    'preview',
    'reconcile',
    'reconcile_all',
    'repair',
    'show',
    'to_evacuate',
    'to_repair',
    'update',
    'would_delete_pool',
    'would_disable_host',
    'would_enable_host',
]
