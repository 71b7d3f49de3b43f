# SPDX-License-Identifier: Apache-2.0
"""The cloud a question is asked of: a live one, or a snapshot.

Both answer the same few questions, so whoever asks need not know which it is.
"""

from collections.abc import Callable, Mapping
import contextlib
import functools
from typing import Protocol

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex, sources
from isolate_aggregates.cloud import load, save
from isolate_aggregates.cloud.glance import GlanceReader
from isolate_aggregates.cloud.glance_writer import GlanceWriter
from isolate_aggregates.cloud.keystone import KeystoneReader
from isolate_aggregates.cloud.nova import NovaReader, Server
from isolate_aggregates.cloud.nova_writer import NovaWriter
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.embedded import EmbeddedPlacement
from isolate_aggregates.query_limit import (
    Members,
    PlacementMembers,
    SnapshotMembers,
)
from isolate_aggregates.request import Flavor, Image, RequestedHost
from isolate_aggregates.rest.connection import Connection

# The source that only works inside nova-scheduler.
_IN_SCHEDULER = 'nova'


class Cloud(Protocol):
    """What a question needs of a cloud."""

    @property
    def index(self) -> AggregateIndex:
        """All host aggregates as of one moment."""

    @property
    def placement(self) -> PlacementClient:
        """The Placement of the cloud."""

    @property
    def provider_names(self) -> Mapping[str, str]:
        """Names of all resource providers, by uuid."""

    @property
    def snapshot(self) -> Snapshot:
        """The aggregates and resource providers as of one moment."""

    @property
    def flavors(self) -> tuple[Flavor, ...]:
        """All flavors."""

    @property
    def images(self) -> tuple[Image, ...]:
        """All images that can be seen."""

    def members(self, max_length: int) -> Members:
        """Return who is a member of what, asked with queries of a length."""

    def flavor(self, name: str) -> Flavor:
        """Return the flavor of an id or a name."""

    def image(self, name: str) -> Image:
        """Return the image of an id or a name."""

    def requested_host(self, name: str) -> RequestedHost:
        """Return the host of a name, with its compute nodes."""

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of the project of an id or a name."""

    def server(self, server_id: str) -> Server:
        """Return what an existing server was asked for with."""

    def close(self) -> None:
        """Give back whatever answering needed."""


class LiveCloud:
    """A cloud that is asked over its APIs.

    :param conf: A configuration with our options registered.
    :param connect: Returns the connection to the cloud.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, connect: Callable[[], Connection]
    ) -> None:
        self._conf = conf
        self._connect = connect

    @functools.cached_property
    def connection(self) -> Connection:
        """The connection to the cloud."""
        return self._connect()

    @functools.cached_property
    def nova(self) -> NovaReader:
        """Nova."""
        return NovaReader(self.connection)

    @functools.cached_property
    def glance(self) -> GlanceReader:
        """Glance."""
        return GlanceReader(self.connection)

    @functools.cached_property
    def nova_writer(self) -> NovaWriter:
        """What writes into Nova."""
        return NovaWriter(self.connection)

    @functools.cached_property
    def glance_writer(self) -> GlanceWriter:
        """What writes into Glance."""
        return GlanceWriter(self.connection)

    @functools.cached_property
    def placement(self) -> PlacementClient:
        """Placement."""
        return PlacementClient(self.connection.adapter('placement'))

    @functools.cached_property
    def index(self) -> AggregateIndex:
        """All host aggregates, read once."""
        name = self._conf[ia_conf.GROUP].aggregate_source
        if name == _IN_SCHEDULER:
            # The nova.conf of a scheduler; its database is not ours to read.
            name = 'novaclient'
        source = sources.load(self._conf, lambda: self.connection, name)
        return AggregateIndex(source.aggregates())

    @functools.cached_property
    def provider_names(self) -> Mapping[str, str]:
        """Names of all resource providers by uuid, read once."""
        return {
            provider['uuid']: provider['name']
            for provider in self.placement.resource_providers()
        }

    @functools.cached_property
    def snapshot(self) -> Snapshot:
        """The aggregates and resource providers, read once."""
        return Snapshot(
            origin='live cloud',
            aggregates=tuple(self.index),
            providers=save.take_providers(self.nova, self.placement),
        )

    @functools.cached_property
    def flavors(self) -> tuple[Flavor, ...]:
        """All flavors, private ones too, read once."""
        return tuple(self.nova.flavors())

    @functools.cached_property
    def images(self) -> tuple[Image, ...]:
        """All images that the credentials can see, read once."""
        return tuple(self.glance.images())

    def members(self, max_length: int) -> Members:
        """Return who is a member of what, asked of Placement when needed.

        :param max_length: The most bytes of a query to Placement.
        """
        return PlacementMembers(
            lambda: self.placement, lambda: self.index.hosts, max_length
        )

    def flavor(self, name: str) -> Flavor:
        """Return a flavor from Nova.

        :param name: Its id or its name; an id goes first.
        :raises NotFound: if there is none.
        """
        return self.nova.flavor(name)

    def image(self, name: str) -> Image:
        """Return an image from Glance.

        :param name: Its id or its name; an id goes first.
        :raises NotFound: if there is none.
        :raises NotUnique: if several images have the name.
        """
        return self.glance.image(name)

    def requested_host(self, name: str) -> RequestedHost:
        """Return a host with its compute nodes, none if it is unknown.

        A Nova too old to tell the uuids of its compute nodes is made up for
        by Placement, where a compute node's provider has its name.

        :param name: The name of a compute service or of a compute node.
        """
        nodes = self.nova.compute_nodes()
        if nodes is None:
            found = [
                provider['uuid']
                for provider in self.placement.resource_providers(name=name)
            ]
        else:
            found = [node.uuid for node in nodes if node.host == name] or [
                node.uuid for node in nodes if node.name == name
            ]
        return RequestedHost(name, tuple(found))

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of a project from Keystone.

        :param name: Its id or its name; an id goes first.
        :param domain: Id or name of its domain; None for any.
        :raises NotFound: if there is none.
        :raises NotUnique: if projects of several domains have the name.
        """
        return KeystoneReader(self.connection).project(name, domain)

    def server(self, server_id: str) -> Server:
        """Return what a server was asked for with.

        :param server_id: Its id.
        :raises NotFound: if there is none.
        """
        return self.nova.server(server_id)

    def close(self) -> None:
        """Do nothing; sessions need no closing."""


class SnapshotCloud:
    """A snapshot, with a real Placement made from it when it is asked.

    :param snapshot: The snapshot.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._exit = contextlib.ExitStack()
        self.index = snapshot.index
        self.flavors = snapshot.flavors
        self.images = snapshot.images
        self.flavor = snapshot.flavor
        self.image = snapshot.image
        self.requested_host = snapshot.requested_host

    @functools.cached_property
    def placement(self) -> PlacementClient:
        """An embedded Placement that holds the snapshot.

        :raises EmbeddedPlacementUnavailable: if it can not run.
        :raises CloudFileError: if it does not take the snapshot.
        """
        placement = self._exit.enter_context(EmbeddedPlacement())
        load.into_placement(self.snapshot, placement)
        return placement

    @property
    def provider_names(self) -> Mapping[str, str]:
        """Names of all resource providers, by uuid."""
        return {p.uuid: p.name for p in self.snapshot.providers}

    def members(self, max_length: int) -> Members:
        """Return who is a member of what in the snapshot.

        :param max_length: Not looked at; nothing has to be asked.
        """
        return SnapshotMembers(
            self.snapshot.providers, self.snapshot.index.hosts
        )

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id as it is: a snapshot has no projects.

        :param name: The id of the project.
        :param domain: Not looked at; an id says it all.
        """
        return name

    def server(self, server_id: str) -> Server:
        """Refuse: a snapshot has no servers.

        :param server_id: The id of the server.
        :raises NotFound: always.
        """
        raise exception.NotFound('server', server_id, self.snapshot.origin)

    def close(self) -> None:
        """Stop the embedded Placement."""
        self._exit.close()
