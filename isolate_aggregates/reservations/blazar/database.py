# SPDX-License-Identifier: Apache-2.0
"""The id of a Blazar's database.

Several Blazars may keep reservations in one Nova, and a Blazar may be started
with a wrong database by mistake. So each reservation records the id of its
database. The id is created once and stored in a separate table.
"""

from blazar.db.sqlalchemy import facade_wrapper
from oslo_db import exception as db_exceptions
from oslo_utils import uuidutils
import sqlalchemy as sa

_TABLE = sa.Table(
    'isolate_aggregates_database',
    sa.MetaData(),
    # A constant, so that the table has a single row.
    sa.Column('name', sa.String(16), primary_key=True),
    sa.Column('id', sa.String(36), nullable=False),
)
_NAME = 'database'


def database_id() -> str:
    """Return the id of Blazar's database; create it if there is none."""
    with facade_wrapper.session_for_write() as session:
        connection = session.connection()
        if not sa.inspect(connection).has_table(_TABLE.name):
            _TABLE.create(connection, checkfirst=True)
    value = _read()
    if value is None:
        try:
            with facade_wrapper.session_for_write() as session:
                session.execute(
                    _TABLE.insert().values(
                        name=_NAME, id=uuidutils.generate_uuid()
                    )
                )
        except db_exceptions.DBDuplicateEntry:
            # Another blazar-manager created it first.
            pass
        value = _read()
    return str(value)


def _read() -> str | None:
    with facade_wrapper.session_for_read() as session:
        value = session.execute(sa.select(_TABLE.c.id)).scalar()
        return None if value is None else str(value)
