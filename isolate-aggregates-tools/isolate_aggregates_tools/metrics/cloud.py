# SPDX-License-Identifier: Apache-2.0
"""Metrics of a cloud: capacity behind each lock, free slots and findings.

Amounts are in base units, with one metric name per unit. The units of custom
resource classes are not known, so their amounts are exported unchanged.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import os_resource_classes
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from isolate_aggregates.aggregates import domains
from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.text import escaped
from isolate_aggregates_tools.audit import AuditedCloud, Finding, audit
from isolate_aggregates_tools.compute.servers import Servers
from isolate_aggregates_tools.locks.overview import LockOverview, overview
from isolate_aggregates_tools.metrics.slots import SlotCounter

if TYPE_CHECKING:
    from isolate_aggregates_tools.room.survival import Survival

_PREFIX = 'isolate_aggregates'

# Suffixes of standard resource classes, with the suffix of the metric name and
# the factor to base units.
_UNITS = (
    ('_MB', '_bytes', 2**20),
    ('_GB', '_bytes', 2**30),
    ('_KILOBIT_PER_SEC', '_bytes_per_second', 125),
    ('_KILOPACKET_PER_SEC', '_packets_per_second', 1000),
)
_COUNTED = ('', 1)
_AMOUNTS = {
    'capacity': 'Capacity of the hosts behind the lock; of hosts that are '
    'down or disabled, only what is in use.',
    'used': 'Used capacity of the hosts behind the lock.',
}


def families(cloud: AuditedCloud, slots: SlotCounter) -> tuple[Metric, ...]:
    """Return all metrics of a cloud."""
    findings = audit(cloud)
    return (
        *_of_locks(overview(cloud.snapshot, cloud.locks)),
        *slots.families(cloud),
        *_of_domains(cloud),
        *_of_rollups(cloud),
        *_of_servers(cloud.servers, findings),
        _of_audit(findings),
    )


def _of_locks(locks: Iterable[LockOverview]) -> Iterator[Metric]:
    aggregates = GaugeMetricFamily(
        f'{_PREFIX}_lock_aggregates',
        'Host aggregates with the lock.',
        labels=['lock'],
    )
    hosts = GaugeMetricFamily(
        f'{_PREFIX}_lock_hosts',
        'Hosts in any aggregate with the lock.',
        labels=['lock'],
    )
    amounts: dict[str, GaugeMetricFamily] = {}
    for lock_overview in locks:
        name = escaped(lock_overview.lock.name)
        aggregates.add_metric([name], len(lock_overview.lock.aggregates))
        hosts.add_metric([name], len(lock_overview.hosts))
        for resource_class, amount in lock_overview.capacity.items():
            ending, unit = _unit(resource_class)
            for what, value in zip(
                _AMOUNTS, (amount.total, amount.used), strict=True
            ):
                family = amounts.setdefault(
                    f'{what}{ending}',
                    GaugeMetricFamily(
                        f'{_PREFIX}_lock_{what}{ending}',
                        _AMOUNTS[what],
                        labels=['lock', 'resourcetype'],
                    ),
                )
                family.add_metric([name, resource_class], value * unit)
    yield from (aggregates, hosts)
    for name in sorted(amounts):
        yield amounts[name]


def _unit(resource_class: str) -> tuple[str, int]:
    """Return the suffix of the metric name and the factor to base units."""
    if os_resource_classes.is_custom(resource_class):
        return _COUNTED
    for ending, name, unit in _UNITS:
        if resource_class.endswith(ending):
            return name, unit
    return _COUNTED


def _of_domains(cloud: AuditedCloud) -> Iterator[Metric]:
    missing = GaugeMetricFamily(
        f'{_PREFIX}_domain_projects_missing',
        'Projects of a domain that its aggregate does not let in.',
        labels=['aggregate', 'domain'],
    )
    left = GaugeMetricFamily(
        f'{_PREFIX}_domain_projects_left',
        'Projects that an aggregate lets in as those of a domain, and that '
        'the domain does not have.',
        labels=['aggregate', 'domain'],
    )
    differences = {
        (difference.aggregate.uuid, difference.domain): difference
        for difference in cloud.plan.differences
    }
    for aggregate in cloud.snapshot.aggregates:
        for domain_id in domains.of(aggregate):
            # Nothing is known of a domain that is gone or was not read.
            if cloud.snapshot.domains.get(domain_id) is None:
                continue
            difference = differences.get((aggregate.uuid, domain_id))
            labels = [escaped(aggregate.name), escaped(domain_id)]
            missing.add_metric(
                labels, len(difference.missing) if difference else 0
            )
            left.add_metric(
                labels, len(difference.foreign) if difference else 0
            )
    yield from (missing, left)


def _of_rollups(cloud: AuditedCloud) -> Iterator[Metric]:
    all_rollups = rollups(cloud.locks)
    held = [provider.aggregates for provider in cloud.snapshot.providers]
    complete = sum(
        all(
            rollup.uuid in aggregates
            or rollup.aggregates.isdisjoint(aggregates)
            for aggregates in held
        )
        for rollup in all_rollups
    )
    yield GaugeMetricFamily(
        f'{_PREFIX}_rollups',
        'Rollups that sync maintains for the locks.',
        len(all_rollups),
    )
    yield GaugeMetricFamily(
        f'{_PREFIX}_rollups_complete',
        'Rollups with complete membership.',
        complete,
    )


def _of_servers(
    servers: Servers | None, findings: Iterable[Finding]
) -> Iterator[Metric]:
    if servers is None:
        return
    family = GaugeMetricFamily(
        f'{_PREFIX}_servers',
        'Servers on hosts, by whether a new server like them may go there.',
        labels=['placement'],
    )
    counts = Counter(finding.kind for finding in findings)
    misplacements = counts['server-misplaced']
    servers_here = [
        server for server in servers.placed if server.host and server.flavor
    ]
    unreachable = sum(server.flavor is None for server in servers.placed)
    unknown = counts['server-not-evaluated']
    for placement, number in (
        ('allowed', len(servers_here) - misplacements - unknown),
        ('misplaced', misplacements),
        ('unknown', unknown + unreachable),
    ):
        family.add_metric([placement], number)
    yield family


def survival_families(survival: 'Survival | None') -> Iterator[Metric]:
    """Yield how many servers have nowhere to go if a host fails.

    :param survival: What becomes of them; None if they were not read.
    """
    if survival is None:
        return
    family = GaugeMetricFamily(
        f'{_PREFIX}_survival_servers_without_host',
        'The most servers behind the lock that have nowhere to go if a host '
        'fails.',
        labels=['lock'],
    )
    for lock, number in survival.locks.items():
        family.add_metric([escaped(lock)], number)
    yield family


def _of_audit(findings: Iterable[Finding]) -> Metric:
    family = GaugeMetricFamily(
        f'{_PREFIX}_audit_findings',
        'Findings of the audit by kind; kinds without findings are left out.',
        labels=['kind', 'severity'],
    )
    counts = Counter((f.kind, f.severity.label) for f in findings)
    for labels, number in sorted(counts.items()):
        family.add_metric(labels, number)
    return family
