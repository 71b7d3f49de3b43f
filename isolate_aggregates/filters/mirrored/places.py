# SPDX-License-Identifier: Apache-2.0
"""Availability zone, tenant, networks and host of a request, as in Nova.

See `Availability zones
<https://docs.openstack.org/nova/latest/admin/availability-zones.html>`_,
`Tenant isolation with Placement
<https://docs.openstack.org/nova/latest/admin/aggregates.html#tenant-isolation-with-placement>`_
and the request filters of these names in ``nova.scheduler.request_filter``.
The ``in_tree`` parameter restricts Placement to one tree, so that the limit
cannot drop the requested host; see the specification `Filter Allocation
Candidates by Provider Tree
<https://docs.openstack.org/placement/latest/specs/train/implemented/2005575-alloc-candidates-in-tree.html>`_.
"""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.constraints import (
    DropHosts,
    InTree,
    Refuse,
    Remark,
    Require,
)
from isolate_aggregates.filters.destination import Constraint
from isolate_aggregates.filters.mirrored.mirror import Mirror, Settings
from isolate_aggregates.request import Request

_TENANT = 'filter_tenant_id'
_TENANTS = ('scheduler', 'limit_tenants_to_placement_aggregate')
_TENANTS_REQUIRED = ('scheduler', 'placement_aggregate_required_for_tenants')
_ROUTED = ('scheduler', 'query_placement_for_routed_network_aggregates')


@dataclasses.dataclass(frozen=True)
class InZone:
    """The cause: the request names an availability zone.

    :param zone: The zone.
    """

    zone: str

    def __str__(self) -> str:
        return f'availability zone {self.zone} was requested'


@dataclasses.dataclass(frozen=True)
class ZoneWithoutAggregate:
    """The remark: no aggregate has the zone that the request names.

    :param zone: The zone.
    """

    zone: str

    def __str__(self) -> str:
        return (
            f'no aggregate has availability zone {self.zone}, so Nova '
            "requests no zone; if it is not the default zone, Nova's API "
            'refuses new servers in it'
        )


@dataclasses.dataclass(frozen=True)
class OwnAggregate:
    """The cause: the project has its own aggregates.

    :param project_id: The project.
    """

    project_id: str

    def __str__(self) -> str:
        return f'project {self.project_id} is limited to its aggregates'


@dataclasses.dataclass(frozen=True)
class NoOwnAggregate:
    """The cause: each project must have its own aggregates.

    :param project_id: The project.
    """

    project_id: str

    def __str__(self) -> str:
        return (
            f'project {self.project_id} has no aggregate with {_TENANT}, and '
            f'[scheduler] {_TENANTS_REQUIRED[1]} is true'
        )


@dataclasses.dataclass(frozen=True)
class OnNetwork:
    """The cause: the request names a routed network.

    :param network: The network, for messages.
    """

    network: str

    def __str__(self) -> str:
        return f'{self.network} is routed, and its segments are there'


@dataclasses.dataclass(frozen=True)
class Requested:
    """The cause: the request names a host.

    :param host: The name of the host.
    """

    host: str

    def __str__(self) -> str:
        return f'host {self.host} was requested'


@dataclasses.dataclass(frozen=True)
class UnknownHost:
    """The cause: the request names a host that does not exist.

    :param host: The requested name.
    """

    host: str

    def __str__(self) -> str:
        return f'there is no compute host named {self.host}'


@dataclasses.dataclass(frozen=True)
class SeveralNodes:
    """The cause: the requested host has several compute nodes.

    :param host: The name of the host.
    :param nodes: The number of nodes.
    """

    host: str
    nodes: int

    def __str__(self) -> str:
        return (
            f'host {self.host}, which has {self.nodes} compute nodes, was '
            'requested; Nova drops all other hosts after Placement has '
            'answered'
        )


def tenant_aggregate(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Constraint]:
    """Require an aggregate of the project, if it has any.

    Unlike in the host filter AggregateMultiTenancyIsolation, the whole value
    is the id of a single project here.
    """
    project = request.project_id
    if project is None:
        yield Remark(
            'no project was given; Nova limits a project to its aggregates'
        )
        return

    def is_own(aggregate: Aggregate) -> bool:
        return any(
            key.startswith(_TENANT) and value == project
            for key, value in aggregate.metadata.items()
        )

    found = aggregates.where(('tenant', project), is_own)
    if found:
        yield Require(found, OwnAggregate(project))
    elif settings[_TENANTS_REQUIRED]:
        yield Refuse(NoOwnAggregate(project))


def availability_zone(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Constraint]:
    """Require an aggregate of the availability zone."""
    zone = request.availability_zone
    if not zone:
        return
    found = aggregates.where(
        ('zone', zone), lambda aggregate: zone_of(aggregate) == zone
    )
    if found:
        yield Require(found, InZone(zone))
    else:
        yield Remark(ZoneWithoutAggregate(zone))


def routed_networks(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Constraint]:
    """Require an aggregate of each routed network."""
    known = aggregates.remember(
        ('by uuid',), lambda: {each.uuid: each for each in aggregates}
    )
    for network in request.networks:
        if network.aggregates is None:
            yield Remark(
                f'the segments of {network.name}, whose aggregates Nova '
                'requires, are not known'
            )
        elif network.broken:
            yield Refuse(network.broken)
        elif network.aggregates:
            found = tuple(
                # Neutron creates the aggregate in Placement before Nova's.
                known.get(uuid) or Aggregate(uuid, uuid)
                for uuid in network.aggregates
            )
            yield Require(found, OnNetwork(network.name))


def requested_host(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Constraint]:
    """Require the provider tree of the requested host."""
    host = request.requested_host
    if host is None:
        return
    if not host.providers:
        yield Refuse(UnknownHost(host.name))
    elif len(host.providers) > 1:
        # Placement accepts only one in_tree, so Nova queries all candidates.
        requested = str(Requested(host.name))
        yield DropHosts(
            lambda name: '' if name == host.name else requested,
            SeveralNodes(host.name, len(host.providers)),
        )
    else:
        yield InTree(host.providers[0], Requested(host.name))


MIRRORS = (
    Mirror(
        'tenant_aggregate',
        'require_tenant_aggregate',
        tenant_aggregate,
        options=(_TENANTS_REQUIRED,),
        switch=_TENANTS,
    ),
    Mirror(
        'availability_zone',
        'map_az_to_placement_aggregate',
        availability_zone,
    ),
    Mirror(
        'routed_networks',
        'routed_networks_filter',
        routed_networks,
        switch=_ROUTED,
    ),
    Mirror('requested_host', 'resources_from_request_spec', requested_host),
)
