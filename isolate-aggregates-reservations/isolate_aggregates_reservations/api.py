# SPDX-License-Identifier: Apache-2.0
"""What commands and plugins call: the functions and their values."""

from isolate_aggregates_reservations.execution import reconcile
from isolate_aggregates_reservations.failed_hosts import FailedHosts
from isolate_aggregates_reservations.hosts import (
    disable_host,
    enable_host,
    list_hosts,
    to_disable,
    to_enable,
)
from isolate_aggregates_reservations.operations import (
    UNCHANGED,
    create,
    end,
    move,
    update,
)
from isolate_aggregates_reservations.pools import delete_pool, to_delete_pool
from isolate_aggregates_reservations.reservation import (
    PendingChange,
    Reservation,
    Shape,
    new,
)
from isolate_aggregates_reservations.rounds import (
    planned_repair,
    reconcile_all,
    repair,
)
from isolate_aggregates_reservations.state import HostSlots, HostState
from isolate_aggregates_reservations.status import Phase, Status
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_reservations.views import (
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
