# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates from Nova's API database, in the scheduler.

One query of plain rows each time, without objects and without hosts. Nova's
scheduler also holds aggregates in memory, but those are known to go wrong
after races (`bug 1542491 <https://launchpad.net/bugs/1542491>`_), so they are
never looked at.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models
from oslo_config import cfg
from oslo_db import exception as db_exception
import sqlalchemy as sa

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud.connection import Connection

_AGGREGATES = models.Aggregate.__table__
_METADATA = models.AggregateMetadata.__table__
_HOSTS = models.AggregateHost.__table__

_ALL = (
    sa.select(
        _AGGREGATES.c.id,
        _AGGREGATES.c.uuid,
        _AGGREGATES.c.name,
        _METADATA.c.key,
        _METADATA.c.value,
    )
    .select_from(
        _AGGREGATES.outerjoin(
            _METADATA, _METADATA.c.aggregate_id == _AGGREGATES.c.id
        )
    )
    .order_by(_AGGREGATES.c.id, _METADATA.c.id)
)
_MEMBERS = sa.select(_AGGREGATES.c.uuid, _HOSTS.c.host)
_ALL_MEMBERS = _MEMBERS.select_from(
    _AGGREGATES.outerjoin(_HOSTS, _HOSTS.c.aggregate_id == _AGGREGATES.c.id)
)
_MEMBERS_AMONG = _MEMBERS.select_from(
    _AGGREGATES.join(_HOSTS, _HOSTS.c.aggregate_id == _AGGREGATES.c.id)
).where(_HOSTS.c.host.in_(sa.bindparam('hosts', expanding=True)))

# Databases bound the number of values in one statement.
_HOSTS_AT_ONCE = 500


class NovaDatabaseSource:
    """The aggregates of the cloud whose nova-scheduler this is.

    :param conf: The configuration; not looked at.
    :param connect: Never called: the database is Nova's.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, connect: Callable[[], Connection]
    ) -> None:
        self._last: tuple[list[Any], Sequence[Aggregate]] = ([], ())

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates, without their hosts, as they are now.

        The same sequence as last time if nothing has changed. That is found
        out by reading everything: no time stamp is trusted.

        :raises ServiceError: if the database can not be read.
        """
        rows = _read(_ALL)
        last_rows, last = self._last
        if rows != last_rows:
            last = _from_rows(rows)
            self._last = rows, last
        return last

    def hosts(self) -> Mapping[str, frozenset[str]]:
        """Return the names of the hosts of all aggregates, by uuid.

        :raises ServiceError: if the database can not be read.
        """
        found: dict[str, set[str]] = {}
        for uuid, host in _read(_ALL_MEMBERS):
            members = found.setdefault(uuid, set())
            if host is not None:
                members.add(host)
        return {uuid: frozenset(members) for uuid, members in found.items()}

    def aggregates_of(
        self, hosts: Iterable[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the uuids of the aggregates that hosts are in, as it is now.

        :param hosts: The names of the compute services.
        :raises ServiceError: if the database can not be read.
        """
        names = list(hosts)
        found: dict[str, set[str]] = {name: set() for name in names}
        for start in range(0, len(names), _HOSTS_AT_ONCE):
            some = names[start : start + _HOSTS_AT_ONCE]
            for uuid, host in _read(_MEMBERS_AMONG, {'hosts': some}):
                # Databases that ignore case find other hosts as well.
                if host in found:
                    found[host].add(uuid)
        return {host: frozenset(uuids) for host, uuids in found.items()}


def _read(
    statement: sa.Select[Any], values: Mapping[str, Any] | None = None
) -> list[Any]:
    try:
        return list(
            _execute(nova_context.get_admin_context(), statement, values)
        )
    except (db_exception.DBError, sa.exc.SQLAlchemyError) as exc:
        # The text may hold the statement and the address of the database.
        raise exception.ServiceError(
            "Nova's API database",
            None,
            f'can not be read: {type(exc).__name__}',
        ) from exc


@api_db.context_manager.reader
def _execute(
    context: nova_context.RequestContext,
    statement: sa.Select[Any],
    values: Mapping[str, Any] | None,
) -> Sequence[Any]:
    connection = context.session.connection()
    rows: Sequence[Any] = connection.execute(statement, values or {}).all()
    return rows


def _from_rows(rows: list[Any]) -> Sequence[Aggregate]:
    found: dict[int, tuple[str, str, dict[str, str]]] = {}
    for number, uuid, name, key, value in rows:
        metadata = found.setdefault(number, (uuid, name, {}))[2]
        if key is not None:
            metadata[key] = value
    return tuple(
        Aggregate(
            uuid=uuid,
            name=name,
            metadata=metadata,
            id=number,
            availability_zone=metadata.get('availability_zone'),
        )
        for number, (uuid, name, metadata) in found.items()
    )
