# SPDX-License-Identifier: Apache-2.0
"""Neutron's API: the ports of a server, and the segments of networks.

See the `Networking API reference
<https://docs.openstack.org/api-ref/network/v2/>`_.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import operator
from typing import Any
from urllib import parse

from isolate_aggregates import exception
from isolate_aggregates_tools import api_client
from isolate_aggregates_tools.compute.servers import Port
from isolate_aggregates_tools.request import ResourceGroup

# The owner of a port of a server begins with this.
_OF_SERVERS = 'compute:'

_ACCELERATORS = frozenset(
    {'accelerator-direct', 'accelerator-direct-physical'}
)

_FOR_OPERATORS = frozenset({'resource_request', 'binding:host_id'})


class NeutronClient(api_client.ApiClient):
    """Neutron's API."""

    NAME = 'Neutron'
    TYPE = 'network'

    def ports(self, server_id: str) -> list[Port]:
        """Return the ports of a server.

        :raises ServiceDenied: if Neutron leaves out their resource requests,
            which only administrators can see.
        """
        path, ports = self._list('ports', {'device_id': server_id})
        self._check_complete(ports)
        return [self._service.parsed(path, _port, port) for port in ports]

    def all_ports(self) -> dict[str, list[Port]]:
        """Return the ports of all servers with their segments, by server.

        :raises ServiceDenied: if Neutron leaves out their resource requests,
            which only administrators can see.
        """
        by_network: dict[str, list[str]] = {}
        by_subnet: dict[str, list[str]] = {}
        for subnet in self._paged('subnets'):
            segment = subnet.get('segment_id')
            segments = [segment] if segment else []
            by_subnet[subnet['id']] = segments
            by_network.setdefault(subnet['network_id'], []).extend(segments)
        ports: dict[str, list[Port]] = {}
        for port in self._paged('ports'):
            if not str(port.get('device_owner')).startswith(_OF_SERVERS):
                continue
            self._check_complete([port])
            parsed = self._service.parsed('/ports', _port, port)
            segments = (
                by_subnet.get(parsed.subnet, [])
                if parsed.subnet
                else by_network.get(parsed.network, [])
            )
            ports.setdefault(port['device_id'], []).append(
                dataclasses.replace(parsed, segments=tuple(segments))
            )
        return ports

    def _paged(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield all objects of a kind, page after page."""
        return self._service.paged(
            f'{self._root}/{kind}',
            lambda document: list(map(dict, document[kind])),
            operator.itemgetter('id'),
            {'sort_key': 'id', 'sort_dir': 'asc'},
        )

    def segments(self, port: Port) -> list[str]:
        """Return the ids of the segments that a port can be on.

        Empty if the network is not a routed network.
        """
        query = {'network_id': port.network}
        if port.subnet:
            query = {'id': port.subnet}
        _, subnets = self._list('subnets', query)
        return [s['segment_id'] for s in subnets if s.get('segment_id')]

    def _check_complete(self, ports: Iterable[Mapping[str, Any]]) -> None:
        # Administrators see these attributes even if no port can request
        # resources.
        if not all(port.keys() & _FOR_OPERATORS for port in ports):
            raise exception.ServiceDenied(
                'Neutron',
                self._service.endpoint,
                'does not show the resource requests of ports; use '
                'credentials with the admin role.',
            )

    def _list(
        self, kind: str, query: Mapping[str, str]
    ) -> tuple[str, list[dict[str, Any]]]:
        """Return the path of a request, for messages, and its objects."""
        path = f'{self._root}/{kind}?{parse.urlencode(query)}'
        return path, self._service.parsed(
            path,
            lambda document: list(map(dict, document[kind])),
            self._service.get(path),
        )

    @property
    def _root(self) -> str:
        return api_client.root(self._service, 'v2.0')


def _port(port: Mapping[str, Any]) -> Port:
    request = port.get('resource_request') or {}
    groups = request.get('request_groups')
    if groups is None:
        # The format before ports could have several request groups.
        groups = [{'id': port['id'], **request}] if request else []
    addresses = port.get('fixed_ips') or []
    return Port(
        id=port['id'],
        network=port['network_id'],
        subnet=addresses[0]['subnet_id'] if addresses else None,
        remote_managed=port.get('binding:vnic_type') == 'remote-managed',
        accelerator=port.get('binding:vnic_type') in _ACCELERATORS,
        groups=tuple(
            ResourceGroup(
                group['id'],
                dict(group['resources']),
                frozenset(group.get('required', ())),
            )
            for group in groups
        ),
        same_subtree=frozenset(request.get('same_subtree') or ()),
        device_profile=port.get('device_profile') or None,
    )
