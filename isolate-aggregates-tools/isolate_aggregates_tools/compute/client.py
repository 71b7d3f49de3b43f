# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Nova's API.

It uses python-novaclient with the newest microversion that both Nova and this
module support. Requests that novaclient does not support are sent directly.
See the `Compute API reference <https://docs.openstack.org/api-ref/compute/>`_.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import dataclasses
import functools
import logging
import operator
import re
from typing import Any
from urllib import parse

from novaclient import api_versions
from novaclient import exceptions as nova_exceptions

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.compute import NovaApi
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor
from isolate_aggregates.rest import paging
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.compute import records, servers
from isolate_aggregates_tools.compute.records import FlavorRecord
from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    ServerGroup,
)

# The names of flavors that hold records of reservations, and are never booted:
# reservation:<id>.<incarnation>.<revision>,
# reservation:history.<end>.<id>.<incarnation> and
# reservation:history.events.<id>.<incarnation>.<page>; see reservations.names.
_RECORD = re.compile(
    r'reservation:([0-9a-f-]{36}\.[0-9a-f]{8}\.[0-9]{8}'
    r'|history\.(?:[0-9]{8}T[0-9]{6}\.[0-9a-f-]{36}\.[0-9a-f]{8}'
    r'|events\.[0-9a-f-]{36}\.[0-9a-f]{8}\.[0-9]{4,}))'
)

# Nova without support for microversions.
_NO_MICROVERSIONS = api_versions.APIVersion('2.0')

# 2.41: uuids of aggregates; 2.61: flavors are listed with extra specs.
_AGGREGATE_UUIDS = api_versions.APIVersion('2.41')
INLINE_EXTRA_SPECS = api_versions.APIVersion('2.61')

# novaclient uses no newer microversion, as its requests here have not changed
# since.
_NEWEST = INLINE_EXTRA_SPECS

# 2.53: uuids of compute nodes; 2.64: rules of server groups; 2.69: servers in
# cells that are down; 2.97: shares of servers; 2.100: scheduler hints of
# servers.
_NODE_UUIDS = api_versions.APIVersion('2.53')
_GROUP_RULES = api_versions.APIVersion('2.64')
_DOWN_CELLS = api_versions.APIVersion('2.69')
_SHARES = api_versions.APIVersion('2.97')
_SCHEDULER_HINTS = api_versions.APIVersion('2.100')
# Releases 31 and 32 support up to 2.100, release 33 more, but less than this.
_RELEASE_34 = api_versions.APIVersion('2.104')

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class ComputeNode:
    """A compute node.

    :param uuid: Its uuid, which is also that of its root resource provider.
    :param name: Its hypervisor hostname, which is also the provider's name.
    """

    uuid: str
    name: str
    host: str


