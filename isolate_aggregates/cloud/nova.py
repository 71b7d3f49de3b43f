# SPDX-License-Identifier: Apache-2.0
"""Reads aggregates, flavors and compute nodes from Nova's API.

See the `Compute API reference <https://docs.openstack.org/api-ref/compute/>`_.
"""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import functools
from typing import Any
from urllib import parse

from novaclient import api_versions
from novaclient import exceptions as nova_exceptions
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud import servers
from isolate_aggregates.cloud.nova_api import INLINE_EXTRA_SPECS, NovaApi
from isolate_aggregates.request import Flavor
from isolate_aggregates.rest.connection import Connection

# Compute nodes tell their uuid since 2.53, servers whose cell is down are told
# of since 2.69, the scheduler hints of servers since 2.100.
_NODE_UUIDS = api_versions.APIVersion('2.53')
_DOWN_CELLS = api_versions.APIVersion('2.69')
_SCHEDULER_HINTS = api_versions.APIVersion('2.100')

_PAGE = 1000

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class ComputeNode:
    """A compute node.

    :param uuid: Its uuid, which is that of its root resource provider.
    :param name: Its hypervisor hostname, the name of the provider.
    :param host: The name of its compute service.
    """

    uuid: str
    name: str
    host: str


@dataclasses.dataclass(frozen=True)
class Server:
    """What a server was asked for with.

    :param flavor: Its flavor as it was then.
    :param image_id: Id of its image; None if it boots from a volume.
    :param project_id: Id of its project.
    :param scheduler_hints: Its scheduler hints, where Nova tells them.
    """

    flavor: Flavor
    image_id: str | None
    project_id: str
    scheduler_hints: Mapping[str, tuple[str, ...]]


