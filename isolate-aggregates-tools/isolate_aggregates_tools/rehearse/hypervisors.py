# SPDX-License-Identifier: Apache-2.0
"""Answers about hypervisors, whose ids are those of resource providers."""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import Any
from urllib import parse

import os_resource_classes as orc
from oslo_utils import strutils, uuidutils

from isolate_aggregates_tools.compute.servers import ComputeService, Server
from isolate_aggregates_tools.placement.provider import (
    Provider,
    nodes_by_host,
)
from isolate_aggregates_tools.rehearse import hosts
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Refused,
    Request,
    Unknown,
    check_query,
    has_more,
    page,
)
from isolate_aggregates_tools.rehearse.world import World

# The first microversions with pages, with objects in cpu_info, with uuids for
# ids, and without what Placement has.
_PAGED, _PARSED, _UUIDS, _PLACED = 33, 28, 53, 88
_PATTERN, _WITH_SERVERS = 'hypervisor_hostname_pattern', 'with_servers'
# What Nova tells only as far as a virt driver has reported it.
_LOAD = ('current_workload', 'disk_available_least')
_NOT_HELD = (
    'what virt drivers report of hypervisors (their types, versions, '
    'addresses, processors, load and least free disk)'
)


@dataclasses.dataclass(frozen=True)
class _Node:
    """A compute node.

    :param number: Its id before 2.53; that of its service is beside it.
    :param servers: The servers of its host; None if unknown.
    :param has_all: Whether it is the only node of its host.
    """

    number: int
    provider: Provider
    service: ComputeService
    service_number: int
    servers: Sequence[Server] | None
    has_all: bool

    def id(self, minor: int) -> str | int:
        return self.provider.uuid if minor >= _UUIDS else self.number

    def service_id(self, minor: int) -> str | int:
        if minor >= _UUIDS:
            return hosts.service_id(self.service.host)
        return self.service_number


