# SPDX-License-Identifier: Apache-2.0
"""Answers about compute services and availability zones."""

import dataclasses
from typing import Any

import os_traits
from oslo_utils import uuidutils

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
        old = next(
            (s for s in services.values() if service_id(s.host) == key), None
        )
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
        for node in self._world.snapshot.providers:
            if node.host == service.host:
                self._placement.edit(
                    node.uuid, 'traits', _DISABLED, not service.is_enabled
                )

    def _service(
        self, number: int, each: ComputeService, minor: int
    ) -> dict[str, Any]:
        document: dict[str, Any] = {
            'id': service_id(each.host) if minor >= 53 else number,
            'binary': _BINARY,
            'host': each.host,
            'zone': self.zone(each.host),
            'status': status_of(each),
            'state': state_of(each),
            'updated_at': _MADE,
            'disabled_reason': each.reason or None,
        }
        if minor >= 11:
            document['forced_down'] = False
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


def service_id(host: str) -> str:
    """Return the uuid that is made up for a service."""
    return derived_uuid('service', host)


def status_of(service: ComputeService) -> str:
    """Return the status as in Nova's API."""
    return 'enabled' if service.is_enabled else 'disabled'


def state_of(service: ComputeService) -> str:
    """Return the state as in Nova's API."""
    return 'up' if service.is_up else 'down'
