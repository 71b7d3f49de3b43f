# SPDX-License-Identifier: Apache-2.0
"""Servers, as Nova's API returns them.

See `Show Server Details
<https://docs.openstack.org/api-ref/compute/#show-server-details>`_ and `List
Servers Detailed
<https://docs.openstack.org/api-ref/compute/#list-servers-detailed>`_.
"""

from collections.abc import Collection, Iterator, Mapping
import dataclasses
import operator
import re
from typing import TYPE_CHECKING, Any
from urllib import parse

import os_traits

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image, placed
from isolate_aggregates.request.placed import Placed
from isolate_aggregates.rest import paging
from isolate_aggregates_tools.request import ResourceGroup

if TYPE_CHECKING:
    from isolate_aggregates.rest import client

_EVERYBODY = {'all_tenants': '1'}
_HOST = 'OS-EXT-SRV-ATTR:host'


@dataclasses.dataclass(frozen=True)
class Port:
    """A port of a server.

    :param subnet: The id of the subnet of its first fixed address; None if it
        has no address.
    :param accelerator: Whether an accelerator is attached to it.
    :param same_subtree: The ids of the groups that must be in one subtree.
    :param segments: The ids of the segments that it can be on, which are those
        of their resource providers; empty if the network is not a routed
        network, None if they are not read yet.
    """

    id: str
    network: str
    subnet: str | None = None
    remote_managed: bool = False
    accelerator: bool = False
    groups: tuple[ResourceGroup, ...] = ()
    same_subtree: frozenset[str] = frozenset()
    device_profile: str | None = None
    segments: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Server:
    """A server with its host, and the request that it was created with.

    :param name: Its name, chosen by its owner.
    :param host: Its compute service; None if it has no host.
    :param flavor: Its flavor, as it was when the server got it; None if
        unknown because its cell is down.
    :param image_id: The id of its image; None if it boots from a volume.
    :param image_properties: The image properties that Nova tells: only those
        that it knows, no traits; None if it tells none. Without properties,
        the image may still have some: see ``tools.server_images``.
    :param availability_zone: The zone that was requested, and to which it is
        pinned.
    :param ports: Its ports; None if they are not read.
    :param has_shares: Whether it has shares of Manila; None if not read.
    :param placed: What nova-scheduler has recorded when it was placed; None if
        there is no record, or Nova does not tell.
    """

    id: str
    name: str
    project_id: str
    status: str
    host: str | None = None
    flavor: Flavor | None = None
    image_id: str | None = None
    scheduler_hints: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )
    image_properties: Mapping[str, str] | None = None
    availability_zone: str | None = None
    zone_known: bool = True
    ports: tuple[Port, ...] | None = None
    has_shares: bool | None = None
    placed: Placed | None = None


@dataclasses.dataclass(frozen=True)
class ServerGroup:
    """A server group.

    :param policy: Its policy, such as ``anti-affinity``.
    :param members: The ids of its servers.
    :param max_per_host: How many of its servers a host may have if its policy
        is ``anti-affinity``.
    """

    id: str
    policy: str
    members: frozenset[str] = frozenset()
    max_per_host: int = 1


# In the reason why the service of a spare is disabled: instance-ha of Red Hat
# knows them by it by default (infra-operator, templates/instanceha), and
# people write it for Masakari, too.
_RESERVED = 'reserved'


@dataclasses.dataclass(frozen=True)
class ComputeService:
    """A compute service.

    :param reason: Why it is disabled; empty if no reason was given.
    :param cell: The name of its cell; empty if unknown, as Nova's API does not
        tell it.
    """

    host: str
    is_up: bool = True
    is_enabled: bool = True
    reason: str = ''
    cell: str = ''

    @property
    def is_spare(self) -> bool:
        """Whether it is disabled to be enabled when another host fails."""
        return not self.is_enabled and _RESERVED in self.reason


