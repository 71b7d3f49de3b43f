# SPDX-License-Identifier: Apache-2.0
"""Servers, as Nova's API returns them.

See `Show Server Details
<https://docs.openstack.org/api-ref/compute/#show-server-details>`_ and `List
Servers Detailed
<https://docs.openstack.org/api-ref/compute/#list-servers-detailed>`_.
"""

from collections.abc import Iterator, Mapping
import dataclasses
from typing import TYPE_CHECKING, Any
from urllib import parse

from isolate_aggregates import exception
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.spec import ResourceGroup

if TYPE_CHECKING:
    from isolate_aggregates.rest import client

# Nova's default maximum page size; it can be configured lower.
_PAGE = 1000
_EVERYBODY = {'all_tenants': '1'}


@dataclasses.dataclass(frozen=True)
class Server:
    """The request that an existing server was created with.

    :param flavor: The flavor that it was created with.
    :param image_id: The id of its image; None if it boots from a volume.
    :param scheduler_hints: Its scheduler hints, if Nova provides them.
    :param availability_zone: The zone that was requested, and to which it is
        pinned.
    :param zone_known: Whether Nova provides that zone.
    :param image_properties: The image properties that Nova stores with the
        server; None if Nova does not provide them.
    :param host: Its compute service; None if it has no host.
    """

    flavor: Flavor
    image_id: str | None
    project_id: str
    scheduler_hints: Mapping[str, tuple[str, ...]]
    availability_zone: str | None = None
    zone_known: bool = True
    image_properties: Mapping[str, str] | None = None
    host: str | None = None


@dataclasses.dataclass(frozen=True)
class Port:
    """A port of a server.

    :param network: The id of its network.
    :param subnet: The id of the subnet of its first fixed address; None if it
        has no address.
    :param remote_managed: Whether its type is ``remote-managed``.
    :param groups: Its request groups.
    :param same_subtree: The ids of the groups that must be in one subtree.
    :param device_profile: The name of its device profile.
    """

    id: str
    network: str
    subnet: str | None = None
    remote_managed: bool = False
    groups: tuple[ResourceGroup, ...] = ()
    same_subtree: frozenset[str] = frozenset()
    device_profile: str | None = None


@dataclasses.dataclass(frozen=True)
class PlacedServer:
    """A server and its host.

    :param name: Its name, chosen by its owner.
    :param project_id: The id of its project; empty if unknown.
    :param status: Its status, for example ``ACTIVE``.
    :param host: Its compute service; None if it has no host.
    :param flavor: Its current flavor; None if unknown because its cell is
        down.
    :param image_id: The id of its image; None if it boots from a volume.
    :param scheduler_hints: Its scheduler hints, if Nova provides them.
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


@dataclasses.dataclass(frozen=True)
class Servers:
    """The servers of a cloud.

    :param placed: All servers, including those without a host.
    :param images: Their images by id, without deleted ones.
    :param hints_known: Whether Nova provides the scheduler hints.
    """

    placed: tuple[PlacedServer, ...]
    images: Mapping[str, Image]
    hints_known: bool


def asked_for(document: Mapping[str, Any]) -> Server:
    """Parse a server in the format of microversion 2.47 or later."""
    found = document['server']
    host = found.get('OS-EXT-SRV-ATTR:host')
    zone = found.get('OS-EXT-AZ:availability_zone')
    # Before 2.96, this is the zone of its host once it has a host.
    zone_known = 'pinned_availability_zone' in found or not (host and zone)
    image = found['image'] or {}
    properties = image.get('properties')
    return Server(
        flavor=_flavor(found['flavor']),
        image_id=_image_id(found),
        project_id=found['tenant_id'],
        scheduler_hints=hints_from(found.get('scheduler_hints')),
        availability_zone=found.get(
            'pinned_availability_zone', None if host else zone
        )
        or None,
        zone_known=zone_known,
        image_properties=None
        if properties is None
        else {key: str(value) for key, value in properties.items()},
        host=host,
    )


def hints_from(
    found: Mapping[str, Any] | None,
) -> dict[str, tuple[str, ...]]:
    """Return the scheduler hints that a server was created with."""
    return {
        key: (value,) if isinstance(value, str) else tuple(value)
        for key, value in (found or {}).items()
    }


def listed(
    nova: 'client.Service', microversion: str
) -> Iterator[PlacedServer]:
    """Yield the servers of all projects and cells.

    :param microversion: The microversion, at least 2.69: earlier ones leave
        out servers in cells that are down.
    :raises ServiceDenied: if the user may not list the servers of all
        projects.
    :raises ServiceError: if Nova gives no usable answer.
    """
    # Servers in cells that are down come first, and only without pagination.
    path = f'/servers?{parse.urlencode(_EVERYBODY)}'
    yield from nova.parsed(path, _out_of_reach, nova.get(path, microversion))
    query = {**_EVERYBODY, 'limit': str(_PAGE)}
    while True:
        path = f'/servers/detail?{parse.urlencode(query)}'
        page = nova.parsed(path, _page, nova.get(path, microversion))
        yield from page
        if not page:
            return
        marker = page[-1].id
        if marker == query.get('marker'):
            raise exception.ServiceError(
                'Nova',
                nova.endpoint,
                f'returned a page of servers after {marker} that ends with '
                f'{marker} again.',
            )
        query['marker'] = marker


def _out_of_reach(document: Mapping[str, Any]) -> list[PlacedServer]:
    """Return the servers in cells that are down, with few attributes."""
    return [
        PlacedServer(found['id'], found['id'], '', found['status'])
        for found in document['servers']
        if 'name' not in found
    ]


def _page(document: Mapping[str, Any]) -> list[PlacedServer]:
    return [_placed(found) for found in document['servers']]


def _placed(found: Mapping[str, Any]) -> PlacedServer:
    return PlacedServer(
        id=found['id'],
        name=found['name'],
        project_id=found['tenant_id'],
        status=found['status'],
        # Visible only to administrators; a KeyError reports its absence.
        host=found['OS-EXT-SRV-ATTR:host'],
        flavor=_flavor(found['flavor']),
        image_id=_image_id(found),
        scheduler_hints=hints_from(found.get('scheduler_hints')),
    )


def _flavor(found: Mapping[str, Any]) -> Flavor:
    return Flavor(
        name=found['original_name'],
        vcpus=found['vcpus'],
        ram=found['ram'],
        disk=found['disk'],
        ephemeral=found['ephemeral'],
        swap=found['swap'],
        extra_specs=dict(found['extra_specs']),
    )


def _image_id(found: Mapping[str, Any]) -> str | None:
    # An empty string if the server boots from a volume.
    return found['image']['id'] if found['image'] else None
