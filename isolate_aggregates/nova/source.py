# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates from Nova's API database, in the scheduler.

Both tables are read at once, each as one text: a driver spends nearly all of
its time on rows, and usually nothing has changed since the last read. Nova's
scheduler also holds aggregates in memory, but these may be wrong after races
(`bug 1542491 <https://launchpad.net/bugs/1542491>`_), so they are not used.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import math
import time
from typing import Any

from nova.db.api import api as api_db
from nova.db.api import models
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging
import sqlalchemy as sa

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.collation import may_equal
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

_AGGREGATES = models.Aggregate.__table__
_METADATA = models.AggregateMetadata.__table__
_HOSTS = models.AggregateHost.__table__

# Two narrow queries are read in half the time of one that joins them.
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

# What ends each column and each row of a text: characters that separate such
# in ASCII, and that nobody writes into names.
_COLUMN = '\x1f'
_ROW = '\x1e'
_COLUMNS = 3

# One statement sees one moment. It has no order, as to sort takes longer than
# to read: rows that come in another order than before are arranged once more,
# and mean the same.
_MYSQL = """
SELECT 0, count(*), group_concat(
    aggregate_id, :column, `key`, :column, value, :row SEPARATOR ''
    ) FROM aggregate_metadata
UNION ALL SELECT 1, count(*), group_concat(
    id, :column, uuid, :column, name, :row SEPARATOR ''
    ) FROM aggregates
"""
_STANDARD = """
SELECT 0, count(*), {concat}(
    CAST(aggregate_id AS TEXT) || :column || key || :column || value || :row,
    '') FROM aggregate_metadata
UNION ALL SELECT 1, count(*), {concat}(
    CAST(id AS TEXT) || :column || uuid || :column || name || :row,
    '') FROM aggregates
"""
_TEXTS = {
    dialect: sa.text(statement).bindparams(column=_COLUMN, row=_ROW)
    for dialect, statement in {
        'mysql': _MYSQL,
        'mariadb': _MYSQL,
        'postgresql': _STANDARD.format(concat='string_agg'),
        'sqlite': _STANDARD.format(concat='group_concat'),
    }.items()
}

# These cut a text off at 1 KiB or 1 MiB by default. To a connection of Nova it
# makes no difference.
_RAISE = {
    dialect: sa.text(f'SET SESSION group_concat_max_len = {2**28}')
    for dialect in ('mysql', 'mariadb')
}
_RAISED = 'isolate_aggregates.group_concat_max_len'

Rows = list[tuple[Any, ...]]

# Databases bound the number of values in one statement.
_HOSTS_AT_ONCE = 500

# For how many seconds rows are read after texts that could not be used.
_ROWS_PERIOD = 60.0


class NovaDatabaseSource:
    """The aggregates of the cloud whose nova-scheduler this is.

    :param conf: The configuration; not looked at.
    :param connect: Never called: the database is Nova's.
    :param clock: Returns the time in seconds.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        connect: Callable[[], Connection],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        # The texts read last, and the aggregates that they stand for.
        self._last: tuple[Rows, Sequence[Aggregate]] = ([], ())
        # No texts are asked for before this time.
        self._texts_from = -math.inf

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates, without their hosts, as they are now.

        The same sequence as last time if nothing has changed. That is found
        out by reading everything: no time stamp is trusted.

        :raises ServiceError: if the database cannot be read.
        """
        texts = self._texts()
        last_texts, last = self._last
        if texts and texts == last_texts:
            return last
        split = [_split(number, text) for _, number, text in texts]
        tables = [rows for rows in split if rows is not None]
        if len(tables) < len(texts):
            self._do_without_texts(
                'its tables are not whole as texts; the server may cut them '
                'off (max_allowed_packet, group_concat_max_len), or a name or '
                'a tag has a control character'
            )
            texts, tables = [], []
        # In this order: whatever happens between the two, an aggregate has
        # the metadata it had when they began, and none is missing.
        metadata, aggregates = tables or _read(_ALL_METADATA, _ALL_AGGREGATES)
        found = _from_rows(metadata, aggregates, last)
        if found == last:
            found = last
        self._last = texts, found
        return found

    def _texts(self) -> Rows:
        """Return both tables as texts; None if rows must be read."""
        if self._clock() < self._texts_from:
            return []
        try:
            return _read_texts()
        except _NoTextsError as exc:
            self._do_without_texts(str(exc))
            return []

    def _do_without_texts(self, reason: str) -> None:
        now = self._clock()
        if now < self._texts_from:
            # Another thread has found the same.
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
        """Return the uuids of the aggregates that hosts are in, as it is now.

        :param hosts: The names of the compute services.
        :raises ServiceError: if the database cannot be read.
        """
        names = list(hosts)
        found: dict[str, set[str]] = {name: set() for name in names}
        for start in range(0, len(names), _HOSTS_AT_ONCE):
            some = names[start : start + _HOSTS_AT_ONCE]
            [rows] = _read(_MEMBERS_AMONG, hosts=some)
            for uuid, host in rows:
                for name in _asked_for(host, found):
                    found[name].add(uuid)
        return {host: frozenset(uuids) for host, uuids in found.items()}