@dataclasses.dataclass(frozen=True)
class Servers:
    """The servers of a cloud, and what else decides where they can go.

    :param placed: All servers, including those without a host.
    :param images: Their images by id, without deleted ones.
    :param groups: The server groups of all projects; None if unknown.
    """

    placed: tuple[Server, ...]
    images: Mapping[str, Image]
    hints_known: bool
    groups: tuple[ServerGroup, ...] | None = None

    @lazy_property
    def by_host(self) -> Mapping[str, list[Server]]:
        """The servers of each host that has one."""
        by_host: dict[str, list[Server]] = {}
        for server in self.placed:
            if server.host:
                by_host.setdefault(server.host, []).append(server)
        return by_host


def original_request(document: Mapping[str, Any]) -> Server:
    """Parse a server in the format of microversion 2.47 or later."""
    # Only administrators see the host, which the request does not need.
    return _server({_HOST: None, **document['server']})


def hints_from(server: str, hints: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the scheduler hints of a server, and the record among them.

    :param hints: As in Nova's API and in a cloud file.
    :returns: Arguments for :class:`Server`.
    """
    if not hints:
        return {}
    given, record = placed.split(
        server,
        {
            key: (value,) if isinstance(value, str) else tuple(value)
            for key, value in (hints or {}).items()
        },
    )
    return {'scheduler_hints': given, 'placed': record}


def all_hints(server: Server) -> dict[str, list[str]]:
    """Return the scheduler hints of a server, as in Nova's API."""
    hints = {
        key: list(server.scheduler_hints[key])
        for key in server.scheduler_hints
    }
    if server.placed is not None:
        hints[placed.hint(server.id)] = placed.encode(server.placed)
    return dict(sorted(hints.items()))


def list_all(nova: 'client.Service', microversion: str) -> Iterator[Server]:
    """Yield the servers of all projects and cells.

    :param microversion: The microversion, at least 2.69: earlier ones leave
        out servers in cells that are down.
    :raises ServiceDenied: if the user may not list the servers of all
        projects.
    """
    yield from out_of_reach(nova, microversion)
    yield from nova.paged(
        '/servers/detail',
        page_of,
        operator.attrgetter('id'),
        _EVERYBODY,
        microversion,
    )


def may_have_shares(server: Server, traits: Collection[str]) -> bool:
    """Return whether Nova attaches shares to a server.

    As ``check_shares_supported`` in ``nova.virt.hardware``.

    :param traits: The traits of its host.
    """
    return os_traits.COMPUTE_STORAGE_VIRTIO_FS in traits and (
        os_traits.COMPUTE_MEM_BACKING_FILE in traits
        or bool(
            server.flavor and 'hw:mem_page_size' in server.flavor.extra_specs
        )
    )


def has_shares(
    nova: 'client.Service', server_id: str, microversion: str
) -> bool:
    """Return whether a server has shares of Manila.

    See `List Attached Shares
    <https://docs.openstack.org/api-ref/compute/#servers-with-shares-attachments-servers-shares>`_.

    :raises ServiceDenied: if the user may not list them.
    """
    path = f'/servers/{parse.quote(server_id, safe="")}/shares'
    return nova.parsed(
        path,
        lambda document: bool(document['shares']),
        nova.get(path, microversion),
    )


def list_groups(
    nova: 'client.Service', microversion: str
) -> Iterator[ServerGroup]:
    """Yield the server groups of all projects.

    See `List Server Groups
    <https://docs.openstack.org/api-ref/compute/#list-server-groups>`_.

    :raises ServiceDenied: if the user may not list those of all projects.
    """
    offset = 0
    while True:
        query = {
            'all_projects': 'True',
            'limit': paging.SIZE,
            'offset': offset,
        }
        path = f'/os-server-groups?{parse.urlencode(query)}'
        page = nova.parsed(path, _groups, nova.get(path, microversion))
        yield from page
        # Nova's maximum page size may be lower than the limit.
        offset += len(page)
        if not page:
            return


def list_services(
    nova: 'client.Service', microversion: str
) -> tuple[ComputeService, ...]:
    """Return the compute services.

    See `List Compute Services
    <https://docs.openstack.org/api-ref/compute/#list-compute-services>`_.
    """
    path = '/os-services?binary=nova-compute'
    return nova.parsed(path, _services, nova.get(path, microversion))


def out_of_reach(nova: 'client.Service', microversion: str) -> list[Server]:
    """Return the servers in cells that are down, with few attributes.

    Nova lists them first, and only without pagination.
    """
    path = f'/servers?{parse.urlencode(_EVERYBODY)}'
    return nova.parsed(path, _out_of_reach, nova.get(path, microversion))


def page_of(document: Mapping[str, Any]) -> list[Server]:
    """Parse a page of servers with details."""
    return [_server(server) for server in document['servers']]


def ids_of(nova: 'client.Service', name: str, microversion: str) -> list[str]:
    """Return the ids of the servers with a name, in all projects."""
    # Nova matches a regular expression, in most databases without regard to
    # upper and lower case.
    query = {**_EVERYBODY, 'name': f'^{re.escape(name)}$'}
    path = f'/servers?{parse.urlencode(query)}'

    def parse_page(document: Mapping[str, Any]) -> list[str]:
        return [
            server['id']
            for server in document['servers']
            # Servers in cells that are down have no name.
            if server.get('name') == name
        ]

    return nova.parsed(path, parse_page, nova.get(path, microversion))


def _out_of_reach(document: Mapping[str, Any]) -> list[Server]:
    """Return the servers in cells that are down, with few attributes."""
    return [
        Server(server['id'], server['id'], '', server['status'])
        for server in document['servers']
        if 'name' not in server
    ]


def _groups(document: Mapping[str, Any]) -> list[ServerGroup]:
    return [
        ServerGroup(
            group['id'],
            # Before 2.64, a list of one policy.
            group['policy'] if 'policy' in group else group['policies'][0],
            frozenset(group['members']),
            int(group.get('rules', {}).get('max_server_per_host', 1)),
        )
        for group in document['server_groups']
    ]


def _services(document: Mapping[str, Any]) -> tuple[ComputeService, ...]:
    return tuple(
        ComputeService(
            service['host'],
            service['state'] == 'up' and not service.get('forced_down'),
            service['status'] == 'enabled',
            service['disabled_reason'] or '',
        )
        for service in document['services']
    )


def _server(server: Mapping[str, Any]) -> Server:
    # A KeyError reports that the user may not see it.
    host = server[_HOST]
    zone = server.get('OS-EXT-AZ:availability_zone')
    # Before 2.96, this is the zone of its host once it has a host.
    zone_known = 'pinned_availability_zone' in server or not (host and zone)
    return Server(
        id=server['id'],
        name=server['name'],
        project_id=server['tenant_id'],
        status=server['status'],
        host=host,
        flavor=_flavor(server['flavor']),
        image_id=_image_id(server),
        **hints_from(server['id'], server.get('scheduler_hints')),
        image_properties=_image_properties(server),
        availability_zone=server.get(
            'pinned_availability_zone', None if host else zone
        )
        or None,
        zone_known=zone_known,
    )


def _image_properties(server: Mapping[str, Any]) -> dict[str, str] | None:
    properties = (server['image'] or {}).get('properties')
    if properties is None:
        return None
    return {key: str(value) for key, value in properties.items()}


def _flavor(flavor: Mapping[str, Any]) -> Flavor:
    return Flavor(
        name=flavor['original_name'],
        vcpus=flavor['vcpus'],
        ram=flavor['ram'],
        disk=flavor['disk'],
        ephemeral=flavor['ephemeral'],
        swap=flavor['swap'],
        extra_specs=dict(flavor['extra_specs']),
    )


def _image_id(server: Mapping[str, Any]) -> str | None:
    # An empty string if the server boots from a volume.
    return server['image']['id'] if server['image'] else None
