# SPDX-License-Identifier: Apache-2.0
"""Neutron's API: the ports of a server, and the segments of networks.

See the `Networking API reference
<https://docs.openstack.org/api-ref/network/v2/>`_.
"""

from collections.abc import Mapping
from typing import Any
from urllib import parse

from isolate_aggregates import exception
from isolate_aggregates.cloud.servers import Port
from isolate_aggregates.request.spec import ResourceGroup
from isolate_aggregates.rest import client

_FOR_OPERATORS = frozenset({'resource_request', 'binding:host_id'})


class NeutronClient(client.ApiClient):
    """Neutron's API."""

    NAME = 'Neutron'
    TYPE = 'network'

    def ports(self, server_id: str) -> list[Port]:
        """Return the ports of a server.

        :raises ServiceDenied: if Neutron leaves out their resource requests,
            which only administrators can see.
        """
        path = f'/ports?{parse.urlencode({"device_id": server_id})}'
        ports = self._list(path, 'ports')
        # Administrators see these attributes even if no port can request
        # resources.
        if not all(port.keys() & _FOR_OPERATORS for port in ports):
            raise exception.ServiceDenied(
                'Neutron',
                self._service.endpoint,
                'does not show the resource requests of ports; use '
                'credentials '
                'with the admin role.',
            )
        return [self._service.parsed(path, _port, port) for port in ports]

    def segments(self, port: Port) -> list[str]:
        """Return the ids of the segments that a port can be on.

        Empty if the network is not a routed network.
        """
        if port.subnet:
            query = {'id': port.subnet}
        else:
            query = {'network_id': port.network}
        path = f'/subnets?{parse.urlencode(query)}'
        found = (
            each.get('segment_id') for each in self._list(path, 'subnets')
        )
        return [segment for segment in found if segment]

    def _list(self, path: str, what: str) -> list[dict[str, Any]]:
        path = f'{self._service.root("v2.0")}{path}'
        return self._service.parsed(
            path,
            lambda document: [dict(found) for found in document[what]],
            self._service.get(path),
        )


def _port(found: Mapping[str, Any]) -> Port:
    asked = found.get('resource_request') or {}
    groups = asked.get('request_groups')
    if groups is None:
        # The format before ports could have several request groups.
        groups = [{'id': found['id'], **asked}] if asked else []
    fixed = found.get('fixed_ips') or []
    return Port(
        id=found['id'],
        network=found['network_id'],
        subnet=fixed[0]['subnet_id'] if fixed else None,
        remote_managed=found.get('binding:vnic_type') == 'remote-managed',
        groups=tuple(
            ResourceGroup(
                group['id'],
                dict(group['resources']),
                frozenset(group.get('required', ())),
            )
            for group in groups
        ),
        same_subtree=frozenset(asked.get('same_subtree') or ()),
        device_profile=found.get('device_profile') or None,
    )
