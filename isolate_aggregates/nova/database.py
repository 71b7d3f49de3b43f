# SPDX-License-Identifier: Apache-2.0
"""Translates errors of Nova and of its databases into ours."""

from collections.abc import Iterator
import contextlib

from nova import exception as nova_exception
from oslo_db import exception as db_exception
import sqlalchemy as sa

from isolate_aggregates import exception

# What reading a database can raise. oslo.db does not derive all of its errors
# from DBError, and loads the driver with the first connection.
ERRORS = (
    db_exception.DBError,
    db_exception.CantStartEngineError,
    sa.exc.SQLAlchemyError,
    nova_exception.NovaException,
    ImportError,
)


@contextlib.contextmanager
def translated(verb: str = 'read') -> Iterator[None]:
    """Translate the errors of using Nova's databases.

    :param verb: What is done with it, as a participle.

    :raises ServiceError: with the type of the error only, as the error may
        contain the statement and the address of the database.
    """
    try:
        yield
    except ERRORS as exc:
        problem = type(exc).__name__
        if isinstance(exc, db_exception.DBNonExistentTable):
            problem = (
                f'it has no table {exc.table}; run nova-manage api_db sync, '
                'and for a cell nova-manage db sync'
            )
        raise exception.ServiceError(
            "Nova's database", None, f'cannot be {verb}: {problem}'
        ) from exc
