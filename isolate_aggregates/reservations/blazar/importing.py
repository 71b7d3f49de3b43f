# SPDX-License-Identifier: Apache-2.0
"""Imports reservations from Blazar.

The data in Blazar's database is written into the flavor of the reservation, as
the record that the commands read. Slots, servers and access exist already.
Nothing is deleted in Blazar's database or elsewhere. Reservations that cannot
be imported are listed and not changed.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import datetime
from typing import Any
import uuid

from blazar import config as blazar_config
from blazar import status
from blazar.db import api as db_api
from blazar.plugins import flavor as flavors
from blazar.plugins import instances
from oslo_config import cfg

from isolate_aggregates import exception, text
from isolate_aggregates.reservations import (
    changes,
    host_capacity,
    names,
    record,
    slots,
)
from isolate_aggregates.reservations.blazar import rows
from isolate_aggregates.reservations.blazar.record import parse
from isolate_aggregates.reservations.reservation import (
    MOST_IN_NAME,
    Labels,
    Reservation,
    Shape,
    uncounted,
)
from isolate_aggregates.reservations.slots import retried
from isolate_aggregates.reservations.state import HostSlots, ObservedState
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.tools.cli import settings
from isolate_aggregates.tools.placement import edits, inventories

_TYPES = (instances.RESOURCE_TYPE, flavors.RESOURCE_TYPE)

# The extra specs that Blazar's own plugin sets on flavors.
_EXTRA_SPECS = ('aggregate_instance_extra_specs:reservation', 'affinity_id')

_LIVING = (status.reservation.PENDING, status.reservation.ACTIVE)


@dataclasses.dataclass(frozen=True)
class Import:
    """The result of importing a reservation.

    :param problem: Why it cannot be imported, as the predicate of a sentence;
        None if it can.
    :param hosts: The number of slots by hypervisor hostname.
    :param notes: One sentence, without a full stop, for each property that is
        not imported.
    """

    id: str
    lease: str
    project: str
    problem: str | None = None
    was_imported: bool = False
    reservation: Reservation | None = None
    hosts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Row:
    """A reservation in Blazar's database."""

    reservation: Mapping[str, Any]
    lease: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.reservation['id'])

    @property
    def is_active(self) -> bool:
        state = self.reservation['status']
        return bool(state == status.reservation.ACTIVE)

    def result(self, problem: str | None = None) -> Import:
        return Import(
            self.id,
            str(self.lease['name']),
            str(self.lease['project_id']),
            problem,
        )


def configure(path: str) -> None:
    """Load a configuration file of Blazar, and use the database in it."""
    conf: cfg.ConfigOpts = blazar_config.CONF
    try:
        conf([], project='blazar', default_config_files=[path])
    except cfg.Error as exc:
        raise settings.unreadable(path, exc) from exc


def plan(store: ReservationStore, now: datetime.datetime) -> list[Import]:
    """Return what importing would do; change nothing."""
    state = _with_ready_hosts(store.read())
    results = []
    for row in _rows():
        result = _evaluate(store, state, row, now)
        results.append(result)
        if result.reservation is not None:
            state = _with(state, result.reservation, result.hosts)
    return results


def carry_out(store: ReservationStore, now: datetime.datetime) -> list[Import]:
    """Import all reservations that can be imported.

    It can be repeated. Blazar must not start or end leases meanwhile.
    """
    if any(result.reservation is not None for result in plan(store, now)):
        _make_hosts_ready(store)
    results = []
    state = store.read()
    for row in _rows():
        try:
            results.append(_import(store, state, row, now))
        except exception.IsolateAggregatesError as exc:
            results.append(row.result(str(exc).rstrip('.')))
    return results


@retried
def _import(
    store: ReservationStore,
    state: ObservedState,
    row: _Row,
    now: datetime.datetime,
) -> Import:
    """Import a reservation if possible.

    :param state: The state before the import. It need not be current, as
        the reservation has its slots already.
    """
    if not row.is_active:
        state = store.read()
    result = _evaluate(store, state, row, now)
    reservation = result.reservation
    if reservation is None:
        return result
    inventories.create_class(store.placement, reservation.resource_class)
    # The extra specs require a trait; the providers have it already.
    flavor = reservation.flavor
    store.compute.set_extra_specs(flavor, flavor.extra_specs)
    present = state.slots(reservation.id)
    for name, number in result.hosts.items():
        host = state.hosts[name]
        if name not in present and host.provider:
            slots.write(
                store.placement,
                host.provider,
                reservation.resource_class,
                HostSlots(number, 0, 0),
                host.generation,
            )
    # Last, because with this description it counts as imported.
    store.compute.describe_flavor(
        reservation.id, record.describe(changes.recorded(reservation, now))
    )
    return result


def _rows() -> Iterator[_Row]:
    """Yield the reservations of Blazar: active ones first, then by start."""
    living = [
        _Row(reservation, lease)
        for lease in db_api.lease_list()
        for reservation in lease['reservations']
        if reservation['status'] != status.reservation.DELETED
    ]
    yield from sorted(
        living,
        key=lambda row: (not row.is_active, row.lease['start_date'], row.id),
    )


