# SPDX-License-Identifier: Apache-2.0
"""What is behind each lock of a cloud, and what its audit finds, as metrics.

Amounts are in the units of Placement's resource classes, such as
``MEMORY_MB``: those of custom classes are known only to the operator, so they
are the figures that the commands and Placement itself show.
"""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from isolate_aggregates.inspect.audit import AuditedCloud, Finding, audit
from isolate_aggregates.inspect.overview import LockOverview, overview
from isolate_aggregates.text import escaped

_PREFIX = 'isolate_aggregates'


def families(cloud: AuditedCloud) -> tuple[Metric, ...]:
    """Return all metrics of a cloud.

    :raises FilterError: if a request filter fails.
    """
    return (
        *_of_locks(overview(cloud.snapshot, cloud.locks)),
        _of_audit(audit(cloud)),
    )


def _of_locks(locks: Iterable[LockOverview]) -> Iterable[Metric]:
    aggregates = GaugeMetricFamily(
        f'{_PREFIX}_lock_aggregates',
        'Host aggregates that the lock is on.',
        labels=['lock'],
    )
    hosts = GaugeMetricFamily(
        f'{_PREFIX}_lock_hosts',
        'Hosts in any of these aggregates.',
        labels=['lock'],
    )
    capacity, used, free = (
        GaugeMetricFamily(
            f'{_PREFIX}_lock_{what}', text, labels=['lock', 'resource_class']
        )
        for what, text in (
            ('capacity', 'What these hosts may give out in all.'),
            ('used', 'What of it is given out.'),
            ('free', 'What of it is left, over all hosts together.'),
        )
    )
    for one in locks:
        name = escaped(one.lock.name)
        aggregates.add_metric([name], len(one.lock.aggregates))
        hosts.add_metric([name], len(one.hosts))
        for resource_class, amount in one.capacity.items():
            labels = [name, resource_class]
            capacity.add_metric(labels, amount.total)
            used.add_metric(labels, amount.used)
            free.add_metric(labels, amount.free)
    return aggregates, hosts, capacity, used, free


def _of_audit(findings: Iterable[Finding]) -> Metric:
    family = GaugeMetricFamily(
        f'{_PREFIX}_audit_findings',
        'What the audit finds, by kind; kinds of which there is nothing are '
        'left out.',
        labels=['kind', 'severity'],
    )
    counts = Counter((f.kind, f.severity.label) for f in findings)
    for labels, number in sorted(counts.items()):
        family.add_metric(labels, number)
    return family
