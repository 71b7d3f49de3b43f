# SPDX-License-Identifier: Apache-2.0
"""Finds metadata of aggregates that has no effect."""

from collections.abc import Iterator

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import filter_sets, options
from isolate_aggregates.aggregates import domains
from isolate_aggregates.aggregates.aggregate import ZONE, zone_of
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.required_metadata import (
    HOST_FILTER,
    REQUEST_FILTER,
)
from isolate_aggregates.text import listed, named, plural, quoted
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.mirrored import acceptance, nova_image
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair

# Metadata of aggregates that AggregateCoreFilter, AggregateRamFilter and
# AggregateDiskFilter read.
_RATIOS = frozenset(
    f'{kind}_allocation_ratio' for kind in ('cpu', 'ram', 'disk')
)

_TENANT_FILTERS = frozenset({
    'isolate_tenants', 'tenant_aggregate', 'AggregateMultiTenancyIsolation',
})  # fmt: skip
_IMAGE_FILTER = 'AggregateImagePropertiesIsolation'


def ratios(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find allocation ratios, which Nova no longer reads of aggregates."""
    for aggregate in cloud.snapshot.aggregates:
        for key in sorted(aggregate.metadata.keys() & _RATIOS):
            if key in cloud.required_metadata:
                continue
            yield Finding(
                'tag-without-effect',
                Severity.INFO,
                f'aggregate {aggregate.name}',
                f'has {key}={aggregate.metadata[key]}, but the filter that '
                'read it was removed from Nova',
                'the ratio of its hosts is that of their inventories in '
                f'Placement, which nova-compute takes from [DEFAULT] {key}',
                (Repair(commands.unset(aggregate, key)),),
                about=About.of(
                    hosts=aggregate.hosts, aggregates=[aggregate.name]
                ),
            )


def unread(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find metadata that has a meaning, which no filter that is on reads."""
    if cloud.conf[options.HOST_FILTERS].enabled_filters is None:
        # It is not known which host filters run.
        return
    names = {entry.name for entry in cloud.pipeline.filters}
    foreign = [entry for entry in cloud.running if not entry.is_own]
    off = {
        aggregate.uuid
        for unused in filter_sets.unused_tags(
            cloud.filters, cloud.enabled, cloud.index
        )
        for aggregate in unused.aggregates
    }
    for aggregate in cloud.snapshot.aggregates:
        for key in sorted(aggregate.metadata):
            readers = _readers(cloud, key)
            if (
                not readers
                or readers & names
                or loading.may_read(foreign, key.lower())
                # Another check reports the option that is false.
                or aggregate.uuid in off
            ):
                continue
            yield Finding(
                'tag-unread',
                Severity.WARNING,
                f'aggregate {aggregate.name}',
                f'has {key}={aggregate.metadata[key]}, and no filter that is '
                f'on reads it: {listed(sorted(readers), None)} would',
                'the tag has no effect, if nova-scheduler has the same '
                'configuration',
                about=About.of(
                    hosts=aggregate.hosts, aggregates=[aggregate.name]
                ),
            )


def _readers(cloud: AuditedCloud, key: str) -> frozenset[str]:
    """Return the names of the filters that give a key its meaning."""
    if key.startswith(domains.TENANTS):
        return _TENANT_FILTERS
    if key == 'instance_type':
        return frozenset({'AggregateTypeAffinityFilter'})
    scheduler = cloud.conf[ia_conf.SCHEDULER]
    prefixes = (
        *scheduler.placement_req_required_member_prefix,
        *scheduler.placement_req_default_forbidden_member_prefix,
    )
    if key.startswith(prefixes):
        return frozenset({'reservation_prefix'})
    if key in cloud.required_metadata:
        return frozenset({HOST_FILTER, REQUEST_FILTER})
    if key in nova_image.KNOWN:
        return frozenset({_IMAGE_FILTER})
    return frozenset()


def leaking(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find image properties whose isolation other images or hosts escape.

    Nova's host filter compares a property only if both the image and the
    aggregates of the host have it.
    """
    if _IMAGE_FILTER not in {entry.name for entry in cloud.pipeline.filters}:
        return
    keys = {
        key
        for aggregate in cloud.snapshot.aggregates
        if aggregate.hosts
        for key in aggregate.metadata
        if key in nova_image.KNOWN
    }
    for key in sorted(keys):
        tagged = [
            each for each in cloud.snapshot.aggregates if key in each.metadata
        ]
        inside = {host for each in tagged for host in each.hosts}
        outside = cloud.nodes.keys() - inside
        images = cloud.snapshot.images
        bare = [image for image in images if key not in image.properties]
        held = [image for image in images if key in image.properties]
        leaks = []
        if bare:
            names = named('image', (quoted(image.name) for image in bare))
            leaks.append(f'{names} without it may use {listed(inside)}')
        if held and outside:
            names = named('image', (quoted(image.name) for image in held))
            leaks.append(f'{names} may use {listed(outside)} outside')
        if leaks:
            lock = commands.shown(commands.lock('AGGREGATE', 'CUSTOM_TRAIT'))
            yield Finding(
                'image-isolation-leaks',
                Severity.WARNING,
                f'metadata {key}',
                f'separates only images that have {key} from aggregates that '
                f'have another one: {"; ".join(leaks)}',
                f'{_IMAGE_FILTER} compares the property only where both have '
                'it',
                (
                    Repair(
                        text=f'{lock}, and require the trait in the images or '
                        'flavors that belong there: this lets only them use '
                        'the hosts, and keeps them there'
                    ),
                ),
                about=About.of(
                    hosts=inside,
                    aggregates=(each.name for each in tagged),
                    images=(image.name for image in (*bare, *held)),
                ),
            )


def default_zone(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find aggregates with the zone that Nova shows for hosts in none."""
    zone = cloud.conf.default_availability_zone
    having = [each for each in cloud.index if zone_of(each) == zone]
    inside = {host for each in having for host in each.hosts}
    zoned = {
        host
        for each in cloud.index
        if zone_of(each) is not None
        for host in each.hosts
    }
    outside = cloud.nodes.keys() - zoned
    others = (
        f'; {listed(outside)} {plural(len(outside), "is", "are")} shown in '
        'it, too, as in no aggregate with a zone'
        if outside
        else ''
    )
    for aggregate in having:
        command = commands.shown((commands.set_zone(aggregate, 'ZONE'),))
        yield Finding(
            'default-zone',
            Severity.WARNING,
            f'aggregate {aggregate.name}',
            f'has availability zone {quoted(zone)}, which is [DEFAULT] '
            f'default_availability_zone{others}',
            f'servers that request the zone land on {listed(inside)} only, '
            'and those that requested it before on other hosts can move '
            'nowhere else',
            (
                Repair(
                    text='when no server is on its hosts, as Nova refuses it '
                    f'otherwise, run {command}; this lets servers that '
                    f'request zone {shell.quoted(zone)} use all hosts again'
                ),
            ),
            about=About.of(hosts=aggregate.hosts, aggregates=[aggregate.name]),
        )


def schedule_zone(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find that the zone of servers which request none has no host."""
    conf = cloud.conf
    zone = conf.default_schedule_zone
    refused = acceptance.refused_zone(
        zone,
        cloud.index,
        conf.default_availability_zone,
        conf.internal_service_availability_zone,
    )
    if refused:
        others = listed(refused.others)
        instead = f'set it to one of {others}, or ' if others else ''
        yield Finding(
            'schedule-zone-empty',
            Severity.ERROR,
            'option [DEFAULT] default_schedule_zone',
            f'is {quoted(zone)}, and {refused.why("that availability zone")}',
            'nova-api refuses servers that request no zone with status 400, '
            'if it has the same configuration',
            (
                Repair(
                    text=f'in nova.conf of nova-api, {instead}remove it, '
                    'which lets such servers use every zone',
                    is_tried=False,
                ),
            ),
        )


def zones(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find aggregates and hosts that have two availability zones."""
    for aggregate in cloud.snapshot.aggregates:
        field = aggregate.availability_zone
        tag = aggregate.metadata.get(ZONE, field)
        if field and tag != field:
            yield Finding(
                'two-zones',
                Severity.ERROR,
                f'aggregate {aggregate.name}',
                f'has availability zone {quoted(field)}, and {ZONE}='
                f'{quoted(str(tag))} in its metadata',
                'Nova has only one of them; here the metadata counts',
                (Repair((commands.set_zone(aggregate, str(tag)),)),),
                about=About.of(
                    hosts=aggregate.hosts, aggregates=[aggregate.name]
                ),
            )
    seen: set[str] = set()
    several: set[str] = set()
    for aggregate in cloud.index:
        if zone_of(aggregate) is not None:
            several |= seen & aggregate.hosts
            seen |= aggregate.hosts
    for host in sorted(several):
        aggregates = cloud.index.by_host[host]
        some = {zone_of(each): each.name for each in aggregates}
        some.pop(None, None)
        if len(some) > 1:
            yield Finding(
                'two-zones',
                Severity.ERROR,
                f'host {host}',
                'is in aggregates of several availability zones: '
                + listed(f'{name} ({zone})' for zone, name in some.items()),
                'Nova takes one of them for the zone of the host, and '
                'Placement offers it for each',
                about=About.of(hosts=[host], aggregates=some.values()),
            )
