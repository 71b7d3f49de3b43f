# SPDX-License-Identifier: Apache-2.0
"""Lists, adopts and ends the reservations in Nova that belong to Blazar.

Blazar never changes reservations that are missing in its database. For each of
them an operator decides whether to end it or to give it to Blazar again.
Reservations that are kept without Blazar can be given to Blazar too.
"""

from collections.abc import Mapping
import dataclasses
import datetime

from blazar import config as blazar_config
from blazar.db import api as db_api
from blazar.utils.openstack import nova as _nova_options  # noqa: F401
from blazar.utils.openstack import placement as _placement_options  # noqa: F401
from oslo_config import cfg

from isolate_aggregates import exception, text
from isolate_aggregates.cli import settings
from isolate_aggregates.reservations.blazar import leases
from isolate_aggregates.reservations.blazar.backend import Backend
from isolate_aggregates.reservations.blazar.connection import connect
from isolate_aggregates.reservations.blazar.database import database_id
from isolate_aggregates.reservations.blazar.record import BlazarRecord, End
from isolate_aggregates.reservations.reservation import Reservation


@dataclasses.dataclass(frozen=True)
class Kept:
    """A reservation in Nova that belongs to a Blazar.

    :param record: The record in its flavor.
    :param is_ours: Whether it belongs to the Blazar of the configuration.
    :param is_known: Whether it is in the database of that Blazar.
    :param projects: The ids of the projects with access to it.
    :param slots: The number of slots by hypervisor hostname.
    :param servers: The ids of its servers.
    :param without_blazar: The reservation, if it is kept without Blazar.
    """

    record: BlazarRecord
    is_ours: bool
    is_known: bool
    projects: tuple[str, ...]
    slots: Mapping[str, int]
    servers: tuple[str, ...]
    without_blazar: Reservation | None = None


def configure(path: str) -> cfg.ConfigOpts:
    """Load a configuration file of Blazar.

    The database and the services that it names are used from then on.

    :raises ConfigFilesError: if the file cannot be read.
    """
    conf: cfg.ConfigOpts = blazar_config.CONF
    try:
        conf([], project='blazar', default_config_files=[path])
    except cfg.Error as exc:
        raise settings.unreadable(path, exc) from exc
    return conf


def backend(path: str) -> Backend:
    """Return the backend of the Blazar with this configuration file.

    :raises ConfigFilesError: if the file cannot be read.
    """
    conf = configure(path)
    return Backend(
        connect(conf), conf.nova.aggregate_freepool_name, database_id()
    )


def everything(found: Backend) -> list[Kept]:
    """Return all reservations of all Blazars."""
    slots = found.hosts()
    return [_kept(found, record, slots) for record in found.records()]


def one(found: Backend, reservation: str) -> Kept:
    """Return a reservation of any Blazar, or one kept without Blazar.

    :raises NotFound: if there is none of that id.
    """
    for record in found.records():
        if record.reservation == reservation:
            return _kept(found, record, found.hosts())
    made = found.without_blazar(reservation)
    if made is None:
        raise exception.NotFound('reservation', reservation, 'Nova')
    return dataclasses.replace(
        _kept(found, BlazarRecord(reservation, ''), found.hosts()),
        without_blazar=made,
    )


def adopt(
    found: Backend,
    kept: Kept,
    until: datetime.datetime | None,
    now: datetime.datetime,
) -> None:
    """Give a reservation to the Blazar of the configuration.

    If it is not in the database of that Blazar, it gets a new lease. Servers
    do not change.

    :param until: The end of the new lease; None to keep the recorded end.
    :raises ReservationError: if it cannot be adopted.
    """
    name = kept.record.reservation
    made = kept.without_blazar
    if kept.record.end is not None or (made and made.has_ended(now)):
        raise exception.ReservationError(
            name, 'cannot be adopted, because it has already been ended'
        )
    if made is not None:
        _hand_over(found, kept, made, until, now)
    elif not kept.is_known and until is not None:
        if len(kept.projects) != 1:
            raise exception.ReservationError(
                name,
                'cannot be adopted: exactly one project must have access to '
                'it',
            )
        leases.write(
            leases.Lease(
                name,
                kept.projects[0],
                start=now.replace(second=0, microsecond=0),
                end=until,
                has_started=True,
                amount=sum(kept.slots.values()),
                affinity=None,
                shape=found.shape(name),
                slots=kept.slots,
            )
        )
    found.write(
        dataclasses.replace(kept.record, database=found.database, end=None)
    )
    if made is not None:
        found.forget_record(made)


def _hand_over(
    found: Backend,
    kept: Kept,
    made: Reservation,
    until: datetime.datetime | None,
    now: datetime.datetime,
) -> None:
    """Write a reservation that is kept without Blazar into its database.

    :param until: The end of the lease; None for the end of the reservation.
    """
    end = until or made.end
    problem = None
    if made.pending is not None:
        problem = 'it has a pending change; reconcile it first'
    elif made.leaving:
        # Blazar would open the slots there again.
        problem = (
            f'it is leaving {text.listed(made.leaving)}; complete or cancel '
            'the move first'
        )
    elif end is None:
        problem = 'a lease of Blazar must have an end'
    if problem or end is None:
        raise exception.ReservationError(
            made.id, f'cannot be adopted: {problem}'
        )
    leases.write(
        leases.Lease(
            made.id,
            made.project,
            start=made.start,
            end=end,
            # If nobody has started it since it was due, Blazar does so now.
            has_started=made.has_started(now)
            and made.project in kept.projects,
            amount=made.amount,
            affinity=made.affinity,
            shape=made.shape,
            slots=kept.slots,
        )
    )


def end(found: Backend, kept: Kept) -> str | None:
    """End a reservation as far as possible now; call again for the rest.

    :returns: What has to finish first, as a sentence; None if nothing is left.
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