def _asked_for(host: str, names: Mapping[str, Any]) -> Iterable[str]:
    """Return the names that the database has found a host by."""
    if host in names:
        return [host]
    # Databases that ignore case find hosts that are written otherwise; Nova
    # adds none of these any more. Who is kept out of them stays so.
    return [name for name in names if may_equal(host, name.lower())]


class _NoTextsError(Exception):
    """The database is there, but does not return its tables as texts."""


def _read_texts() -> Rows:
    """Return the text of each table; nothing if it is not known how.

    :raises ServiceError: if the database cannot be reached.
    """
    with _connected() as connection:
        dialect = connection.dialect.name
        if dialect not in _TEXTS:
            return []
        # What is set stays for as long as a connection is open.
        if dialect in _RAISE and _RAISED not in connection.info:
            connection.execute(_RAISE[dialect])
            connection.info[_RAISED] = True
        try:
            return sorted(_rows(connection, _TEXTS[dialect]))
        except (db_exception.DBError, sa.exc.DBAPIError) as exc:
            # Without a connection rows cannot be read either.
            if connection.invalidated:
                raise
            # The statement comes after it.
            said = short(str(exc).partition('\n')[0])
            raise _NoTextsError(f'{type(exc).__name__}, {said}') from exc


def _read(*statements: sa.Select[Any], **values: Any) -> list[Rows]:
    """Return the rows of each statement, read one after the other."""
    with _connected() as connection:
        return [_rows(connection, one, values) for one in statements]


@contextlib.contextmanager
def _connected() -> Iterator[sa.Connection]:
    """Connect to the database, which has no other transaction for it."""
    try:
        # The reader's may be to a slave, which lags.
        engine = api_db.context_manager.writer.get_engine()
        with engine.connect() as connection:
            yield connection
    except (db_exception.DBError, sa.exc.SQLAlchemyError) as exc:
        # The text may hold the statement and the address of the database.
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
        # Tuples as the driver gives them: all columns are plain, and they are
        # compared in a tenth of the time of SQLAlchemy's.
        return list(result.cursor.fetchall())


def _split(number: int, text: str | None) -> Rows | None:
    """Return the rows of a table; None if the text is not all of them.

    A row that was cut off lacks its end, and one with a column too many has a
    character in it that ends columns.

    :param number: How many rows the table has.
    """
    *rows, rest = (text or '').split(_ROW)
    found = [tuple(row.split(_COLUMN)) for row in rows]
    if rest or len(found) != number:
        return None
    return found if all(len(row) == _COLUMNS for row in found) else None


def _from_rows(
    metadata: Rows, aggregates: Rows, known: Iterable[Aggregate] = ()
) -> Sequence[Aggregate]:
    """Return the aggregates in the order of their numbers.

    :param known: Aggregates from before, used again where they are the same.
    """
    held: dict[int, dict[str, str]] = {}
    for number, key, value in metadata:
        held.setdefault(int(number), {})[key] = value
    before = {aggregate.id: aggregate for aggregate in known}
    found = []
    for number, uuid, name in sorted(
        (int(number), uuid, name) for number, uuid, name in aggregates
    ):
        tags = held.get(number, {})
        same = before.get(number)
        if (
            same is None
            or same.uuid != uuid
            or same.name != name
            or same.metadata != tags
        ):
            same = Aggregate(
                uuid=uuid,
                name=name,
                metadata=tags,
                id=number,
                availability_zone=tags.get('availability_zone'),
            )
        found.append(same)
    return tuple(found)
