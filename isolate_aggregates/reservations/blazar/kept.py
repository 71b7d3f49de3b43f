# SPDX-License-Identifier: Apache-2.0
"""What is kept in Nova for Blazars, and what an operator does about it.

Blazar leaves reservations alone that its database does not know. Whether they
are to end, or to be known again, is for an operator to decide, one by one.
"""

from collections.abc import Mapping
import dataclasses
import datetime

from blazar import config as blazar_config
from blazar import status
from blazar.db import api as db_api
from blazar.plugins import instances
from blazar.utils.openstack import nova as _nova_options  # noqa: F401
from blazar.utils.openstack import placement as _placement_options  # noqa: F401
from oslo_config import cfg
from oslo_utils import timeutils

from isolate_aggregates import exception
from isolate_aggregates.reservations.blazar.backend import Backend
from isolate_aggregates.reservations.blazar.connection import connect
from isolate_aggregates.reservations.blazar.database import database_id
from isolate_aggregates.reservations.blazar.record import BlazarRecord, End


@dataclasses.dataclass(frozen=True)
class Kept:
    """A reservation that is kept in Nova for a Blazar.

    :param record: What its flavor says.
    :param is_ours: Whether it belongs to the Blazar of the configuration.
    :param is_known: Whether the database of that Blazar knows it.
    :param projects: The ids of the projects that may use it.
    :param slots: How many slots it has, by hypervisor hostname.
    :param servers: The ids of its servers.
    """

    record: BlazarRecord
    is_ours: bool
    is_known: bool
    projects: tuple[str, ...]
    slots: Mapping[str, int]
    servers: tuple[str, ...]


def backend(path: str) -> Backend:
    """Return the backend of the Blazar that a file configures.

    :raises ConfigError: if the file cannot be read.
    """
    conf = blazar_config.CONF
    try:
        conf([], project='blazar', default_config_files=[path])
    except cfg.Error as exc:
        raise exception.ConfigFilesError(f'{path}: {exc}') from exc
    return Backend(
        connect(conf), conf.nova.aggregate_freepool_name, database_id()
    )


def everything(found: Backend) -> list[Kept]:
    """Return all that is kept for any Blazar."""
    slots = found.hosts()
    return [_kept(found, record, slots) for record in found.records()]


def one(found: Backend, reservation: str) -> Kept:
    """Return one that is kept for any Blazar.

    :raises NotFound: if there is none of that id.
    """
    for record in found.records():
        if record.reservation == reservation:
            return _kept(found, record, found.hosts())
    raise exception.NotFound('reservation of Blazar', reservation, 'Nova')


def adopt(found: Backend, kept: Kept, until: datetime.datetime) -> None:
    """Let the Blazar of the configuration keep a reservation.

    If its database does not know the reservation, it gets a lease of its own
    that has started. Servers stay as they are.

    :param until: When that lease ends.
    :raises ReservationError: if it cannot be adopted.
    """
    if kept.record.end is not None:
        raise exception.ReservationError(
            kept.record.reservation,
            'cannot be adopted, as it was ended already',
        )
    if not kept.is_known:
        _create_lease(found, kept, until)
    found.write(
        dataclasses.replace(kept.record, database=found.database, end=None)
    )


def end(found: Backend, kept: Kept) -> str | None:
    """End a reservation as far as it can be at the moment.

    :returns: What is in the way of the rest; None if nothing is left of it.
    """
    if kept.record.end is None:
        mark = End('an operator', datetime.datetime.now(datetime.UTC))
        found.write(dataclasses.replace(kept.record, end=mark))
    return found.finish(kept.record.reservation, kept.slots)


def _kept(
    found: Backend, record: BlazarRecord, slots: Mapping[str, dict[str, int]]
) -> Kept:
    return Kept(
        record,
        is_ours=record.database == found.database,
        is_known=db_api.reservation_get(record.reservation) is not None,
        projects=tuple(found.projects(record.reservation)),
        slots=slots.get(record.reservation, {}),
        servers=tuple(found.servers(record.reservation)),
    )


def _create_lease(
    found: Backend, kept: Kept, until: datetime.datetime
) -> None:
    reservation = kept.record.reservation
    hosts = {host['hypervisor_hostname']: host for host in db_api.host_list()}
    problem = None
    if len(kept.projects) != 1:
        problem = 'not exactly one project may use it'
    elif not kept.slots:
        problem = 'it has no slots'
    elif kept.slots.keys() - hosts.keys():
        missing = ', '.join(sorted(kept.slots.keys() - hosts.keys()))
        problem = f'Blazar does not know {missing}; add it as a host first'
    if problem:
        raise exception.ReservationError(
            reservation, f'cannot be adopted: {problem}'
        )
    shape = found.shape(reservation)
    now = timeutils.utcnow().replace(second=0, microsecond=0)
    end = until.astimezone(datetime.UTC).replace(tzinfo=None)
    lease = db_api.lease_create(
        {
            'name': f'adopted-{reservation}',
            'project_id': kept.projects[0],
            'start_date': now,
            'end_date': end,
            # Of the operator who added the host, as the owner of the lease
            # is not here to trust Blazar.
            'trust_id': hosts[next(iter(kept.slots))]['trust_id'],
            'status': status.lease.ACTIVE,
            'reservations': [
                {
                    'id': reservation,
                    'resource_type': instances.RESOURCE_TYPE,
                    'status': status.reservation.ACTIVE,
                }
            ],
            'events': [
                {
                    'event_type': 'start_lease',
                    'time': now,
                    'status': status.event.DONE,
                },
                {
                    'event_type': 'end_lease',
                    'time': end,
                    'status': status.event.UNDONE,
                },
            ],
        }
    )
    try:
        row = db_api.instance_reservation_create(
            {
                'reservation_id': reservation,
                'vcpus': shape.vcpus,
                'memory_mb': shape.ram,
                'disk_gb': shape.disk + shape.ephemeral,
                'amount': sum(kept.slots.values()),
                'affinity': None,
                'resource_properties': '',
                'flavor_id': reservation,
            }
        )
        db_api.reservation_update(reservation, {'resource_id': row['id']})
        for name, number in kept.slots.items():
            for _ in range(number):
                db_api.host_allocation_create(
                    {
                        'compute_host_id': hosts[name]['id'],
                        'reservation_id': reservation,
                    }
                )
    except Exception:
        db_api.lease_destroy(lease['id'])
        raise
