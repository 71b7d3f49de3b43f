# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates from Nova's API database, in the scheduler.

Usually nothing has changed since the last read. So the database first makes a
text of each of the two tables and sends its digest. The texts follow only if a
digest has changed; they are sent whole, because drivers spend nearly all of
their time on rows. Nova's scheduler also caches aggregates in memory, but this
cache may be wrong after races (`bug 1542491
<https://launchpad.net/bugs/1542491>`_), so it is not used.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import functools
import math
import time
from typing import Any, NamedTuple

from nova.db.api import api as api_db
from nova.db.api import models
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging
from oslo_utils import importutils
import sqlalchemy as sa

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import ZONE
from isolate_aggregates.aggregates.collation import may_equal
from isolate_aggregates.nova import database
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

_AGGREGATES = models.Aggregate.__table__
_METADATA = models.AggregateMetadata.__table__
_HOSTS = models.AggregateHost.__table__

# Two queries take half the time of a join.
_ALL_METADATA = sa.select(
    _METADATA.c.aggregate_id, _METADATA.c.key, _METADATA.c.value
).order_by(_METADATA.c.id)
_ALL_AGGREGATES = sa.select(
    _AGGREGATES.c.id, _AGGREGATES.c.uuid, _AGGREGATES.c.name
).order_by(_AGGREGATES.c.id)
_MEMBERS = sa.select(_AGGREGATES.c.uuid, _HOSTS.c.host)
_MEMBERS_AMONG = _MEMBERS.select_from(
    _AGGREGATES.join(_HOSTS, _HOSTS.c.aggregate_id == _AGGREGATES.c.id)
).where(_HOSTS.c.host.in_(sa.bindparam('hosts', expanding=True)))
_SIZES = (
    sa.select(_AGGREGATES.c.uuid, sa.func.count())
    .select_from(
        _AGGREGATES.join(_HOSTS, _HOSTS.c.aggregate_id == _AGGREGATES.c.id)
    )
    .group_by(_AGGREGATES.c.uuid)
)

# The ends of columns and rows in a text: ASCII separators, which do not occur
# in names.
_COLUMN = '\x1f'
_ROW = '\x1e'
_COLUMNS = 3

# Part, number of rows, digest.
_DIGEST_COLUMNS = 3

# A single statement sees a consistent state. The rows are not sorted, as
# sorting takes longer than reading. If their order changes, they are parsed
# again, with the same result.
_MYSQL = """
SELECT 0 AS part, count(*) AS number, {start}group_concat(
    aggregate_id, :column, `key`, :column, value, :row SEPARATOR ''
    ){end} AS content FROM aggregate_metadata{where}
UNION ALL SELECT 1, count(*), {start}group_concat(
    id, :column, uuid, :column, name, :row SEPARATOR ''
    ){end} FROM aggregates
"""
_STANDARD = """
SELECT 0 AS part, count(*) AS number, {start}{concat}(
    CAST(aggregate_id AS TEXT) || :column || key || :column || value || :row,
    ''){end} AS content FROM aggregate_metadata{where}
UNION ALL SELECT 1, count(*), {start}{concat}(
    CAST(id AS TEXT) || :column || uuid || :column || name || :row,
    ''){end} FROM aggregates
"""
_STATEMENTS = {
    'mysql': _MYSQL,
    'mariadb': _MYSQL,
    'postgresql': _STANDARD.replace('{concat}', 'string_agg'),
    'sqlite': _STANDARD.replace('{concat}', 'group_concat'),
}
# What stands before and after a text to make its digest. SQLite has none and
# needs none, as nothing is sent.
_DIGESTS = {
    'mysql': ('sha2(', ', 256)'),
    'mariadb': ('sha2(', ', 256)'),
    'postgresql': ('encode(sha256(convert_to(', ", 'UTF8')), 'hex')"),
    'sqlite': ('', ''),
}
_WITH_TEXTS = (
    'SELECT part, number, {digest}, content FROM ({tables}) AS contents'
)
# Compared byte by byte, because a collation may take another key, which locks
# an aggregate, for that of the zone.
_NO_ZONES = {
    'mysql': f" WHERE `key` <> CAST('{ZONE}' AS BINARY)",
    'mariadb': f" WHERE `key` <> CAST('{ZONE}' AS BINARY)",
    'postgresql': f' WHERE key <> \'{ZONE}\' COLLATE "C"',
    'sqlite': f" WHERE key <> '{ZONE}' COLLATE BINARY",
}


def configure(conf: cfg.ConfigOpts) -> None:
    """Configure Nova's API database, in a program other than those of Nova.

    This is possible only before the database is used.
    """
    # As in nova-scheduler: if osprofiler is installed, Nova's database layer
    # reads its options.
    profiler = importutils.try_import('osprofiler.opts')
    if profiler:
        profiler.set_defaults(conf)
    api_db.configure(conf)