class NovaReader:
    """Nova, as far as it is read here.

    :param connection: How to reach it.
    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first one and twice as long before each further.
    """

    def __init__(
        self, connection: Connection, retry_delay: float | None = None
    ) -> None:
        self._api = NovaApi(connection, retry_delay)

    def aggregates(self) -> list[Aggregate]:
        """Return all host aggregates.

        :raises ServiceTooOld: if Nova does not tell their uuids.
        :raises ServiceError: if Nova gives no usable answer.
        """
        nova = self._api.client
        with self._api.translated('the host aggregates'):
            return [
                Aggregate(
                    uuid=found.uuid,
                    name=found.name,
                    metadata=dict(found.metadata),
                    hosts=frozenset(found.hosts),
                    id=found.id,
                    availability_zone=found.availability_zone,
                )
                for found in nova.aggregates.list()
            ]

    def flavors(self) -> list[Flavor]:
        """Return all flavors, private ones too.

        :raises ServiceError: if Nova gives no usable answer.
        """
        with self._api.translated('the flavors'):
            return [self._flavor(found) for found in self._all_flavors()]

    def flavor(self, name: str) -> Flavor:
        """Return a flavor with its extra specs.

        It is looked up in the list: an address with the name in it may mean
        something else, as that of a flavor named ``detail`` does.

        :param name: Its id or its name; an id goes first.
        :raises NotFound: if there is none.
        :raises ServiceError: if Nova gives no usable answer.
        """
        with self._api.translated('the flavors'):
            flavors = list(self._all_flavors())
            found = [flavor for flavor in flavors if flavor.id == name] or [
                flavor for flavor in flavors if flavor.name == name
            ]
            if found:
                return self._flavor(found[0])
        raise exception.NotFound(
            'flavor', name, f'Nova at {self._api.endpoint}'
        )

    def server(self, server_id: str) -> Server:
        """Return what a server was asked for with.

        Nova tells the scheduler hints from 2.100 (Epoxy) on; an older one is
        warned of.

        :param server_id: Its id.
        :raises NotFound: if there is none.
        :raises ServiceTooOld: if Nova does not tell flavors as they were.
        :raises ServiceError: if Nova gives no usable answer.
        """
        nova = self._api.client
        if self._api.client.api_version < INLINE_EXTRA_SPECS:
            raise exception.ServiceTooOld(
                'Nova',
                self._api.endpoint,
                self._api.client.api_version.get_string(),
                f'{INLINE_EXTRA_SPECS.get_string()} (Rocky)',
                'reading the flavor a server was booted with',
            )
        with self._api.translated(f'server {server_id}'):
            try:
                found = nova.servers.get(parse.quote(server_id, safe=''))
            except nova_exceptions.NotFound:
                raise exception.NotFound(
                    'server', server_id, f'Nova at {self._api.endpoint}'
                ) from None
            return Server(
                flavor=servers.flavor_from(found.flavor),
                image_id=found.image['id'] if found.image else None,
                project_id=found.tenant_id,
                scheduler_hints=self._scheduler_hints(server_id),
            )

    @property
    def microversion(self) -> str:
        """The newest microversion that Nova offers.

        :raises ServiceTooOld: if Nova does not tell the uuids of aggregates.
        :raises ServiceError: if Nova gives no usable answer.
        """
        return str(self._api.newest.get_string())

    @property
    def tells_hints(self) -> bool:
        """Whether Nova tells the scheduler hints of servers."""
        return bool(self._api.newest >= _SCHEDULER_HINTS)

    def servers(self) -> Iterator[servers.PlacedServer]:
        """Yield the servers of all projects, as they are read.

        :raises ServiceTooOld: if Nova leaves out servers that it can not
            reach.
        :raises ServiceError: if Nova gives no usable answer.
        """
        offered = self._api.newest
        if offered < _DOWN_CELLS:
            raise exception.ServiceTooOld(
                'Nova',
                self._api.endpoint,
                offered.get_string(),
                f'{_DOWN_CELLS.get_string()} (Stein)',
                'listing the servers of cells that are down',
            )
        version = min(offered, _SCHEDULER_HINTS).get_string()
        return servers.listed(self._api.direct, version)

    def _scheduler_hints(self, server_id: str) -> dict[str, tuple[str, ...]]:
        if self._api.newest < _SCHEDULER_HINTS:
            LOG.warning(
                'Nova before 2.100 does not tell the scheduler hints of '
                'server %s; give them with --hint if it had any.',
                server_id,
            )
            return {}
        # novaclient does not know a microversion that new.
        path = f'/servers/{parse.quote(server_id, safe="")}'
        document = self._api.direct.get(path, _SCHEDULER_HINTS.get_string())
        return servers.hints_from(document['server'].get('scheduler_hints'))

    def compute_nodes(self) -> list[ComputeNode] | None:
        """Return all compute nodes; None if Nova does not tell their uuids.

        :raises ServiceError: if Nova gives no usable answer.
        """
        nova = self._api.client
        if self._api.client.api_version < _NODE_UUIDS:
            return None
        with self._api.translated('the compute nodes'):
            return [
                ComputeNode(
                    uuid=found.id,
                    name=found.hypervisor_hostname,
                    host=found.service['host'],
                )
                for found in paged(nova.hypervisors.list)
            ]

    def _all_flavors(self) -> Iterator[Any]:
        # None means public and private ones.
        return paged(
            functools.partial(self._api.client.flavors.list, is_public=None)
        )

    def _flavor(self, found: Any) -> Flavor:
        inline = self._api.client.api_version >= INLINE_EXTRA_SPECS
        extra_specs = found.extra_specs if inline else found.get_keys()
        return Flavor(
            name=found.name,
            id=found.id,
            vcpus=found.vcpus,
            ram=found.ram,
            disk=found.disk,
            ephemeral=found.ephemeral,
            # Until 2.75 no swap is an empty string.
            swap=int(found.swap or 0),
            extra_specs=dict(extra_specs),
        )


def paged(fetch: Callable[..., list[Any]]) -> Iterator[Any]:
    """Yield all items of a list that Nova gives out in pages.

    :param fetch: Returns the page after a ``marker``, of at most ``limit``
        items.
    :raises ValueError: if a page ends where it begins.
    """
    marker = None
    while page := fetch(marker=marker, limit=_PAGE):
        yield from page
        if page[-1].id == marker:
            raise ValueError(f'the page after {marker} ends with {marker}')
        # The server may have a smaller page than was asked for.
        marker = page[-1].id
