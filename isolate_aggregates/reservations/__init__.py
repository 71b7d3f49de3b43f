# SPDX-License-Identifier: Apache-2.0
"""Reservations of capacity for servers, kept in Placement and Nova alone.

A reservation is an amount of slots of one size for a project. Its record is a
private flavor, its slots are inventories of a resource class of its own on
*reservation providers*, children of the compute nodes. There is no other
database. A :class:`Site` is made of a connection and the name of the pool;
all functions take it first, and the time as an aware ``datetime``::

    site = Site(connection, pool='freepool')

    enable_host(site, host)              -> Host
    disable_host(site, host)
    list_hosts(site)                     -> list[Host]

    new(project, amount, shape, start, end, affinity, id) -> Reservation
    preview(site, reservation, now)      -> Status
    create(site, reservation, now)       -> Status
    show(site, id, now)                  -> Status
    list_reservations(site, now)         -> list[Status]
    update(site, id, now, amount=, end=) -> Status
    end(site, id, now)                   -> Status
    repair(site, now, id)                -> list[Status]

    reconcile(site, id, now)             -> Status
    tick(site, now)                      -> list[Status]

:class:`Shape` is the size of a slot (``Shape.like(flavor)`` that of a
flavor). :class:`Status` has ``reservation``, ``state`` (a :class:`State`),
``hosts`` (:class:`Slots` by name), ``slots``, ``used``, ``missing`` and
``problems``. :class:`Host` has ``name``, ``service``, ``state`` (a
:class:`HostState`), ``in_pool``, ``is_enabled``, ``obstacle`` and ``slots`` by
id of the reservation. Foreseeable faults are
:class:`~isolate_aggregates.exception.IsolateAggregatesError`, above all
``ReservationError``, ``ReservationHostError``, ``NotFound``,
``InvalidRequest`` and ``ServiceError``.

For others that keep reservations in the same way: ``names`` (what everything
is called), ``slots`` (writing inventories), ``ending`` (what goes when),
``planner`` (choosing hosts; pure).
"""

from isolate_aggregates.reservations.hosts import (
    disable_host,
    enable_host,
    list_hosts,
)
from isolate_aggregates.reservations.operations import (
    KEEP,
    create,
    end,
    list_reservations,
    new,
    preview,
    repair,
    show,
    update,
)
from isolate_aggregates.reservations.reconciler import reconcile, tick
from isolate_aggregates.reservations.record import Ask, Reservation, Shape
from isolate_aggregates.reservations.site import Site
from isolate_aggregates.reservations.status import State, Status
from isolate_aggregates.reservations.world import Host, HostState, Slots

__all__ = [
    'KEEP',
    'Ask',
    'Host',
    'HostState',
    'Reservation',
    'Shape',
    'Site',
    'Slots',
    'State',
    'Status',
    'create',
    'disable_host',
    'enable_host',
    'end',
    'list_hosts',
    'list_reservations',
    'new',
    'preview',
    'reconcile',
    'repair',
    'show',
    'tick',
    'update',
]