class Hypervisors:
    """The compute nodes of the cloud that is held."""

    def __init__(self, world: World) -> None:
        self._world = world

    def index(self, asked: Request, detail: str | None) -> Answer:
        found = self._listed(asked, detail)
        query = asked.query
        if asked.minor < _PAGED or _PATTERN in query:
            return Answer(200, {'hypervisors': found})
        some = page(found, query)
        document: dict[str, Any] = {'hypervisors': some}
        if has_more(some, query):
            words = {**query, 'marker': some[-1]['id']}
            href = f'{asked.url}{asked.path}?{parse.urlencode(words)}'
            document['hypervisors_links'] = [{'rel': 'next', 'href': href}]
        return Answer(200, document)

    def _listed(
        self, asked: Request, detail: str | None
    ) -> list[dict[str, Any]]:
        query = asked.query
        pages = ('limit', 'marker') if asked.minor >= _PAGED else ()
        others = (_PATTERN, _WITH_SERVERS) if asked.minor >= _UUIDS else ()
        check_query(query, (*pages, *others), 'hypervisors')
        pattern = query.get(_PATTERN)
        if pattern is not None and ('limit' in query or 'marker' in query):
            raise Refused(400, 'paging with a pattern is not supported')
        found = [
            self._document(node, asked, detail)
            for node in self._nodes()
            if pattern is None or pattern in node.provider.name
        ]
        if pattern is not None and not found:
            raise Refused(404, f'no hypervisor matches {pattern!r}')
        return found

    def show(self, asked: Request, key: str) -> Answer:
        has_uuids = asked.minor >= _UUIDS
        known = (_WITH_SERVERS,) if has_uuids else ()
        check_query(asked.query, known, 'a hypervisor')
        if has_uuids and not uuidutils.is_uuid_like(key):
            raise Refused(400, f'invalid uuid {key}')
        for node in self._nodes():
            if str(node.id(asked.minor)) == key:
                document = self._document(node, asked, 'detail')
                return Answer(200, {'hypervisor': document})
        raise Refused(404, f'hypervisor {key} could not be found')

    def add_up(self, asked: Request) -> Answer:
        """Answer with the sums over enabled hosts, which Nova had once."""
        if asked.minor >= _PLACED:
            raise Refused(404, 'not found')
        self._note_empty(asked)
        found = [
            _resources(node)
            for node in self._nodes()
            if node.service.is_enabled
        ]
        sums = {'count': len(found), **dict.fromkeys(_LOAD, 0)}
        for each in found:
            for name, amount in each.items():
                # As Nova, which takes null for 0.
                sums[name] = sums.get(name, 0) + (amount or 0)
        return Answer(200, {'hypervisor_statistics': sums})

    def _note_empty(self, asked: Request) -> None:
        # This package reads none of these fields.
        if not asked.is_own:
            self._world.note_empty(_NOT_HELD)

    def _nodes(self) -> Iterator[_Node]:
        """Yield the compute nodes; Nova has none without a service."""
        snapshot = self._world.snapshot
        services = self._world.services
        numbers = {host: number for number, host in enumerate(services, 1)}
        by_host = nodes_by_host(snapshot.providers)
        servers = snapshot.servers.by_host if snapshot.servers else None
        nodes = (each for each in snapshot.providers if each.host)
        for number, node in enumerate(nodes, 1):
            host = node.host or ''
            if host in services:
                yield _Node(
                    number,
                    node,
                    services[host],
                    numbers[host],
                    None if servers is None else servers.get(host, []),
                    len(by_host[host]) == 1,
                )

    def _document(
        self, node: _Node, asked: Request, detail: str | None
    ) -> dict[str, Any]:
        minor = asked.minor
        document: dict[str, Any] = {
            'id': node.id(minor),
            'hypervisor_hostname': node.provider.name,
            'state': hosts.state_of(node.service),
            'status': hosts.status_of(node.service),
        }
        if detail:
            self._note_empty(asked)
            document |= {
                # Nova has no empty one.
                'hypervisor_type': 'unknown',
                'hypervisor_version': 0,
                'host_ip': None,
                'service': {
                    'id': node.service_id(minor),
                    'host': node.service.host,
                    'disabled_reason': node.service.reason or None,
                },
            }
            if minor >= _PLACED:
                document['uptime'] = None
            else:
                document |= dict.fromkeys(_LOAD) | _resources(node)
                document['cpu_info'] = {} if minor >= _PARSED else ''
        if strutils.bool_from_string(asked.query.get(_WITH_SERVERS)):
            if node.servers is None:
                raise Unknown('the servers; the cloud file has none')
            if node.servers or minor >= 75:
                document['servers'] = [
                    {'uuid': one.id, 'name': one.name} for one in node.servers
                ]
        return document


def _resources(node: _Node) -> dict[str, int | None]:
    """Return what Nova told of a node before 2.88.

    Nova reports its totals to Placement as they are, without an inventory
    where there is nothing. What is reserved counts as used.
    """
    vcpus, vcpus_used = _amounts(node.provider, orc.VCPU)
    _, pinned = _amounts(node.provider, orc.PCPU)
    memory, memory_used = _amounts(node.provider, orc.MEMORY_MB)
    disk, disk_used = _amounts(node.provider, orc.DISK_GB)
    is_counted = node.servers is not None and node.has_all
    return {
        'vcpus': vcpus,
        # Those of the pinned processors are not in the total.
        'vcpus_used': vcpus_used + pinned,
        'memory_mb': memory,
        'memory_mb_used': memory_used,
        'local_gb': disk,
        'local_gb_used': disk_used,
        'free_ram_mb': memory - memory_used,
        'free_disk_gb': disk - disk_used,
        'running_vms': len(node.servers or ()) if is_counted else None,
    }


def _amounts(provider: Provider, resource_class: str) -> tuple[int, int]:
    """Return the total and the used amount of a resource class."""
    inventory = provider.inventories.get(resource_class)
    if inventory is None:
        return 0, 0
    used = provider.usages.get(resource_class, 0)
    return inventory.total, inventory.reserved + used
