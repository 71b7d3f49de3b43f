# SPDX-License-Identifier: Apache-2.0
"""Lets Nova's fixtures have their databases on MariaDB or PostgreSQL.

``NOVA_DATABASE=mariadb`` or ``postgresql`` in the environment chooses that.
Each process has a server, which keeps its tables from test to test. Nova then
writes at the same time, as its services do; SQLite takes one writer.
"""

import importlib
import pathlib
import tempfile

import database_servers
from nova.db import migration
import sqlalchemy as sa

VARIABLE = 'NOVA_DATABASE'
# Not an import: the package has another attribute "nova".
_fixtures = importlib.import_module('nova.tests.fixtures.nova')
# Releases of Nova before 34 have none.
_SQLITE = getattr(_fixtures, '_use_file_backed_sqlite_with_wal', None)


class NovaDatabases:
    """The databases on one server, each with Nova's tables once it was used.

    :param kind: The kind of server.
    """

    def __init__(self, kind):
        server = database_servers.KINDS[kind]
        # Open to the user that the server runs as.
        self._folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self._folder.name)
        path.chmod(0o755)
        self._server = server(path / kind, database_servers.free_port())
        self._server.start()
        self._engines = {}

    def install(self):
        """Let Nova's fixtures use them."""
        databases = self

        def apply_schema(fixture):
            databases._make_tables(fixture.database, fixture.database)

        def cache_schema(fixture, connection):
            databases._make_tables(connection, 'main')

        _fixtures._use_file_backed_sqlite_with_wal = self._url
        _fixtures.Database._apply_schema = apply_schema
        _fixtures.CellDatabases._cache_schema = cache_schema
        _fixtures.DatabaseWriteLock._setUp = lambda fixture: None

    def close(self):
        """Stop the server."""
        for engine in self._engines.values():
            engine.dispose()
        self._server.stop()
        self._folder.cleanup()

    def _url(self, name):
        """Return where an empty database is.

        :param name: Which of Nova's it is. Placement's stays on SQLite.
        """
        if name == 'placement':
            return _SQLITE(name)
        database = f'nova_{name.replace("-", "_")}'
        if name in self._engines:
            self._clear(self._engines[name])
        else:
            self._server.create_database(database, self._server.OPTIONS)
        return self._server.url(database).render_as_string(False), database

    def _make_tables(self, name, kind):
        if name not in self._engines:
            migration.db_sync(database=kind)
            self._engines[name] = sa.create_engine(
                self._server.url(f'nova_{name.replace("-", "_")}'),
                poolclass=sa.pool.NullPool,
            )

    @staticmethod
    def _clear(engine):
        with engine.begin() as connection:
            connection.exec_driver_sql(
                database_servers.WITHOUT_FOREIGN_KEYS[engine.dialect.name]
            )
            for name in sa.inspect(connection).get_table_names():
                if name != 'alembic_version':
                    connection.execute(sa.delete(sa.table(name)))
