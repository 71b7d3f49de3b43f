# SPDX-License-Identifier: Apache-2.0
"""What the page shows, gathered from a cloud and its filters."""

from collections.abc import Sequence
import dataclasses
import datetime

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.audit.finding import Finding, Severity
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.isolation.matrix import Matrix
from isolate_aggregates.isolation.overview import LockOverview

# What an operator looks at first; other resource classes follow by name.
_FIRST = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB')


@dataclasses.dataclass(frozen=True)
class Content:
    """All that the page shows.

    :param snapshot: The cloud.
    :param matrix: Which request may go to which host.
    :param locks: What is behind each lock.
    :param findings: What the audit found.
    :param filters: The request filters that run, in their order.
    :param idle: The request filters that are switched off.
    :param project_id: Id of the project that the requests are of.
    :param made_at: When the cloud was looked at, in UTC.
    """

    snapshot: Snapshot
    matrix: Matrix
    locks: tuple[LockOverview, ...]
    findings: tuple[Finding, ...]
    filters: tuple[str, ...]
    idle: tuple[str, ...]
    project_id: str | None
    made_at: datetime.datetime

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The host aggregates."""
        return self.snapshot.aggregates


@dataclasses.dataclass(frozen=True)
class Figure:
    """A number of the overview.

    :param label: What is counted.
    :param value: How many there are.
    :param note: What to know about it.
    :param severity: How bad it is, if it is about findings.
    """

    label: str
    value: int
    note: str = ''
    severity: Severity | None = None


@dataclasses.dataclass(frozen=True)
class Bar:
    """How much of a resource class is in use.

    :param resource_class: The resource class.
    :param used: What is in use.
    :param total: What there is.
    """

    resource_class: str
    used: int
    total: int

    @property
    def free(self) -> int:
        """What is left."""
        return self.total - self.used

    @property
    def percent(self) -> int:
        """What is in use, in percent of what there is."""
        if not self.total:
            return 100 if self.used else 0
        return round(100 * self.used / self.total)

    @property
    def width(self) -> int:
        """How much of the bar is filled, in percent."""
        return min(max(self.percent, 0), 100)


def figures(content: Content) -> list[Figure]:
    """Return the numbers of the overview.

    :param content: What the page shows.
    """
    groups = content.matrix.groups
    hosts = sum(len(group.hosts) for group in groups)
    closed = {a.uuid for o in content.locks for a in o.lock.aggregates}
    locked = sum(len(g.hosts) for g in groups if g.aggregates & closed)
    rows = content.matrix.rows
    nowhere = sum(all(row.reasons) for row in rows)
    severities = [finding.severity for finding in content.findings]
    return [
        Figure('Hosts', hosts, f'{locked} behind a lock'),
        Figure('Locks', len(content.locks), f'on {len(closed)} aggregates'),
        Figure('Aggregates', len(content.aggregates)),
        Figure(
            'Flavors',
            len({row.request.flavor for row in rows}),
            f'{nowhere} may go nowhere' if nowhere else 'all have hosts',
        ),
    ] + [
        Figure(
            f'{severity.label.capitalize()}s',
            severities.count(severity),
            severity=severity,
        )
        for severity in sorted(Severity, reverse=True)
    ]


def bars(overview: LockOverview) -> list[Bar]:
    """Return the capacity behind a lock, what matters most first.

    :param overview: What is behind the lock.
    """
    order = {name: place for place, name in enumerate(_FIRST)}
    return [
        Bar(name, capacity.used, capacity.total)
        for name, capacity in sorted(
            overview.capacity.items(),
            key=lambda item: (order.get(item[0], len(order)), item[0]),
        )
    ]


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings, the most severe first.

    :param findings: The findings.
    """
    return sorted(
        findings, key=lambda f: (-f.severity, f.kind, f.subject, f.problem)
    )
