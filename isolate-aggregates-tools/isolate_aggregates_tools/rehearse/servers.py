# SPDX-License-Identifier: Apache-2.0
"""Answers about servers, which a rehearsal can only list.

They have what the cloud file has; the other fields are empty, so that clients
can parse the documents.
"""

from collections.abc import Iterable
from typing import Any

from oslo_utils import strutils

from isolate_aggregates_tools.compute.servers import Server, all_hints
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Refused,
    Request,
    Unknown,
    check_query,
    has_more,
    page,
)
from isolate_aggregates_tools.rehearse.hosts import Hosts
from isolate_aggregates_tools.rehearse.identity import own_project
from isolate_aggregates_tools.rehearse.world import World

_MADE = '2026-01-01T00:00:00Z'
# The fields of each microversion that a cloud file does not have.
_EMPTY: tuple[tuple[int, dict[str, Any]], ...] = (
    (
        1,
        {
            'OS-DCF:diskConfig': 'MANUAL',
            'OS-EXT-STS:power_state': 0,
            'OS-EXT-STS:task_state': None,
            'OS-SRV-USG:launched_at': None,
            'OS-SRV-USG:terminated_at': None,
            'accessIPv4': '',
            'accessIPv6': '',
            'addresses': {},
            'config_drive': '',
            'created': _MADE,
            'hostId': '',
            'key_name': None,
            'metadata': {},
            'os-extended-volumes:volumes_attached': [],
            'updated': _MADE,
            # Nova has no empty one.
            'user_id': 'unknown',
        },
    ),
    (
        3,
        {
            'OS-EXT-SRV-ATTR:hostname': '',
            'OS-EXT-SRV-ATTR:kernel_id': '',
            'OS-EXT-SRV-ATTR:launch_index': 0,
            'OS-EXT-SRV-ATTR:ramdisk_id': '',
            'OS-EXT-SRV-ATTR:reservation_id': '',
            'OS-EXT-SRV-ATTR:root_device_name': None,
            'OS-EXT-SRV-ATTR:user_data': None,
        },
    ),
    (9, {'locked': False}),
    (16, {'host_status': 'UNKNOWN'}),
    (19, {'description': None}),
    (26, {'tags': []}),
    (63, {'trusted_image_certificates': None}),
    (73, {'locked_reason': None}),
)
_NOT_HELD = 'addresses, metadata, keys and volumes of servers'
_KNOWN = (
    *('all_tenants', 'limit', 'marker', 'host', 'name', 'status', 'deleted'),
    *('project_id', 'tenant_id', 'flavor', 'image'),
)


class Servers:
    """The servers of the cloud that is held."""

    def __init__(self, world: World, hosts: Hosts) -> None:
        self._world = world
        self._hosts = hosts

    def list(self, asked: Request, detail: str | None) -> Answer:
        query = asked.query
        check_query(query, _KNOWN, 'servers')
        for key in ('name', 'flavor', 'image'):
            if key in query:
                # Nova takes some for regular expressions.
                raise Unknown(f'servers by {key}')
        if _is_true(query.get('deleted')):
            raise Unknown('deleted servers')
        project = query.get('project_id', query.get('tenant_id'))
        if not _is_true(query.get('all_tenants')):
            project = own_project(self._world.before.keystone).id
        found = [
            self._document(one, asked, detail)
            for one in self._placed
            if query.get('host', one.host) == one.host
            and project in (None, one.project_id)
            and query.get('status', one.status).upper() == one.status
        ]
        some = list(page(found, query))
        document: dict[str, Any] = {'servers': some}
        if has_more(some, query):
            words = {**query, 'marker': some[-1]['id']}
            text = '&'.join(f'{key}={word}' for key, word in words.items())
            href = f'{asked.url}{asked.path}?{text}'
            document['servers_links'] = [{'rel': 'next', 'href': href}]
        return Answer(200, document)

    def show(self, asked: Request, key: str) -> Answer:
        for one in self._placed:
            if one.id == key:
                document = self._document(one, asked, 'detail')
                if asked.minor >= 71:
                    document['server_groups'] = [*self._groups(one)]
                return Answer(200, {'server': document})
        raise Refused(404, f'instance {key} could not be found')

    def _groups(self, one: Server) -> Iterable[str]:
        servers = self._world.snapshot.servers
        if servers is None or servers.groups is None:
            raise Unknown('the server groups; the cloud file has none')
        return (each.id for each in servers.groups if one.id in each.members)

    @property
    def _placed(self) -> tuple[Server, ...]:
        servers = self._world.snapshot.servers
        if servers is None:
            raise Unknown('the servers; the cloud file has none')
        return servers.placed

    def _document(
        self, one: Server, asked: Request, detail: str | None
    ) -> dict[str, Any]:
        document: dict[str, Any] = {
            'id': one.id,
            'name': one.name,
            'links': [
                {'rel': rel, 'href': f'{asked.url}/servers/{one.id}'}
                for rel in ('self', 'bookmark')
            ],
        }
        if not detail:
            return document
        self._world.note_empty(_NOT_HELD)
        for minor, fields in _EMPTY:
            if asked.minor >= minor:
                document |= fields
        zone = self._hosts.zone(one.host) if one.host else ''
        document |= {
            'status': one.status,
            'tenant_id': one.project_id,
            'image': {'id': one.image_id, 'links': []} if one.image_id else '',
            'flavor': _flavor(one, asked.minor),
            'OS-EXT-AZ:availability_zone': zone,
            'OS-EXT-SRV-ATTR:host': one.host,
            'OS-EXT-SRV-ATTR:hypervisor_hostname': one.host,
            'OS-EXT-SRV-ATTR:instance_name': one.name,
            'OS-EXT-STS:vm_state': one.status.lower(),
        }
        if asked.minor >= 96:
            document['pinned_availability_zone'] = one.availability_zone
        if asked.minor >= 100:
            document['scheduler_hints'] = all_hints(one)
        return document


def _flavor(one: Server, minor: int) -> dict[str, Any]:
    flavor = one.flavor
    if flavor is None:
        raise Unknown(f'the flavor of server {one.id}')
    if minor < 47:
        return {'id': flavor.id, 'links': []}
    return {
        'original_name': flavor.name,
        'vcpus': flavor.vcpus,
        'ram': flavor.ram,
        'disk': flavor.disk,
        'ephemeral': flavor.ephemeral,
        'swap': flavor.swap,
        'extra_specs': dict(flavor.extra_specs),
    }


def _is_true(text: str | None) -> bool:
    # Nova takes all_tenants without a value for true.
    return text == '' or strutils.bool_from_string(text)
