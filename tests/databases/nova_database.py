# SPDX-License-Identifier: Apache-2.0
"""Nova's API database, and what Nova's own code reads and writes there."""

import contextlib

import database_servers
from nova import context as nova_context
from nova import objects
from nova.db import migration
from nova.db.api import api as api_db
from nova.db.api import models
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.nova.source import NovaDatabaseSource
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.request import Request

KINDS = {'sqlite': None, **database_servers.KINDS}

_TABLES = (models.AggregateMetadata, models.AggregateHost, models.Aggregate)


class NovaDatabase:
    """Nova's API database.

    The configured replica has no tables, so queries to it fail.

    :param kind: The kind of database.
    :param folder: The directory of its files.
    :param server: The kind of server it is on; None for SQLite.
    """

    def __init__(self, kind, folder, server):
        self.kind = kind
        folder.mkdir(mode=0o755)
        self.server = server and server(folder, database_servers.free_port())
        if self.server is None:
            url = f'sqlite:///{folder}/nova_api.sqlite'
        else:
            self.server.start()
            self.server.create_database('nova_api')
            url = self.server.url('nova_api').render_as_string(False)
        self._facade = enginefacade.transaction_context()
        self._facade.configure(
            connection=url,
            slave_connection=f'sqlite:///{folder}/slave.sqlite',
            sqlite_synchronous=False,
        )
        with self._patched():
            migration.db_sync(database='api')

    def close(self):
        """Stop its server."""
        self._facade.dispose_pool()
        if self.server:
            self.server.stop()

    @contextlib.contextmanager
    def _patched(self):
        restore = api_db.context_manager.patch_factory(self._facade)
        try:
            yield
        finally:
            restore()

    @contextlib.contextmanager
    def in_use(self):
        """Let it be the one that Nova has, with no aggregates."""
        with self._patched():
            self.clear()
            yield self

    def clear(self):
        """Delete all aggregates."""
        with api_db.get_engine().begin() as connection:
            for table in _TABLES:
                connection.execute(sa.delete(table))

    def aggregate(self, name, metadata=None, hosts=()):
        """Let Nova create an aggregate."""
        made = objects.Aggregate(
            nova_context.get_admin_context(),
            name=name,
            metadata=dict(metadata or {}),
        )
        made.create()
        for host in hosts:
            made.add_host(host)
        return made

    def source(self):
        """Return a source that has read nothing yet."""
        return NovaDatabaseSource(None, None)

    def closed(self, *traits):
        """Return the aggregates that are closed to a request, by name."""
        specs = {f'trait:{trait}': 'required' for trait in traits}
        index = AggregateIndex(self.source().aggregates())
        constraints = IsolateAggregates()(
            Request(Flavor('f', extra_specs=specs)), index
        )
        forbidden = {uuid for one in constraints for uuid in one.uuids}
        return {a.name for a in index if a.uuid in forbidden}

    def closed_in_tree(self, *traits):
        """Return those that Nova's own filter would forbid, by name."""
        found = objects.AggregateList.get_non_matching_by_metadata_keys(
            nova_context.get_admin_context(),
            [f'trait:{trait}' for trait in traits],
            'trait:',
            value='required',
        )
        return {aggregate.name for aggregate in found}
