# SPDX-License-Identifier: Apache-2.0
"""Keep other projects out of aggregates that name their projects.

An aggregate with the metadata ``filter_tenant_id=<project>,...``, or with any
key with this prefix, accepts only servers of those projects. The metadata is
that of Nova's host filter `AggregateMultiTenancyIsolation
<https://docs.openstack.org/nova/latest/admin/scheduling.html#aggregatemultitenancyisolation>`_,
which runs after the query to Placement. For a host in several such aggregates
this filter is stricter: all of them must name the project, while Nova's filter
passes the host if any of them does.
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import ClassVar

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class OtherProjects:
    """The cause: an aggregate names projects, but not that of the request.

    :param project_id: The project of the request; None if unknown.
    :param key_prefix: The prefix of the metadata keys that name projects.
    """

    project_id: str | None
    key_prefix: str

    def __str__(self) -> str:
        why = (
            f'project {self.project_id} is not one of them'
            if self.project_id
            else 'the request has no project'
        )
        return f'reserved for the projects in {self.key_prefix}; {why}'


@dataclasses.dataclass(frozen=True)
class IsolateTenants:
    """Forbid the aggregates that name other projects only.

    :param key_prefix: The prefix of the metadata keys that name projects.
    """

    # Only the project of the request matters.
    KEY_SOURCES: ClassVar[Sequence[str]] = ()

    key_prefix: str = 'filter_tenant_id'

    @property
    def METADATA(self) -> Sequence[str]:  # noqa: N802
        """The metadata keys that name projects."""
        return (f'{self.key_prefix}*',)

    @property
    def PROJECT_KEYS(self) -> Sequence[str]:  # noqa: N802
        """The prefix of the metadata keys that name projects."""
        return (self.key_prefix,)

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Forbid]:
        """Yield at most one constraint.

        :param request: The request that is being scheduled.
        :param aggregates: An index of all aggregates.
        """
        foreign = tuple(
            aggregate
            for aggregate in aggregates.with_prefix(self.key_prefix)
            if request.project_id not in self._projects(aggregate)
        )
        if foreign:
            yield Forbid(
                foreign, OtherProjects(request.project_id, self.key_prefix)
            )

    def locks(self, aggregates: AggregateIndex) -> Iterator[Lock]:
        """Yield a lock for each set of projects that aggregates name.

        :param aggregates: An index of all aggregates.
        """
        members: dict[str, list[Aggregate]] = {}
        for aggregate in aggregates.with_prefix(self.key_prefix):
            projects = ','.join(sorted(self._projects(aggregate)))
            members.setdefault(projects, []).append(aggregate)
        for projects, found in sorted(members.items()):
            name = f'{self.key_prefix}={projects}'
            yield Lock(self.key_prefix, name, tuple(found))

    def _projects(self, aggregate: Aggregate) -> set[str]:
        return {
            project.strip()
            for key, value in aggregate.metadata.items()
            if key.startswith(self.key_prefix)
            for project in value.split(',')
            if project.strip()
        }
