# SPDX-License-Identifier: Apache-2.0
"""Collects the contents of the page from a cloud and its filters."""

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence
import dataclasses
import datetime
import itertools
from typing import Any

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Image
from isolate_aggregates.text import plural
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.advice import trial
from isolate_aggregates_tools.advice.effects import Advice, Effects
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.audit import (
    AuditedCloud,
    Finding,
    Severity,
    audit,
)
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.locks.overview import LockOverview, overview
from isolate_aggregates_tools.matrix import columns
from isolate_aggregates_tools.matrix.matrix import Matrix, matrix, requests
from isolate_aggregates_tools.report.calendar import Calendar
from isolate_aggregates_tools.report.rooms import Rooms, rooms
from isolate_aggregates_tools.room.survival import Survival

# Resource classes to show first; others follow by name.
_FIRST = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB')
# More requests than these would make the page slow, so that a large cloud
# offers only the images that were named.
_MOST_TRIES = 2000
# Resource classes that are amounts of storage; Nova's GB are GiB too.
_LABELS = {'MEMORY_MB': 'Memory', 'DISK_GB': 'Disk'}


@dataclasses.dataclass(frozen=True)
class Content:
    """The contents of the page.

    :param matrix: The requests: each flavor with each of ``images``.
    :param images: The images; None is a server without an image.
    :param room: How many servers of the requests fit on each host; None if
        that is not known.
    :param other_projects: The same requests for other projects, by name.
    :param tried_projects: The ids of all projects that have requests.
    :param effect: The document of the effect of a change; None to show none.
    :param plan: The document of a plan of migrations; None to show none.
    :param survival: What becomes of the servers if a host fails; None if they
        are not known.
    """

    cloud: AuditedCloud
    matrix: Matrix
    locks: tuple[LockOverview, ...]
    findings: tuple[tuple[Finding, tuple[Advice, ...]], ...]
    images: tuple[Image | None, ...]
    project_id: str | None
    made_at: datetime.datetime
    room: Rooms | None = None
    calendar: Calendar | None = None
    other_projects: Mapping[str, Matrix] = dataclasses.field(
        default_factory=dict
    )
    tried_projects: frozenset[str | None] = frozenset({None})
    effect: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    survival: Survival | None = None

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
        """Collect the contents of the page.

        :param images: The first images to offer; if empty, none comes first.
        :param others: The ids of other projects to evaluate, by name, besides
            those that aggregates name.
        """
        flavors = cloud.snapshot.flavors
        first_images = tuple(images) or (None,)
        all_images = (
            *first_images,
            *_more_images(cloud.snapshot, first_images),
        )
        others = {
            **(others or {}),
            **_more_projects(
                cloud,
                {project_id, *(others or {}).values()},
                len(flavors) * len(all_images),
            ),
        }
        by_project = [
            requests(cloud.requests, flavors, all_images, project)
            for project in (project_id, *others.values())
        ]
        effects = Effects.of(cloud)
        # In one matrix, so that the groups of hosts are the same.
        whole = matrix(
            cloud.snapshot,
            cloud.pipeline,
            itertools.chain(*by_project),
            cloud.locks,
            effects.offers(cloud.snapshot),
        )
        rows = iter(whole.rows)
        own, *of_others = (
            dataclasses.replace(
                whole, rows=tuple(itertools.islice(rows, len(some)))
            )
            for some in by_project
        )
        return cls(
            cloud,
            own,
            overview(cloud.snapshot, cloud.locks),
            tuple(
                (finding, tuple(effects.advice(finding.repairs)))
                for finding in trial.held(cloud, audit(cloud), effects)
            ),
            all_images,
            project_id,
            made_at,
            rooms(cloud.snapshot, own),
            calendar,
            dict(zip(others, of_others, strict=True)),
            frozenset({project_id, *others.values()}),
        )

    @property
    def image_names(self) -> tuple[str | None, ...]:
        """The names of the images, with the id if a name is not unique."""
        count = collections.Counter(i.name for i in self.images if i)
        return tuple(
            None
            if image is None
            else f'{image.name} ({image.id})'
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
        """The names of the enabled request filters, in order."""
        return self.cloud.pipeline.names

    @property
    def idle(self) -> tuple[str, ...]:
        """The names of the disabled request filters."""
        running = self.cloud.enabled
        names = (entry.name for entry in self.cloud.filters)
        return tuple(name for name in names if name not in running)


def _more_images(
    snapshot: Snapshot, images: Sequence[Image | None]
) -> Sequence[Image | None]:
    """Return what else can be tried than these images."""
    ids = {image and image.id for image in images}
    more = [
        image
        for image in (*snapshot.images, None)
        if (image and image.id) not in ids
    ]
    count = len(snapshot.flavors) * len((*images, *more))
    return more if count <= _MOST_TRIES else ()


def _more_projects(
    cloud: AuditedCloud, known: Collection[str | None], rows: int
) -> dict[str, str]:
    """Return the projects to try that aggregates name, by their ids.

    :param known: The ids of those that are tried anyway.
    :param rows: The number of requests of a project.
    """
    some = [
        project
        for project in scope.projects(
            cloud.snapshot.aggregates, cloud.pipeline
        )
        if project and project not in known
    ]
    most = _MOST_TRIES // max(rows, 1)
    return {project: project for project in some[:most]}


@dataclasses.dataclass(frozen=True)
class Figure:
    """A number of the overview.

    :param section: The id of the section of the page with what is counted.
    :param choice: The control of the page and the value of it that show what
        is counted, such as ``view=host``.
    :param severity: The severity of the findings that are counted.
    """

    label: str
    value: int
    note: str = ''
    section: str = ''
    choice: str = ''
    severity: Severity | None = None


@dataclasses.dataclass(frozen=True)
class Bar:
    """The usage of a resource class."""

    resource_class: str
    used: int
    total: int

    @property
    def free(self) -> int:
        """The free amount."""
        return self.total - self.used

    @property
    def label(self) -> str:
        """The name on the page."""
        return _LABELS.get(self.resource_class, self.resource_class)

    @property
    def unit(self) -> str:
        """The unit on the page, if it has one."""
        return 'GiB' if self.resource_class in _LABELS else ''

    def amount(self, value: int) -> str:
        """Format an amount in the unit of the page."""
        if self.resource_class == 'MEMORY_MB' and value % 1024:
            return f'{value / 1024:,.1f}'
        if self.resource_class == 'MEMORY_MB':
            value //= 1024
        return f'{value:,}'

    @property
    def percent(self) -> int:
        """The usage in percent of the total."""
        if not self.total:
            return 100 if self.used else 0
        return round(100 * self.used / self.total)

    @property
    def width(self) -> int:
        """The filled part of the bar in percent, at most 100."""
        return min(max(self.percent, 0), 100)


def figures(content: Content) -> list[Figure]:
    """Return the numbers of the overview."""
    groups = content.matrix.groups
    hosts = sum(len(group.hosts) for group in groups)
    locked_uuids = {a.uuid for o in content.locks for a in o.lock.aggregates}
    behind = sum(len(g.hosts) for g in groups if g.aggregates & locked_uuids)
    # With the first image, as the page shows them if this is chosen.
    rows = content.matrix.rows[:: len(content.images)]
    nowhere = sum(len(row.closed) == len(groups) for row in rows)
    severities = [finding.severity for finding, _ in content.findings]
    return [
        *(
            Figure(
                f'{severity.label.capitalize()}s',
                severities.count(severity),
                section='findings',
                choice=f'severity={severity.label}',
                severity=severity,
            )
            for severity in sorted(Severity, reverse=True)
        ),
        *_survival(content.survival),
        Figure(
            'Hosts', hosts, f'{behind:,} behind a lock', 'matrix', 'view=host'
        ),
        Figure(
            'Locks',
            len(content.locks),
            f'on {len(locked_uuids):,} '
            f'{plural(len(locked_uuids), "aggregate")}',
            'locks',
        ),
        Figure(
            'Aggregates',
            len(content.aggregates),
            section='matrix',
            choice='view=aggregate',
        ),
        Figure(
            'Flavors',
            len(content.cloud.snapshot.flavors),
            f'{nowhere:,} may use no host' if nowhere else 'all have hosts',
            'matrix',
            'rows=nowhere' if nowhere else 'rows=all',
        ),
    ]


def _survival(survival: Survival | None) -> Iterator[Figure]:
    if survival is not None:
        worst = survival.worst
        yield Figure(
            'Without failover',
            worst,
            f'{plural(worst, "server")} if '
            f'{ranges.folded(survival.cases[0].hosts)} fails'
            if worst
            else 'every host may fail',
            severity=Severity.WARNING,
        )


@dataclasses.dataclass(frozen=True)
class FindingGroup:
    """Findings with the same repairs."""

    findings: tuple[Finding, ...]
    repairs: tuple[Advice, ...]

    @property
    def severities(self) -> list[str]:
        """The labels of the severities of its findings."""
        return sorted({finding.severity.label for finding in self.findings})

    @property
    def hosts(self) -> list[str]:
        """The hosts that its findings are about, by name."""
        return sorted({h for each in self.findings for h in each.about.hosts})


def finding_groups(content: Content) -> list[FindingGroup]:
    """Return the findings by repair, in the order of the first of each."""
    groups: dict[object, list[Finding]] = {}
    for place, (finding, repairs) in enumerate(content.findings):
        groups.setdefault(repairs or place, []).append(finding)
    return [
        FindingGroup(
            tuple(some), repairs if isinstance(repairs, tuple) else ()
        )
        for repairs, some in groups.items()
    ]


@dataclasses.dataclass(frozen=True)
class OpenTo:
    """Flavors that may use hosts.

    :param projects: The names of the projects in which they may, unless they
        may in the one of the table.
    """

    flavors: tuple[str, ...]
    projects: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Opened:
    """Who may use hosts behind a lock.

    :param untried: How many more projects its aggregates name.
    """

    groups: tuple[OpenTo, ...]
    untried: int


def opened(content: Content) -> dict[str, Opened]:
    """Return who may use hosts behind each lock, by its name."""
    locks = [overview.lock for overview in content.locks]
    naming = scope.project_naming(content.cloud.pipeline)
    return {
        lock.name: Opened(
            tuple(_open_to(content, {*column.groups})),
            len(
                frozenset().union(*map(naming, lock.aggregates))
                - content.tried_projects
            ),
        )
        for lock, column in zip(
            locks, columns.by_lock(content.matrix, locks), strict=False
        )
    }


def _open_to(content: Content, groups: set[int]) -> Iterator[OpenTo]:
    """Yield who may use some groups of hosts."""

    def flavors(tried: Matrix) -> frozenset[str]:
        return frozenset(
            row.request.flavor.name
            for row in tried.rows
            if not groups <= row.closed
        )

    everywhere = flavors(content.matrix)
    if everywhere:
        yield OpenTo(tuple(sorted(everywhere)))
    projects: dict[frozenset[str], list[str]] = {}
    for project, tried in content.other_projects.items():
        more = flavors(tried) - everywhere
        projects.setdefault(more, []).append(project)
    for more, some in projects.items():
        if more:
            yield OpenTo(tuple(sorted(more)), tuple(some))


def bars(overview: LockOverview) -> list[Bar]:
    """Return the capacity behind a lock, common resource classes first."""
    order = {name: place for place, name in enumerate(_FIRST)}
    return [
        Bar(name, capacity.used, capacity.total)
        for name, capacity in sorted(
            overview.capacity.items(),
            key=lambda item: (order.get(item[0], len(order)), item[0]),
        )
    ]
