# SPDX-License-Identifier: Apache-2.0
"""Finds services that are too old, and filters that are disabled."""

from collections.abc import Iterable, Iterator

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import filter_sets
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import naming
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.request import ComputeHost, Flavor
from isolate_aggregates_tools import errors, filter_keys
from isolate_aggregates_tools.answers.deciding import decided
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.diagnosis import unmapped_hosts
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.microversion import Feature
from isolate_aggregates_tools.placement.provider import trees
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.request import Request, constraints

# The data read from Nova, with the microversion that it needs.
_NOVA = (
    (
        '2.53',
        Severity.WARNING,
        'hosts are distinguished from other resource providers by name only',
    ),
    (
        '2.69',
        Severity.INFO,
        'the servers cannot be audited: those of a cell that is down would be '
        'left out silently',
    ),
)


def old_nova(cloud: AuditedCloud) -> Iterator[Finding]:
    """Report features for which Nova is too old."""
    if cloud.nova is None:
        return
    for microversion, severity, consequence in _NOVA:
        if _number(cloud.nova) < _number(microversion):
            yield Finding(
                'nova-too-old',
                severity,
                'Nova',
                f'offers microversions up to {cloud.nova}; '
                f'{microversion} is needed',
                consequence,
            )
            return


def old_placement(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find features that the filters need and Placement is too old for."""
    if cloud.placement is None:
        return
    feature = max(_features(cloud))
    if _number(feature.microversion) > _number(cloud.placement):
        yield Finding(
            'placement-too-old',
            Severity.ERROR,
            'Placement',
            f'offers microversions up to {cloud.placement}; {feature.purpose} '
            f'needs {feature.microversion} ({feature.release})',
            'it refuses the queries of nova-scheduler',
        )


def _features(cloud: AuditedCloud) -> Iterator[Feature]:
    """Yield the features that the queries of each flavor need.

    This includes queries for a given host.
    """
    host = ComputeHost('some host', ('some provider',))
    for flavor in cloud.snapshot.flavors or (Flavor('of any kind'),):
        for request in (
            cloud.requests.new(flavor),
            cloud.requests.new(flavor, requested_host=host),
        ):
            query = ResourceRequest()
            constraints.add(_concluded(cloud, request), query)
            yield query.needed


def _concluded(cloud: AuditedCloud, request: Request) -> Destination:
    try:
        destination = decided(request, cloud.index, cloud.pipeline).destination
    except errors.InvalidRequest:
        # Another check reports it, and Nova would send no query.
        return Destination()
    # A request of another project may not be refused.
    destination.refusals.clear()
    return destination


def isolation_off(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find locks that no enabled filter enforces."""
    off = filter_sets.unused_tags(cloud.filters, cloud.enabled, cloud.index)
    for unused in off:
        group, option = unused.switch
        yield _open(
            unused.aggregates,
            unused.why,
            f'set [{group}] {option} to true in nova.conf of nova-scheduler',
        )
    if cloud.requiring and not cloud.isolating:
        yield _open(
            cloud.requiring.values(),
            f'[{ia_conf.GROUP}] request_filters names no filter that checks '
            'required traits',
            f'add such a filter to [{ia_conf.GROUP}] request_filters in '
            'nova.conf of nova-scheduler',
        )


def _open(aggregates: Iterable[Aggregate], why: str, on: str) -> Finding:
    open_ = tuple(aggregates)
    return Finding(
        'isolation-off',
        Severity.ERROR,
        naming(open_),
        f'locked, but {why}',
        'any server may land there, if nova-scheduler has the same '
        'configuration',
        (
            Repair(
                text=f'{on}, which keeps out all servers without the key; or, '
                'if it has that already, give the audit its configuration '
                'with --config-file',
                is_tried=False,
            ),
        ),
        about=About.of(
            hosts=(host for a in open_ for host in a.hosts),
            aggregates=(a.name for a in open_),
        ),
    )


def prefix_in_one_list(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find reservation prefixes that are forbidden by default, not required.

    Any key with such a prefix opens every aggregate with that prefix.
    """
    for entry in cloud.filters:
        keys = filter_keys.of_reservations(entry.request_filter)
        for prefix in keys.forbidden:
            if prefix in keys.required:
                continue
            yield Finding(
                'prefix-in-one-list',
                Severity.WARNING,
                f'prefix {prefix}',
                f'[{ia_conf.SCHEDULER}] placement_req_required_member_prefix '
                'does not have it, but '
                'placement_req_default_forbidden_member_prefix does',
                'a flavor with any key of the prefix may use every '
                'aggregate of that prefix',
            )


def disabled(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts whose compute service is disabled."""
    spares = cloud.snapshot.spare_hosts
    for host in sorted(cloud.snapshot.disabled_hosts & cloud.nodes.keys()):
        is_spare = host in spares
        yield Finding(
            'service-disabled',
            Severity.INFO,
            f'host {host}',
            'its compute service is disabled'
            + (', as the host is reserved for a failure' if is_spare else ''),
            'no new server can land there',
            () if is_spare else (Repair(commands.enable_service(host)),),
            about=About.of(hosts=[host]),
        )


def down(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts whose compute service is down."""
    for host in sorted(cloud.snapshot.down_hosts & cloud.nodes.keys()):
        yield Finding(
            'service-down',
            Severity.WARNING,
            f'host {host}',
            'its compute service is down',
            'no new server can land there: Placement goes on offering '
            'the host, and ComputeFilter of nova-scheduler drops it',
            about=About.of(hosts=[host]),
        )


def without_inventory(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts that are up, but have nothing to offer in Placement.

    A single node of a host of bare metal may have none, for example without a
    resource class.
    """
    offering = {
        root.host
        for root, *children in trees(cloud.snapshot.providers).values()
        if any(each.inventories for each in (root, *children))
    }
    up = {s.host for s in cloud.snapshot.services or () if s.is_up}
    for host in sorted(cloud.nodes.keys() & up - offering):
        yield Finding(
            'host-without-inventory',
            Severity.WARNING,
            f'host {host}',
            'its compute service is up, but Placement has no inventory of '
            'its compute node',
            'no server can land there',
            (
                Repair(
                    text='look into the log of nova-compute for errors about '
                    'the inventory, take what cannot be applied out of its '
                    'provider.yaml, and restart it',
                    is_tried=False,
                ),
            ),
            about=About.of(hosts=[host]),
        )


def unmapped(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts that are in Placement, but mapped to no cell of Nova."""
    found = unmapped_hosts.unmapped(cloud.snapshot)
    for host, provider in found.items():
        yield Finding(
            'host-not-mapped',
            Severity.ERROR,
            f'host {host}',
            'Nova lists its compute service, but not its compute node, which '
            f'is resource provider {provider.name}: it is probably mapped to '
            'no cell',
            'nova-scheduler may choose it, and then new servers fail and keep '
            'their claim there; commands do not count on it',
            (
                Repair(
                    text='run "nova-manage cell_v2 discover_hosts", after '
                    'which servers that its locks let in may land there; or, '
                    'to remove the host, delete its compute service',
                    is_tried=False,
                ),
            ),
            about=About.of(hosts=[host]),
        )


def _number(microversion: str) -> tuple[int, ...]:
    return tuple(int(part) for part in microversion.split('.'))