class Statements(NamedTuple):
    """What is sent to a kind of database.

    Both return part, number of rows and digest of each table; ``texts`` also
    returns its text.
    """

    digests: sa.TextClause
    texts: sa.TextClause


def statements(dialect: str, with_zones: bool) -> Statements:
    """Return what is sent to a kind of database, by its dialect."""
    start, end = _DIGESTS[dialect]
    statement = functools.partial(
        _STATEMENTS[dialect].format,
        where='' if with_zones else _NO_ZONES[dialect],
    )
    return Statements(
        *(
            sa.text(text).bindparams(column=_COLUMN, row=_ROW)
            for text in (
                statement(start=start, end=end),
                _WITH_TEXTS.format(
                    digest=f'{start}content{end}',
                    tables=statement(start='', end=''),
                ),
            )
        )
    )


# By dialect, and by whether availability zones are read.
_BY_DIALECT = {
    (dialect, with_zones): statements(dialect, with_zones)
    for dialect in _STATEMENTS
    for with_zones in (False, True)
}

# MySQL and MariaDB truncate texts to 1 KiB or 1 MiB by default. A higher limit
# does not affect Nova's use of the connection.
_RAISE = {
    dialect: sa.text(f'SET SESSION group_concat_max_len = {2**28}')
    for dialect in ('mysql', 'mariadb')
}
_RAISED = 'isolate_aggregates.group_concat_max_len'

Rows = list[tuple[Any, ...]]

# Databases limit the number of values in a statement.
_HOSTS_AT_ONCE = 500

# Seconds for which rows are read after a text could not be used.
_ROWS_PERIOD = 60.0


class NovaDatabaseSource:
    """The aggregates of the cloud whose nova-scheduler this is.

    The arguments are ignored, as Nova's own database connection is used.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, connect: Callable[[], Connection]
    ) -> None:
        self._with_zones = True
        # The digests of the last read, and the aggregates that it returned.
        self._last: tuple[Rows, Sequence[Aggregate]] = ([], ())
        # Rows are read until this time.
        self._texts_from = -math.inf

    def leave_out_zones(self) -> None:
        """Do not read availability zones, because no filter reads them.

        Often they are half of the metadata.
        """
        self._with_zones = False

    def aggregates(self) -> Sequence[Aggregate]:
        """Read all host aggregates, without their hosts.

        Returns the identical sequence if nothing has changed. Everything is
        read and compared, without relying on time stamps.
        """
        last_digests, last = self._last
        digests: Rows = []
        tables: list[Rows] = []
        if time.monotonic() >= self._texts_from:
            try:
                texts = _read_texts(self._with_zones, last_digests)
                if texts is None:
                    return last
                tables = [_split(*row[1:]) for row in texts]
                digests = [row[:_DIGEST_COLUMNS] for row in texts]
            except _NoTextsError as exc:
                self._do_without_texts(exc)
        # In this order, so that no metadata is missing if an aggregate changes
        # between the two statements.
        metadata, rows = tables or _read(_ALL_METADATA, _ALL_AGGREGATES)
        if not self._with_zones:
            metadata = [row for row in metadata if row[1] != ZONE]
        aggregates = _from_rows(metadata, rows, last)
        if aggregates == last:
            aggregates = last
        self._last = digests, aggregates
        return aggregates

    def _do_without_texts(self, reason: '_NoTextsError') -> None:
        now = time.monotonic()
        if now < self._texts_from:
            # Another thread has stored the same result.
            return
        self._texts_from = now + _ROWS_PERIOD
        LOG.warning(
            "Nova's API database is read row by row for the next %(period).0f "
            'seconds, which takes longer: %(reason)s.',
            {'period': _ROWS_PERIOD, 'reason': reason},
        )

    def aggregates_of(
        self, hosts: Iterable[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the uuids of the current aggregates of hosts, by host."""
        names = list(hosts)
        memberships: dict[str, set[str]] = {name: set() for name in names}
        for start in range(0, len(names), _HOSTS_AT_ONCE):
            some = names[start : start + _HOSTS_AT_ONCE]
            [rows] = _read(_MEMBERS_AMONG, hosts=some)
            for uuid, host in rows:
                for name in _matching(host, memberships):
                    memberships[name].add(uuid)
        return {host: frozenset(uuids) for host, uuids in memberships.items()}

    def sizes(self) -> Mapping[str, int]:
        """Read the number of hosts of each aggregate that has any, by uuid."""
        [rows] = _read(_SIZES)
        return dict(rows)


def _matching(host: str, names: Mapping[str, Any]) -> Iterable[str]:
    """Return the names that match a host in the database."""
    if host in names:
        return [host]
    # Databases that ignore case also match hosts whose names differ in case.
    # Nova no longer adds such hosts, but locks on existing ones must hold.
    return [name for name in names if may_equal(host, name.lower())]


