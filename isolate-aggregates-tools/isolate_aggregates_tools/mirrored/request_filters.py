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

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.constraints import (
    Cause,
    Constraint,
    Refuse,
    Require,
)
from isolate_aggregates.text import quoted
from isolate_aggregates_tools.mirrored.mirror import Mirror, Remark, Settings
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.request.constraints import DropHosts, InTree

_TENANT = 'filter_tenant_id'
_TENANTS = ('scheduler', 'limit_tenants_to_placement_aggregate')
_TENANTS_REQUIRED = ('scheduler', 'placement_aggregate_required_for_tenants')
_ROUTED = ('scheduler', 'query_placement_for_routed_network_aggregates')


def tenant_aggregate(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Constraint]:
    """Require an aggregate of the project, if it has any.

    Unlike in the host filter AggregateMultiTenancyIsolation, the whole value
    is the id of a single project here.
    """
    project = request.project_id
    if project is None and settings[_TENANTS_REQUIRED]:
        yield Refuse(
            Cause(
                'no-own-aggregate',
                'no project was given, so none with an aggregate, and '
                f'[scheduler] {_TENANTS_REQUIRED[1]} is true',
            )
        )
        return
    if project is None:
        yield Remark(
            Cause(
                'no-project',
                'no project was given; Nova limits a project to its '
                'aggregates',
            )
        )
        return

    def is_own(aggregate: Aggregate) -> bool:
        return any(
            key.startswith(_TENANT) and value == project
            for key, value in aggregate.metadata.items()
        )

    limit = aggregates.remember(
        ('tenant', project),
        lambda: Require(
            tuple(filter(is_own, aggregates.with_prefix(_TENANT))),
            Cause(
                'own-aggregates',
                f'project {project} is limited to its aggregates',
            ),
        ),
    )
    if limit.aggregates:
        yield limit
    elif settings[_TENANTS_REQUIRED]:
        yield Refuse(
            Cause(
                'no-own-aggregate',
                f'project {project} has no aggregate with {_TENANT}, and '
                f'[scheduler] {_TENANTS_REQUIRED[1]} is true',
            )
        )


def availability_zone(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Constraint]:
    """Require an aggregate of the availability zone."""
    zone = request.availability_zone
    if not zone:
        return
    members = aggregates.where(
        ('zone', zone), lambda aggregate: zone_of(aggregate) == zone
    )
    if members:
        yield Require(
            members,
            Cause(
                'requested-zone',
                f'availability zone {quoted(zone)} was requested',
            ),
        )
    else:
        yield Remark(
            Cause(
                'zone-without-aggregate',
                f'no aggregate has availability zone {quoted(zone)}, so Nova '
                "requests no zone; if it is not the default zone, Nova's API "
                'refuses new servers in it',
            )
        )


def routed_networks(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Constraint]:
    """Require an aggregate of each routed network."""
    by_uuid = aggregates.remember(
        ('by uuid',), lambda: {each.uuid: each for each in aggregates}
    )
    for network in request.networks:
        if network.aggregates is None:
            yield Remark(
                Cause(
                    'unknown-segments',
                    f'the segments of {network.name}, whose aggregates Nova '
                    'requires, are not known',
                )
            )
        elif network.broken:
            yield Refuse(Cause('broken-network', network.broken))
        elif network.aggregates:
            members = tuple(
                # Neutron creates the aggregate in Placement before Nova's.
                by_uuid.get(uuid) or Aggregate(uuid, uuid)
                for uuid in network.aggregates
            )
            yield Require(
                members,
                Cause(
                    'routed-network',
                    f'{network.name} is routed, and its segments are there',
                ),
            )


def requested_host(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Constraint]:
    """Require the provider tree of the requested host."""
    host = request.requested_host
    if host is None:
        return
    reason = f'host {host.name} was requested'
    nodes = len(host.providers)
    if not nodes:
        yield Refuse(
            Cause(
                'unknown-host',
                f'there is no compute host named {host.name}{host.suggestion}',
            )
        )
    elif nodes == 1:
        yield InTree(host.providers[0], Cause('requested-host', reason))
    else:
        # Placement accepts only one in_tree, so Nova queries all candidates.
        yield DropHosts(
            lambda name: '' if name == host.name else reason,
            Cause(
                'requested-host',
                f'host {host.name}, which has {nodes} compute nodes, was '
                'requested; Nova drops all other hosts after Placement has '
                'answered',
            ),
        )


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
