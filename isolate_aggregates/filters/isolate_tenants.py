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

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.filters.constraints import Cause, Forbid
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class IsolateTenants(RequestFilter):
    """Forbid the aggregates that name other projects only."""

    # Only the project of the request matters.
    KEY_SOURCES = ()

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
        """Yield at most one constraint."""
        foreign = tuple(
            aggregate
            for aggregate in aggregates.with_prefix(self.key_prefix)
            if request.project_id not in self._projects(aggregate)
        )
        if foreign:
            problem = (
                f'project {request.project_id} is not one of them'
                if request.project_id
                else 'the request has no project'
            )
            yield Forbid(
                foreign,
                Cause(
                    'other-projects',
                    f'reserved for the projects in {self.key_prefix}; '
                    f'{problem}',
                ),
            )

    def locks(self, aggregates: AggregateIndex) -> Iterator[Lock]:
        """Yield a lock for each set of projects that aggregates name."""
        members: dict[str, list[Aggregate]] = {}
        for aggregate in aggregates.with_prefix(self.key_prefix):
            projects = ','.join(sorted(self._projects(aggregate)))
            members.setdefault(projects, []).append(aggregate)
        for projects, same in sorted(members.items()):
            name = f'{self.key_prefix}={projects}'
            yield Lock(self.key_prefix, name, tuple(same))

    def _projects(self, aggregate: Aggregate) -> set[str]:
        return {
            project.strip()
            for key, value in aggregate.metadata.items()
            if key.startswith(self.key_prefix)
            for project in value.split(',')
            if project.strip()
        }