class _NoTextsError(Exception):
    """The database cannot return its tables as texts."""


def _read_texts(with_zones: bool, last_digests: Rows) -> Rows | None:
    """Return the digest and the text of each table; None if nothing changed.

    Empty for unsupported databases.
    """
    with _connected() as connection:
        dialect = connection.dialect.name
        if dialect not in _STATEMENTS:
            return []
        reading = _BY_DIALECT[dialect, with_zones]
        try:
            # The setting lasts as long as the connection.
            if dialect in _RAISE and _RAISED not in connection.info:
                connection.execute(_RAISE[dialect])
                connection.info[_RAISED] = True
            if last_digests:
                digests = sorted(_rows(connection, reading.digests))
                if digests == last_digests:
                    return None
            return sorted(_rows(connection, reading.texts))
        except (db_exception.DBError, sa.exc.DBAPIError) as exc:
            # If the connection is lost, reading rows would fail too.
            if connection.invalidated:
                raise
            # The statement follows after the first line.
            reason = short(str(exc).partition('\n')[0])
            raise _NoTextsError(f'{type(exc).__name__}, {reason}') from exc


def _read(*statements: sa.Select[Any], **values: Any) -> list[Rows]:
    """Run the statements one after the other; return the rows of each."""
    with _connected() as connection:
        return [
            _rows(connection, statement, values) for statement in statements
        ]


@contextlib.contextmanager
def _connected() -> Iterator[sa.Connection]:
    """Connect to the database, outside any transaction."""
    try:
        # The reader engine may connect to a replica, which lags behind.
        engine = api_db.context_manager.writer.get_engine()
        with engine.connect() as connection:
            yield connection
    except (db_exception.CantStartEngineError, ImportError) as exc:
        # It is not set, or its driver is not installed.
        raise exception.ConfigError(
            '[api_database] connection', f'cannot be used: {short(exc)}.'
        ) from exc
    except database.ERRORS as exc:
        # The error may contain the statement and the database's address.
        raise exception.ServiceError(
            "Nova's API database",
            None,
            f'cannot be read: {type(exc).__name__}',
        ) from exc


def _rows(
    connection: sa.Connection,
    statement: sa.Executable,
    values: Mapping[str, Any] | None = None,
) -> Rows:
    with connection.execute(statement, values) as result:
        # Raw tuples of the driver suffice, as all columns are plain. They are
        # compared ten times as fast as SQLAlchemy's rows.
        return list(result.cursor.fetchall())


def _split(number: int, digest: str | None, text: str | None) -> Rows:
    """Return the rows of a table.

    A truncated row lacks its end. A row with too many columns contains the
    separator in a value. Without a digest a later change could not be noticed.

    :raises _NoTextsError: if the text is incomplete or ambiguous.
    """
    *lines, rest = (text or '').split(_ROW)
    rows = [tuple(line.split(_COLUMN)) for line in lines]
    if (
        rest
        or len(rows) != number
        or (number and not digest)
        or any(len(row) != _COLUMNS for row in rows)
    ):
        raise _NoTextsError(
            'its tables cannot be read completely as texts; the server may '
            'truncate them (max_allowed_packet, group_concat_max_len), or a '
            'name or a tag contains a control character'
        )
    return rows


def _from_rows(
    metadata: Rows, aggregates: Rows, previous: Iterable[Aggregate] = ()
) -> Sequence[Aggregate]:
    """Return the aggregates, sorted by id.

    :param previous: The previous aggregates; unchanged ones are reused.
    :raises ServiceError: if an aggregate has no uuid: a query to Placement
        cannot name it, and neither can Nova read it.
    """
    tags_by_id: dict[int, dict[str, str]] = {}
    for number, key, value in metadata:
        tags_by_id.setdefault(int(number), {})[key] = value
    previous_by_id = {aggregate.id: aggregate for aggregate in previous}
    result = []
    for number, uuid, name in sorted(
        (int(number), uuid, name) for number, uuid, name in aggregates
    ):
        if not uuid:
            raise exception.ServiceError(
                "Nova's API database",
                None,
                f'has the aggregate {name} (id {number}) without a uuid; '
                'store one in the column uuid of the table aggregates.',
            )
        tags = tags_by_id.get(number, {})
        aggregate = previous_by_id.get(number)
        if (
            aggregate is None
            or aggregate.uuid != uuid
            or aggregate.name != name
            or aggregate.metadata != tags
        ):
            aggregate = Aggregate(
                uuid=uuid,
                name=name,
                metadata=tags,
                id=number,
                availability_zone=tags.get(ZONE),
            )
        result.append(aggregate)
    return tuple(result)
