# SPDX-License-Identifier: Apache-2.0
"""Keep other projects out of aggregates that name their projects.

An aggregate with the metadata ``filter_tenant_id=<project>,...``, or with any
key with this prefix, accepts only servers of those projects. The metadata is
that of Nova's host filter `AggregateMultiTenancyIsolation
<https://docs.openstack.org/nova/latest/admin/scheduling.html#aggregatemultitenancyisolation>`_,
which runs after the query to Placement. For a host in several such aggregates
this filter is stricter: all of them must name the project, while Nova's filter
passes the host if any of them does.

``lock create --domain`` writes such keys for a Keystone domain and its
projects. They are compared like all others; only the reason names the domain.
"""

import collections
from collections.abc import Iterator
import dataclasses
from typing import ClassVar

from isolate_aggregates import text
from isolate_aggregates.aggregates import (
    Aggregate,
    AggregateIndex,
    Lock,
    domains,
)
from isolate_aggregates.aggregates.domains import TENANTS
from isolate_aggregates.filters.constraints import Cause, Forbid
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class IsolateTenants(RequestFilter):
    """Forbid the aggregates that name other projects only."""

    METADATA: ClassVar = (f'{TENANTS}*',)

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Forbid]:
        """Yield a constraint for each combination of domains."""
        foreign: dict[tuple[str, ...], list[Aggregate]] = {}
        for aggregate in aggregates.with_prefix(TENANTS):
            if request.project_id not in self._projects(aggregate):
                same = foreign.setdefault(domains.of(aggregate), [])
                same.append(aggregate)
        problem = (
            f'project {request.project_id} is not one of them'
            if request.project_id
            else 'the request has no project'
        )
        for domain_ids, same in sorted(foreign.items()):
            owners = f'in {TENANTS}'
            if domain_ids:
                owners = f'of {text.named("domain", domain_ids)} {owners}'
            yield Forbid(
                tuple(same),
                Cause(
                    'other-projects',
                    f'reserved for the projects {owners}; {problem}',
                    (TENANTS,),
                ),
            )

    def locks(self, aggregates: AggregateIndex) -> Iterator[Lock]:
        """Yield a lock for each set of projects that aggregates name."""
        members: dict[str, list[Aggregate]] = {}
        for aggregate in aggregates.with_prefix(TENANTS):
            projects = ','.join(sorted(self._projects(aggregate)))
            members.setdefault(projects, []).append(aggregate)
        labels = {
            projects: self._label(same[0], projects)
            for projects, same in members.items()
        }
        shared = collections.Counter(labels.values())
        for projects, same in sorted(members.items()):
            label = labels[projects]
            # Until sync has updated all, they differ in the projects.
            name = f'{TENANTS}={projects}'
            if shared[label] == 1:
                name = label
            yield Lock(TENANTS, name, tuple(same))

    def _label(self, aggregate: Aggregate, projects: str) -> str:
        """Return a short name for the lock of an aggregate."""
        owners = domains.of(aggregate)
        if not owners:
            return f'{TENANTS}={projects}'
        by_hand = {
            project.strip()
            for value in domains.by_hand(aggregate).values()
            for project in value.split(',')
        }
        tags = [key for owner in owners for key in domains.tag(owner)]
        return ','.join([*tags, *sorted(by_hand - {''})])

    def _projects(self, aggregate: Aggregate) -> set[str]:
        return {
            project.strip()
            for key, value in aggregate.metadata.items()
            if key.startswith(TENANTS)
            for project in value.split(',')
            if project.strip()
        }