class NovaClient(NovaApi):
    """Nova's API, as far as commands use it.

    Every method raises ServiceTooOld if Nova does not provide the uuids of
    aggregates.
    """

    @lazy_property
    def newest(self) -> api_versions.APIVersion:
        """The newest microversion that Nova supports."""
        with self.translated('its versions'):
            current = super().client.versions.get_current()
            if current is None:
                # novaclient raises this for a 401.
                raise nova_exceptions.Unauthorized(
                    401, method='GET', url='its versions'
                )
            return api_versions.APIVersion(
                current.version or _NO_MICROVERSIONS.get_string()
            )

    @lazy_property
    def client(self) -> Any:
        """novaclient, with the microversion to use."""
        self.require(
            _AGGREGATE_UUIDS, 'Ocata', 'reading the uuids of aggregates'
        )
        nova = super().client
        nova.api_version = min(self.newest, _NEWEST)
        return nova

    def require(
        self, oldest: api_versions.APIVersion, release: str, purpose: str
    ) -> None:
        """Check that Nova supports a microversion.

        :param purpose: What needs it, for example "reading the flavors".
        """
        if self.newest < oldest:
            raise exception.ServiceTooOld(
                'Nova',
                self.direct.endpoint,
                None
                if self.newest == _NO_MICROVERSIONS
                else self.newest.get_string(),
                f'{oldest.get_string()} ({release})',
                purpose,
            )

    @property
    def releases(self) -> tuple[int, ...]:
        """The possible releases of Nova, oldest first.

        Releases older or newer than all known ones count as the oldest or
        newest known one.
        """
        return _releases(self.newest)

    # Aggregates.

    def set_metadata(
        self, aggregate: Aggregate, metadata: Mapping[str, str | None]
    ) -> None:
        """Set metadata of an aggregate; a value of None removes the key."""
        nova = self.client
        with self.translated(f'aggregate {aggregate.name}'):
            nova.aggregates.set_metadata(aggregate.id, dict(metadata))

    def remove_host(self, aggregate: Aggregate, service: str) -> None:
        """Remove a compute service from an aggregate, if it is in it.

        Nova removes it from the aggregate in Placement too.
        """
        nova = self.client
        with (
            self.translated(f'aggregate {aggregate.name}'),
            contextlib.suppress(nova_exceptions.NotFound),
        ):
            nova.aggregates.remove_host(aggregate.id, service)

    # Flavors.

    def flavors(self) -> list[Flavor]:
        """Return all flavors, including private ones.

        Flavors that only hold records of reservations are left out.
        """
        return self.flavors_and_records()[0]

    def flavors_and_records(self) -> tuple[list[Flavor], list[FlavorRecord]]:
        """Return the same, and all flavors that hold records of reservations.

        A Nova that does not show descriptions has none of these.
        """
        with self.translated('the flavors'):
            listed = self._all_flavors()
            flavors = {
                flavor.id: self._flavor(flavor)
                for flavor in listed
                if not _RECORD.fullmatch(flavor.name)
            }
            if self.client.api_version < INLINE_EXTRA_SPECS:
                return list(flavors.values()), []
            return list(flavors.values()), [
                FlavorRecord(
                    flavors.get(flavor.id)
                    or flavor_of(flavor, flavor.extra_specs),
                    flavor.description or '',
                )
                for flavor in listed
                if flavor.name == records.NAME + flavor.id
            ]

    def flavor(self, name: str) -> Flavor:
        """Return a flavor with its extra specs.

        It is looked up in the list of flavors, because a name in the URL could
        mean something else: ``/flavors/detail`` is the list itself.
        """
        with self.translated('the flavors'):
            flavors = self._all_flavors()
            matches = [flavor for flavor in flavors if flavor.id == name] or [
                flavor for flavor in flavors if flavor.name == name
            ]
            if matches:
                return self._flavor(matches[0])
        raise errors.NotFound(
            'flavor',
            name,
            f'Nova at {self.direct.endpoint}',
            [flavor.name for flavor in flavors],
        )

    def set_extra_specs(
        self, flavor: Flavor, extra_specs: Mapping[str, str]
    ) -> None:
        """Set extra specs of a flavor; other keys do not change."""
        with self.translated(f'flavor {flavor.name}'):
            self._resource(flavor).set_keys(dict(extra_specs))

    def unset_extra_spec(self, flavor: Flavor, key: str) -> None:
        """Remove one extra spec from a flavor, unless it is already gone."""
        with (
            self.translated(f'flavor {flavor.name}'),
            contextlib.suppress(nova_exceptions.NotFound),
        ):
            self._resource(flavor).unset_keys([key])

    def _all_flavors(self) -> list[Any]:
        # is_public=None lists public and private flavors.
        return paged(
            functools.partial(self.client.flavors.list, is_public=None)
        )

    def _flavor(self, flavor: Any) -> Flavor:
        inline = self.client.api_version >= INLINE_EXTRA_SPECS
        known = flavor_of(
            flavor, flavor.extra_specs if inline else flavor.get_keys()
        )
        if known.is_public:
            return known
        entries = self.client.flavor_access.list(flavor=flavor.id)
        return dataclasses.replace(
            known, projects=frozenset(entry.tenant_id for entry in entries)
        )

    def _resource(self, flavor: Flavor) -> Any:
        """Return a novaclient flavor without a request to Nova.

        Its id is quoted, because ids may contain any character.
        """
        manager = self.client.flavors
        return manager.resource_class(
            manager, {'id': parse.quote(flavor.id, safe='')}
        )

    # Compute nodes.

    def compute_nodes(self) -> list[ComputeNode] | None:
        """Return all compute nodes; None if Nova does not return uuids."""
        nova = self.client
        if self.newest < _NODE_UUIDS:
            return None
        with self.translated('the compute nodes'):
            return [
                ComputeNode(
                    uuid=hypervisor.id,
                    name=hypervisor.hypervisor_hostname,
                    host=hypervisor.service['host'],
                )
                for hypervisor in paged(nova.hypervisors.list)
            ]

    # Servers, without novaclient, which does not support 2.100.

    @property
    def tells_hints(self) -> bool:
        """Whether Nova provides the scheduler hints of servers."""
        return bool(self.newest >= _SCHEDULER_HINTS)

    def server(self, name: str) -> servers.Server:
        """Return the request that a server was created with.

        Logs a warning if Nova does not provide its scheduler hints.

        :param name: Its id or, if there is none, its name in any project.
        :raises NotUnique: if several servers have the name.
        :raises ServiceTooOld: if Nova does not return the flavor that the
            server was created with.
        """
        self.require(
            INLINE_EXTRA_SPECS,
            'Rocky',
            'reading the flavor a server was booted with',
        )
        server = self._server(name)
        if server is None:
            ids = servers.ids_of(self.direct, name, self.for_servers)
            if len(ids) > 1:
                raise errors.NotUnique('server', name, ids)
            server = self._server(ids[0]) if ids else None
        if server is None:
            raise errors.NotFound(
                'server', name, f'Nova at {self.direct.endpoint}'
            )
        if not self.tells_hints:
            LOG.warning(
                'Nova before microversion 2.100 does not show the scheduler '
                'hints of server %s; give them with --hint if it had any.',
                server.id,
            )
        return server

    def _server(self, server_id: str) -> servers.Server | None:
        """Return the server with an id; None if there is none."""
        path = f'/servers/{parse.quote(server_id, safe="")}'
        answer = self.direct.request(
            'GET', path, self.for_servers, accept=(200, 404)
        )
        if answer.status_code == 404:
            return None
        return self.direct.parsed(
            path, servers.original_request, self.direct.decode(answer, path)
        )

    def servers(self) -> Iterator[servers.Server]:
        """Yield the servers of all projects, while they are read.

        :raises ServiceTooOld: if Nova leaves out servers in cells that are
            down.
        """
        self.require(
            _DOWN_CELLS, 'Stein', 'listing the servers of cells that are down'
        )
        return servers.list_all(self.direct, self.for_servers)

    def has_shares(self, server_id: str) -> bool:
        """Return whether a server has shares of Manila."""
        return self.newest >= _SHARES and servers.has_shares(
            self.direct, server_id, str(_SHARES.get_string())
        )

    def server_groups(self) -> tuple[ServerGroup, ...]:
        """Return the server groups of all projects."""
        newest = min(self.newest, _GROUP_RULES)
        return tuple(
            servers.list_groups(self.direct, str(newest.get_string()))
        )

    def compute_services(self) -> tuple[ComputeService, ...]:
        """Return the compute services of all cells."""
        newest = min(self.newest, _DOWN_CELLS)
        return servers.list_services(self.direct, str(newest.get_string()))

    @property
    def for_servers(self) -> str:
        """The microversion for servers."""
        return str(min(self.newest, _SCHEDULER_HINTS).get_string())


