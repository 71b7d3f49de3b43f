# SPDX-License-Identifier: Apache-2.0
"""The databases of the control plane, in a MariaDB."""

import pathlib
import sys

import sqlalchemy as sa

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'support'))

import database_servers

_NAMES = (
    'keystone',
    'glance',
    'placement',
    'nova_api',
    'nova_cell0',
    'nova',
)


class Databases:
    """All databases, in a server that is found or started.

    :param settings: Says where.
    """

    def __init__(self, settings):
        self._given = settings.database_url
        self._server = database_servers.MariaDB(
            settings.state / 'mariadb', settings.port('mariadb')
        )

    def url(self, name):
        """Return where SQLAlchemy finds a database.

        :param name: The service that it belongs to.
        """
        url = self._url().set(
            database=_inside(name), query={'charset': 'utf8'}
        )
        return url.render_as_string(hide_password=False)

    def start(self):
        """Start the server; see that one that was given answers.

        :raises RuntimeError: if it does not.
        """
        if self._given is None:
            self._server.start()
            return
        try:
            self._execute()
        except sa.exc.OperationalError as exc:
            raise RuntimeError(
                f'The database of E2E_DATABASE_URL does not answer: {exc.orig}'
            ) from exc

    def is_running(self):
        """Return whether the server runs; one that was given is taken to."""
        return self._given is not None or self._server.pid is not None

    def stop(self):
        """Stop the server; in one that was given remove the databases."""
        if self._given is None:
            self._server.stop()
        else:
            self._execute('DROP DATABASE IF EXISTS {}')

    def create(self):
        """Create the databases, empty."""
        self._execute(
            'DROP DATABASE IF EXISTS {}',
            'CREATE DATABASE {} CHARACTER SET utf8',
        )

    def _url(self):
        if self._given is None:
            return self._server.url()
        return sa.make_url(self._given)

    def _execute(self, *statements):
        engine = sa.create_engine(self._url())
        with engine.connect() as connection:
            for name in _NAMES:
                for statement in statements:
                    connection.exec_driver_sql(statement.format(_inside(name)))
        engine.dispose()


def _inside(name):
    # A server that was given may have databases of these services already.
    return f'e2e_{name}'
