# SPDX-License-Identifier: Apache-2.0
"""Reserves capacity for servers, with Placement and Nova as the only storage.

A reservation is a number of equally sized slots for one project. Each
reservation has a private flavor, which is its record, and a custom resource
class. Its slots are inventories of that class on *reservation providers*,
which are children of the compute nodes' resource providers. There is no other
database. Most functions take a :class:`ReservationStore`, built from a
connection and the name of the pool, and the time as an aware ``datetime``::

    store = ReservationStore(connection, pool='freepool')
    create(store, new(project, amount, shape, start), store.now())

All functions may run concurrently, on several machines whose clocks differ by
a few seconds (``ReservationStore.now`` rejects larger differences). There is
no lock. A record is written as numbered revisions, and each number can be
written only once (``record``). Slots are written with the provider generation
that the decision was based on, and access is granted only after both have been
read again (``execution``). Membership of the pool has no such protection:
if ``enable_host`` and ``disable_host`` run for the same host at the same time,
repeat the one you want.

Expected errors are subclasses of
:class:`~isolate_aggregates.exception.IsolateAggregatesError`, mostly
``ReservationError``, ``ReservationHostError``, ``NotFound``,
``InvalidRequest`` and ``ServiceError``.

:mod:`.blazar` uses ``actions`` and ``executor`` for slots, and ``ending`` to
remove a reservation.
"""

from isolate_aggregates.reservations.execution import reconcile
from isolate_aggregates.reservations.failed_hosts import FailedHosts
from isolate_aggregates.reservations.history import (
    PastReservation,
    read_history,
)
from isolate_aggregates.reservations.hosts import (
    delete_pool,
    disable_host,
    enable_host,
    list_hosts,
    would_delete_pool,
    would_disable_host,
    would_enable_host,
)
from isolate_aggregates.reservations.operations import (
    UNCHANGED,
    create,
    end,
    evacuate,
    move,
    preview,
    to_evacuate,
    update,
)
from isolate_aggregates.reservations.plan import FreePeriod
from isolate_aggregates.reservations.reservation import (
    Labels,
    PendingChange,
    Reservation,
    Shape,
    new,
)
from isolate_aggregates.reservations.rounds import (
    reconcile_all,
    repair,
    to_repair,
)
from isolate_aggregates.reservations.state import (
    HostSlots,
    HostState,
    ReservationHost,
)
from isolate_aggregates.reservations.status import Phase, Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.views import (
    HostCalendar,
    calendar,
    earliest,
    list_reservations,
    show,
)

__all__ = [
    'UNCHANGED',
    'FailedHosts',
    'FreePeriod',
    'HostCalendar',
    'HostSlots',
    'HostState',
    'Labels',
    'PastReservation',
    'PendingChange',
    'Phase',
    'Reservation',
    'ReservationHost',
    'ReservationStore',
    'Shape',
    'Status',
    'calendar',
    'create',
    'delete_pool',
    'disable_host',
    'earliest',
    'enable_host',
    'end',
    'evacuate',
    'list_hosts',
    'list_reservations',
    'move',
    'new',
    'preview',
    'read_history',
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
