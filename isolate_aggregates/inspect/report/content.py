# SPDX-License-Identifier: Apache-2.0
"""What the page shows, gathered from a cloud and its filters."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import datetime
import itertools

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.inspect.audit import (
    AuditedCloud,
    Finding,
    Severity,
    audit,
)
from isolate_aggregates.inspect.matrix import Matrix, matrix, requests
from isolate_aggregates.inspect.overview import LockOverview, overview
from isolate_aggregates.inspect.report.calendar import Calendar
from isolate_aggregates.request import Image
from isolate_aggregates.text import plural

# What an operator looks at first; other resource classes follow by name.
_FIRST = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB')


@dataclasses.dataclass(frozen=True)
class Content:
    """All that the page shows.

    :param images: The images that each flavor is shown with.
    :param project_id: Id of the project that the requests are of.
    :param tried: The same requests of other projects, by what the project is
        called; with the same groups of hosts.
    :param made_at: When the page is made, in UTC.
    :param calendar: The room for reservations; None to leave it out.
    """

    cloud: AuditedCloud
    matrix: Matrix
    locks: tuple[LockOverview, ...]
    findings: tuple[Finding, ...]
    images: tuple[Image, ...]
    project_id: str | None
    made_at: datetime.datetime
    calendar: Calendar | None = None
    tried: Mapping[str, Matrix] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cloud: AuditedCloud,
        images: Sequence[Image],
        project_id: str | None,
        made_at: datetime.datetime,
        calendar: Calendar | None = None,
        others: Mapping[str, str] | None = None,
    ) -> 'Content':
        """Gather what there is to show.

        :param images: The images to show each flavor with; none for flavors
            alone.
        :param made_at: The time, in UTC.
        :param others: Other projects to try requests of: ids by what they
            are called.
        :raises FilterError: if a request filter fails.
        """
        others = others or {}
        asked = [
            requests(cloud.snapshot.flavors, images, project)
            for project in (project_id, *others.values())
        ]
        # All at once, so that the groups of hosts are the same.
        whole = matrix(cloud.snapshot, cloud.pipeline, itertools.chain(*asked))
        rows = iter(whole.rows)
        shown, *tried = (
            Matrix(whole.groups, tuple(itertools.islice(rows, len(some))))
            for some in asked
        )
        return cls(
            cloud,
            shown,
            overview(cloud.snapshot, cloud.locks),
            tuple(audit(cloud)),
            tuple(images),
            project_id,
            made_at,
            calendar,
            dict(zip(others, tried, strict=True)),
        )

    @property
    def image_names(self) -> tuple[str, ...]:
        """The names of the images; with the id where several have one."""
        count = collections.Counter(image.name for image in self.images)
        return tuple(
            f'{image.name} ({image.id})'
            if count[image.name] > 1
            else image.name
            for image in self.images
        )

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The host aggregates."""
        return self.cloud.snapshot.aggregates

    @property
    def filters(self) -> tuple[str, ...]:
        """The names of the request filters that run, in their order."""
        return self.cloud.pipeline.names

    @property
    def idle(self) -> tuple[str, ...]:
        """The names of the request filters that are switched off."""
        running = self.cloud.enabled
        names = (loaded.name for loaded in self.cloud.filters)
        return tuple(name for name in names if name not in running)


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
    """Return the numbers of the overview."""
    groups = content.matrix.groups
    hosts = sum(len(group.hosts) for group in groups)
    closed = {a.uuid for o in content.locks for a in o.lock.aggregates}
    locked = sum(len(g.hosts) for g in groups if g.aggregates & closed)
    rows = content.matrix.rows
    nowhere = sum(all(row.objections) for row in rows)
    severities = [finding.severity for finding in content.findings]
    return [
        Figure('Hosts', hosts, f'{locked:,} behind a lock'),
        Figure(
            'Locks',
            len(content.locks),
            f'on {len(closed):,} {plural(len(closed), "aggregate")}',
        ),
        Figure('Aggregates', len(content.aggregates)),
        Figure(
            'Flavors',
            len(content.cloud.snapshot.flavors),
            f'{nowhere:,} may use no host' if nowhere else 'all have hosts',
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
    """Return the capacity behind a lock, what matters most first."""
    order = {name: place for place, name in enumerate(_FIRST)}
    return [
        Bar(name, capacity.used, capacity.total)
        for name, capacity in sorted(
            overview.capacity.items(),
            key=lambda item: (order.get(item[0], len(order)), item[0]),
        )
    ]
