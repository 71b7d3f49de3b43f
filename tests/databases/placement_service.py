# SPDX-License-Identifier: Apache-2.0
"""Placement on a database server, behind gunicorn with several workers."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

import database_servers
from keystoneauth1 import adapter, session, token_endpoint
import requests
import sqlalchemy as sa

WORKERS = 4

_SECONDS = 300
_VERSION = 'placement 1.39'

_CONFIGURATION = """
[api]
auth_strategy = noauth2

[placement_database]
connection = {connection}
max_pool_size = 20
sync_on_startup = true

[placement]
allocation_conflict_retry_count = {retries}

[oslo_policy]
enforce_new_defaults = false
enforce_scope = false
"""


class PlacementService:
    """A running Placement.

    :param url: Its endpoint.
    :param database: Where its database is.
    """

    def __init__(self, url, database):
        self.url = url
        self.database = database
        self.session = session.Session(
            token_endpoint.Token(url, 'admin'), timeout=_SECONDS
        )

    def adapter(self):
        """Return an adapter as Nova's client for Placement uses it."""
        return adapter.Adapter(
            self.session, service_type='placement', raise_exc=False
        )

    def call(self, method, path, body=None):
        """Send a request."""
        return self.session.request(
            self.url + path,
            method,
            json=body,
            headers={'OpenStack-API-Version': _VERSION},
            raise_exc=False,
        )

    def provider(self, inventories):
        """Create a resource provider and return its uuid."""
        found = str(uuid.uuid4())
        path = '/resource_providers'
        body = {'name': found, 'uuid': found}
        assert self.call('POST', path, body).status_code == 200
        answer = self.call(
            'PUT',
            f'{path}/{found}/inventories',
            {
                'resource_provider_generation': 0,
                'inventories': {
                    name: {'total': total}
                    for name, total in inventories.items()
                },
            },
        )
        assert answer.status_code == 200, answer.text
        return found

    def usage(self, provider, name):
        """Return how much of a resource class is used."""
        path = f'/resource_providers/{provider}/usages'
        used = self.call('GET', path).json()['usages'][name]
        return used

    def consumers(self, provider):
        """Return the uuids of the consumers of a provider."""
        path = f'/resource_providers/{provider}/allocations'
        return set(self.call('GET', path).json()['allocations'])


class Scenes:
    """Keeps and restores the rows of a Placement's database.

    It takes the place of ``placement_backup``.
    """

    def __init__(self, database):
        self._engine = sa.create_engine(database)
        self._metadata = sa.MetaData()
        self._metadata.reflect(self._engine)

    def engine(self):
        """Return the engine of the database."""
        return self._engine

    def keep(self):
        """Return a copy of all rows."""
        with self._engine.connect() as connection:
            return {
                name: [
                    dict(row)
                    for row in connection.execute(sa.select(table)).mappings()
                ]
                for name, table in self._metadata.tables.items()
            }

    def put_back(self, kept):
        """Have these rows and nothing else."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql(
                database_servers.WITHOUT_FOREIGN_KEYS[
                    self._engine.dialect.name
                ]
            )
            for name, table in self._metadata.tables.items():
                connection.execute(sa.delete(table))
                if kept[name]:
                    connection.execute(sa.insert(table), kept[name])

    def close(self):
        """Close its connections."""
        self._engine.dispose()


@contextlib.contextmanager
def running(
    server,
    folder,
    retries=10,
    init='',
    packages=None,
    prefix=pathlib.Path(sys.prefix),
):
    """Run an empty Placement on a running database server.

    :param folder: An empty folder for its files.
    :param retries: ``[placement] allocation_conflict_retry_count``.
    :param init: SQL that MariaDB runs for each connection.
    :param packages: A folder to import from first.
    :param prefix: The environment that it is installed in.
    """
    name = f'placement_{uuid.uuid4().hex[:8]}'
    server.create_database(name, server.OPTIONS)
    url = server.url(name)
    if init:
        url = url.update_query_dict({'init_command': init})
    (folder / 'placement.conf').write_text(
        _CONFIGURATION.format(
            connection=url.render_as_string(False).replace('%', '%%'),
            retries=retries,
        ),
        'utf-8',
    )
    port = database_servers.free_port()
    found = PlacementService(f'http://{database_servers.HOST}:{port}', url)
    environment = {'PATH': os.defpath, 'OS_PLACEMENT_CONFIG_DIR': str(folder)}
    if packages:
        environment['PYTHONPATH'] = str(packages)
    # Only one process creates the tables.
    bin_folder = prefix / 'bin'
    subprocess.run(
        [
            bin_folder / 'placement-manage',
            f'--config-file={folder / "placement.conf"}',
            'db',
            'sync',
        ],
        env=environment,
        check=True,
        capture_output=True,
    )
    log = folder / 'placement.log'
    with log.open('w') as output:
        process = subprocess.Popen(
            [
                bin_folder / 'gunicorn',
                f'--timeout={_SECONDS}',
                # It would be in the home directory, one for all.
                '--no-control-socket',
                f'--workers={WORKERS}',
                '--threads=4',
                f'--bind={database_servers.HOST}:{port}',
                'placement.wsgi.api:application',
            ],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + _SECONDS
        while not _answers(found):
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError(log.read_text('utf-8'))
            time.sleep(0.1)
        yield found
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(_SECONDS)


def _answers(service):
    with contextlib.suppress(requests.ConnectionError):
        return requests.get(service.url, timeout=_SECONDS).ok
    return False