def _releases(newest: api_versions.APIVersion) -> tuple[int, ...]:
    if newest >= _RELEASE_34:
        return (34,)
    if newest > _SCHEDULER_HINTS:
        return (33,)
    if newest == _SCHEDULER_HINTS:
        return (31, 32)
    return (31,)


def flavor_of(flavor: Any, extra_specs: Mapping[str, str]) -> Flavor:
    """Convert a flavor of novaclient."""
    return Flavor(
        name=flavor.name,
        id=flavor.id,
        vcpus=flavor.vcpus,
        ram=flavor.ram,
        disk=flavor.disk,
        ephemeral=flavor.ephemeral,
        # Before 2.75, no swap is an empty string.
        swap=int(flavor.swap or 0),
        extra_specs=dict(extra_specs),
        is_public=flavor.is_public,
    )


def paged(fetch: Callable[..., list[Any]]) -> list[Any]:
    """Return all items of a paginated list of novaclient.

    :param fetch: Returns the page after a ``marker``, with at most ``limit``
        items; novaclient does not return whether there are more.
    :raises ValueError: if a page ends with its own marker.
    """
    return paging.whole(
        lambda: paging.items(
            lambda marker: (fetch(marker=marker, limit=paging.SIZE), True),
            operator.attrgetter('id'),
        ),
        nova_exceptions.BadRequest,
    )
