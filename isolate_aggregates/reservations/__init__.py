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

:mod:`.blazar` uses ``actions`` and ``executor`` for slots, and to remove a
reservation. With ``dry_run`` a function changes nothing, and returns
the status that it would lead to, with the list of actions in words.
"""

from isolate_aggregates.reservations.execution import reconcile
from isolate_aggregates.reservations.failed_hosts import FailedHosts
from isolate_aggregates.reservations.hosts import (
    disable_host,
    enable_host,
    list_hosts,
    to_disable,
    to_enable,
)
from isolate_aggregates.reservations.operations import (
    UNCHANGED,
    create,
    end,
    move,
    update,
)
from isolate_aggregates.reservations.pools import delete_pool, to_delete_pool
from isolate_aggregates.reservations.reservation import (
    PendingChange,
    Reservation,
    Shape,
    new,
)
from isolate_aggregates.reservations.rounds import (
    planned_repair,
    reconcile_all,
    repair,
)
from isolate_aggregates.reservations.state import HostSlots, HostState
from isolate_aggregates.reservations.status import Phase, Status
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.reservations.views import (
    calendar,
    earliest,
    list_reservations,
    show,
)

__all__ = [
    'UNCHANGED',
    'FailedHosts',
    'HostSlots',
    'HostState',
    'PendingChange',
    'Phase',
    'Reservation',
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
    'list_hosts',
    'list_reservations',
    'move',
    'new',
    'planned_repair',
    'reconcile',
    'reconcile_all',
    'repair',
    'show',
    'to_delete_pool',
    'to_disable',
    'to_enable',
    'update',
]
