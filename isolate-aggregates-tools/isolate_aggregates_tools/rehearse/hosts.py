# SPDX-License-Identifier: Apache-2.0
"""Answers about compute services, hypervisors and availability zones."""

from collections.abc import Iterable
import dataclasses
from typing import Any

import os_traits
from oslo_utils import strutils, uuidutils

from isolate_aggregates.derived import derived_uuid
from isolate_aggregates_tools.cloud.changes import altered
from isolate_aggregates_tools.compute.servers import ComputeService
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.rehearse import schemas
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Refused,
    Request,
    Unknown,
    check_query,
    page,
)
from isolate_aggregates_tools.rehearse.placement import HeldPlacement
from isolate_aggregates_tools.rehearse.world import World

_MADE = '2026-01-01T00:00:00.000000'
_BINARY = 'nova-compute'
_DISABLED = os_traits.COMPUTE_STATUS_DISABLED
# [DEFAULT] default_availability_zone, unless somebody has changed it.
_ZONE = 'nova'


class Hosts:
    """The hosts of the cloud that is held."""

    def __init__(self, world: World, placement: HeldPlacement) -> None:
        self._world = world
        self._placement = placement

    # Compute services; a cloud file has no others.

    def list_services(self, asked: Request) -> Answer:
        check_query(asked.query, ('host', 'binary'), 'services')
        if asked.query.get('binary', _BINARY) != _BINARY:
            raise Unknown(f'the services {asked.query["binary"]}')
        return Answer(
            200,
            {
                'services': [
                    self._service(number, each, asked.minor)
                    for number, each in enumerate(
                        self._world.services.values(), 1
                    )
                    if asked.query.get('host', each.host) == each.host
                ]
            },
        )

    def update_service(self, asked: Request, key: str) -> Answer:
        if asked.minor < 53:
            return self._act_on_service(asked, key)
        schemas.check(asked.body, schemas.SERVICE_UPDATE)
        if not uuidutils.is_uuid_like(key):
            raise Refused(400, f'invalid uuid {key}')
        services = self._world.services
        old = next((s for s in services.values() if _id(s.host) == key), None)
        if old is None:
            raise Refused(404, f'service {key} could not be found')
        body = asked.body
        if 'forced_down' in body:
            raise Unknown('what forcing a service down does')
        if 'status' not in body:
            raise Refused(400, 'no updates were requested')
        is_enabled = body['status'] == 'enabled'
        reason = body.get('disabled_reason', '')
        if is_enabled and reason:
            raise Refused(400, 'disabled_reason is invalid with enabled')
        if is_enabled and old.is_enabled and not old.reason:
            # Nova sees no difference.
            raise Refused(400, 'no updates were requested')
        new = self._changed(old, is_enabled, reason)
        number = list(services).index(old.host) + 1
        return Answer(
            200, {'service': self._service(number, new, asked.minor)}
        )

    def _act_on_service(self, asked: Request, action: str) -> Answer:
        schemas.check(asked.body, schemas.service_action(asked.minor))
        if action == 'force-down' and asked.minor >= 11:
            raise Unknown('what forcing a service down does')
        if action not in ('enable', 'disable', 'disable-log-reason'):
            raise Refused(404, 'unknown action')
        host, binary = asked.body['host'], asked.body['binary']
        reason = asked.body.get('disabled_reason')
        if action == 'disable-log-reason' and reason is None:
            raise Refused(400, 'missing disabled reason field')
        if binary != _BINARY:
            raise Refused(400, f'updating a {binary} service is not supported')
        if host not in self._world.services:
            raise Refused(404, f'host {host} could not be found')
        is_enabled = action == 'enable'
        # Only one of the actions takes the reason.
        reason = reason if action == 'disable-log-reason' else None
        self._changed(self._world.services[host], is_enabled, reason or '')
        document = {
            'host': host,
            'binary': _BINARY,
            'status': 'enabled' if is_enabled else 'disabled',
        }
        if reason:
            document['disabled_reason'] = reason
        return Answer(200, {'service': document})

    def _changed(
        self, old: ComputeService, is_enabled: bool, reason: str
    ) -> ComputeService:
        new = dataclasses.replace(old, is_enabled=is_enabled, reason=reason)
        if new == old:
            return old
        services = {**self._world.services, old.host: new}
        self._world.replace(services=tuple(services.values()))
        # nova-compute tells Placement, if it is up.
        if new.is_up:
            self._tell_placement(new)
        return new

    def _tell_placement(self, service: ComputeService) -> None:
        def marked(node: Provider) -> Provider:
            traits = node.traits - {_DISABLED}
            if not service.is_enabled:
                traits |= {_DISABLED}
            return dataclasses.replace(node, traits=traits)

        self._world.snapshot = altered(
            self._world.snapshot,
            'providers',
            lambda node: node.host == service.host,
            marked,
        )
        for node in self._nodes():
            if node.host == service.host:
                self._placement.edit(
                    node.uuid, 'traits', _DISABLED, not service.is_enabled
                )

    def _service(
        self, number: int, each: ComputeService, minor: int
    ) -> dict[str, Any]:
        document: dict[str, Any] = {
            'id': _id(each.host) if minor >= 53 else number,
            'binary': _BINARY,
            'host': each.host,
            'zone': self.zone(each.host),
            'status': _status(each),
            'state': _state(each),
            'updated_at': _MADE,
            'disabled_reason': each.reason or None,
        }
        if minor >= 11:
            document['forced_down'] = False
        return document

    # Hypervisors, whose ids are those of their resource providers.

    def list_hypervisors(self, asked: Request, detail: str | None) -> Answer:
        query = asked.query
        _check_version(asked, detail)
        check_query(
            query,
            ('limit', 'marker', 'hypervisor_hostname_pattern', 'with_servers'),
            'hypervisors',
        )
        pattern = query.get('hypervisor_hostname_pattern')
        if pattern is not None and ('limit' in query or 'marker' in query):
            raise Refused(400, 'paging with a pattern is not supported')
        found = [
            self._hypervisor(node, asked, detail)
            for node in self._nodes()
            if pattern is None or pattern in node.name
        ]
        if pattern is not None and not found:
            raise Refused(404, f'no hypervisor matches {pattern!r}')
        some = list(page(found, query))
        document: dict[str, Any] = {'hypervisors': some}
        if (
            pattern is None
            and some
            and len(some) == int(query.get('limit', 0))
        ):
            limit, last = query['limit'], some[-1]['id']
            href = f'{asked.url}{asked.path}?limit={limit}&marker={last}'
            document['hypervisors_links'] = [{'rel': 'next', 'href': href}]
        return Answer(200, document)

    def show_hypervisor(self, asked: Request, key: str) -> Answer:
        _check_version(asked, 'detail')
        check_query(asked.query, ('with_servers',), 'a hypervisor')
        if not uuidutils.is_uuid_like(key):
            raise Refused(400, f'invalid uuid {key}')
        for node in self._nodes():
            if node.uuid == key:
                document = self._hypervisor(node, asked, 'detail')
                return Answer(200, {'hypervisor': document})
        raise Refused(404, f'hypervisor {key} could not be found')

    def _nodes(self) -> Iterable[Provider]:
        return (node for node in self._world.snapshot.providers if node.host)

    def _hypervisor(
        self, node: Provider, asked: Request, detail: str | None
    ) -> dict[str, Any]:
        host = node.host or ''
        service = self._world.services.get(host) or ComputeService(host)
        document: dict[str, Any] = {
            'id': node.uuid,
            'hypervisor_hostname': node.name,
            'state': _state(service),
            'status': _status(service),
        }
        if detail:
            document |= {
                'hypervisor_type': 'QEMU',
                'hypervisor_version': 8000000,
                'host_ip': '127.0.0.1',
                'uptime': None,
                'service': {
                    'id': _id(host),
                    'host': host,
                    'disabled_reason': service.reason or None,
                },
            }
        asks = strutils.bool_from_string(asked.query.get('with_servers'))
        if asks:
            servers = self._world.snapshot.servers
            if servers is None:
                raise Unknown('the servers; the cloud file has none')
            here = servers.by_host.get(host, ())
            if here or asked.minor >= 75:
                document['servers'] = [
                    {'uuid': each.id, 'name': each.name} for each in here
                ]
        return document

    # Availability zones.

    def list_zones(self, asked: Request, detail: str | None) -> Answer:
        zones: dict[str, dict[str, Any]] = {}
        for each in self._world.services.values():
            zones.setdefault(self.zone(each.host), {})[each.host] = {
                _BINARY: {
                    'available': each.is_enabled,
                    'active': each.is_up,
                    'updated_at': _MADE,
                }
            }
        return Answer(
            200,
            {
                'availabilityZoneInfo': [
                    {
                        'zoneName': name,
                        'zoneState': {'available': True},
                        'hosts': hosts if detail else None,
                    }
                    for name, hosts in sorted(zones.items())
                ]
            },
        )

    def zone(self, host: str) -> str:
        """Return the availability zone of a host."""
        for one in self._world.snapshot.aggregates:
            if host in one.hosts and one.availability_zone:
                return one.availability_zone
        return _ZONE


def _check_version(asked: Request, detail: str | None) -> None:
    if asked.minor < 53 or (detail and asked.minor < 88):
        # Until 2.87, they tell of memory and disks what a file does not have.
        raise Unknown(f'hypervisors of microversion 2.{asked.minor}')


def _id(host: str) -> str:
    return derived_uuid('service', host)


def _status(service: ComputeService) -> str:
    return 'enabled' if service.is_enabled else 'disabled'


def _state(service: ComputeService) -> str:
    return 'up' if service.is_up else 'down'