def _evaluate(
    store: ReservationStore,
    state: ObservedState,
    row: _Row,
    now: datetime.datetime,
) -> Import:
    """Return what importing a reservation would do."""
    if row.id in state.records.reservations:
        return dataclasses.replace(row.result(), was_imported=True)
    problem = _obstacle(store, state, row, now)
    if problem:
        return row.result(problem)
    reservation = _reservation(state, row)
    present = state.slots(row.id)
    if not row.is_active and not present:
        numbers = dict(rows.numbers(row.id))
        unknown = [name for name in numbers if name not in state.hosts]
        if unknown:
            return row.result(
                f'Placement has no provider of {", ".join(unknown)}'
            )
        # Slots stay on Blazar's hosts if they fit there.
        assignment = host_capacity.assign(
            store, _with(state, reservation, numbers), reservation, now
        )
        if assignment.missing:
            return row.result(f'it {assignment.refusal}')
        hosts = dict(assignment.slots)
    else:
        hosts = {name: on_host.total for name, on_host in present.items()}
    outside = [name for name in hosts if not state.hosts[name].is_enabled]
    if outside:
        return row.result(
            f'{", ".join(outside)} is not in the pool {store.pool}, see '
            '[blazar:physical:host] aggregate_freepool_name'
        )
    if not hosts:
        return row.result('it has no slots')
    return dataclasses.replace(
        row.result(),
        reservation=reservation,
        hosts=dict(sorted(hosts.items())),
        notes=tuple(_notes(row, reservation, hosts)),
    )


def _obstacle(
    store: ReservationStore,
    state: ObservedState,
    row: _Row,
    now: datetime.datetime,
) -> str | None:
    kind = row.reservation['resource_type']
    if kind not in _TYPES:
        return f'only Blazar keeps reservations of the type {kind}'
    if row.reservation['status'] not in _LIVING:
        return f'its status is {row.reservation["status"]}'
    if row.lease['status'] not in status.lease.STABLE:
        return f'the status of its lease is {row.lease["status"]}'
    if _utc(row.lease['end_date']) <= now:
        return 'its lease is over, and Blazar has not ended it yet'
    if not row.is_active and _utc(row.lease['start_date']) <= now:
        return 'its lease is due, and Blazar has not started it yet'
    if row.id in state.records.problems:
        return str(state.records.problems[row.id])
    flavor = store.compute.record(row.id)
    if flavor is None:
        return f'Nova has no flavor {names.flavor(row.id)}'
    mark = parse(flavor)
    if mark is not None and mark.end is not None:
        return f'it is being ended by {mark.end.by}'
    return None


def _reservation(state: ObservedState, row: _Row) -> Reservation:
    shape = Shape.like(state.records.foreign[row.id])
    own = names.flavor_extra_specs(row.id)
    return Reservation(
        id=row.id,
        project=str(row.lease['project_id']),
        start=_utc(row.lease['start_date']),
        end=_utc(row.lease['end_date']),
        amount=int(row.reservation['amount']),
        shape=dataclasses.replace(
            shape,
            extra_specs={
                key: value
                for key, value in shape.extra_specs.items()
                if key not in own and key not in _EXTRA_SPECS
            },
        ),
        affinity=row.reservation['affinity'],
        # Tenants choose the names of leases.
        labels=Labels(text.escaped(row.lease['name'] or '')[:MOST_IN_NAME]),
        incarnation=uuid.uuid4().hex[:8],
    )


def _notes(
    row: _Row, reservation: Reservation, hosts: Mapping[str, int]
) -> Iterator[str]:
    number = sum(hosts.values())
    if number != reservation.amount:
        yield (
            f'it has {text.counted(number, "slot")} and should have '
            f'{reservation.amount}; reservation reconcile corrects that'
        )
    extra_specs = uncounted(reservation.shape.extra_specs)
    if extra_specs:
        yield (
            f'the resources that {", ".join(extra_specs)} requests are not '
            'counted'
        )
    if row.reservation['aggregate_id']:
        yield (
            f'aggregate {row.reservation["aggregate_id"]} stays, and its '
            'servers need it as long as AggregateInstanceExtraSpecsFilter is '
            'enabled'
        )
    if row.reservation['server_group_id']:
        yield f'server group {row.reservation["server_group_id"]} stays'
    properties = row.reservation['resource_properties']
    is_flavor = row.reservation['resource_type'] == flavors.RESOURCE_TYPE
    if properties and not is_flavor:
        yield (
            f'the resource properties {properties} are ignored when slots '
            'move later'
        )


def _make_hosts_ready(store: ReservationStore) -> None:
    """Give the trait to the reservation providers of all Blazar's hosts."""
    edits.create_trait(store.placement, names.TRAIT)
    for host in store.read().hosts.values():
        if host.in_pool and host.provider and not host.is_ready:
            edits.change_traits(
                store.placement,
                host.provider,
                lambda before: before | {names.TRAIT},
            )


def _with_ready_hosts(state: ObservedState) -> ObservedState:
    """Return the state as it will be after :func:`_make_hosts_ready`."""
    return dataclasses.replace(
        state,
        hosts={
            name: dataclasses.replace(
                host, is_ready=bool(host.in_pool and host.provider)
            )
            for name, host in state.hosts.items()
        },
    )


def _with(
    state: ObservedState, reservation: Reservation, hosts: Mapping[str, int]
) -> ObservedState:
    """Return the state with an imported reservation added."""
    records = state.records
    present = state.slots(reservation.id)
    return dataclasses.replace(
        state,
        records=dataclasses.replace(
            records,
            reservations={
                **records.reservations,
                reservation.id: reservation,
            },
            foreign={
                name: flavor
                for name, flavor in records.foreign.items()
                if name != reservation.id
            },
        ),
        hosts={
            name: dataclasses.replace(
                host,
                slots={
                    **host.slots,
                    reservation.id: present.get(
                        name, HostSlots(hosts[name], 0, 0)
                    ),
                },
            )
            if name in hosts
            else host
            for name, host in state.hosts.items()
        },
    )


def _utc(time: datetime.datetime) -> datetime.datetime:
    """Return a naive UTC time of Blazar as an aware one."""
    return time.replace(tzinfo=datetime.UTC)
