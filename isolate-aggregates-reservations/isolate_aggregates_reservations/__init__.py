# SPDX-License-Identifier: Apache-2.0
"""Reserves capacity for servers, with Placement and Nova as the only storage.

A reservation is a number of equally sized slots for one project. Each
reservation has a private flavor, which is its record, and a custom resource
class. Its slots are inventories of that class on *reservation providers*,
which are children of the compute nodes' resource providers. There is no other
database. Most functions take a :class:`ReservationStore`, built from a
connection and the name of the pool, and the time as an aware ``datetime``;
they are in :mod:`.api`::

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
