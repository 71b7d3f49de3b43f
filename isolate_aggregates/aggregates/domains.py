# SPDX-License-Identifier: Apache-2.0
"""Metadata that reserves an aggregate for the projects of Keystone domains.

``filter_tenant_id:domain:<domain>=<domain>`` names the domain, and for each
of its projects there is ``filter_tenant_id:domain:<domain>:<project>`` with
the project as its value. All are names of projects for Nova's filters, which
read each key that starts with ``filter_tenant_id``. The tag of the domain lets
in nobody, as no project outside the domain has its id, so an aggregate without
the projects is closed.

Each project has its own key because one of Nova's filters compares whole
values, and because programs that add or remove projects at the same time then
do not overwrite each other's changes.
"""

from collections.abc import Collection, Iterator, Mapping
import dataclasses

from isolate_aggregates.aggregates.aggregate import Aggregate

TENANTS = 'filter_tenant_id'
_PREFIX = f'{TENANTS}:domain:'


# The ids of the projects of domains, including disabled ones, by id of the
# domain; None if it does not exist.
Projects = Mapping[str, frozenset[str] | None]


def of(aggregate: Aggregate) -> tuple[str, ...]:
    """Return the ids of the domains that an aggregate is reserved for."""
    return tuple(
        key.removeprefix(_PREFIX)
        for key in sorted(aggregate.metadata)
        if key.startswith(_PREFIX) and ':' not in key.removeprefix(_PREFIX)
    )


def projects(aggregate: Aggregate, domain_id: str) -> dict[str, str]:
    """Return the projects of a domain that have a tag, by key."""
    start = f'{_PREFIX}{domain_id}:'
    return {
        key: value
        for key, value in sorted(aggregate.metadata.items())
        if key.startswith(start)
    }


def of_all(aggregates: Collection[Aggregate]) -> frozenset[str]:
    """Return the ids of the domains that any aggregate is reserved for."""
    return frozenset(domain for each in aggregates for domain in of(each))


def is_of_domain(key: str) -> bool:
    """Return whether a tag is one of a domain or of its projects."""
    return key.startswith(_PREFIX)


def by_hand(aggregate: Aggregate) -> dict[str, str]:
    """Return the tags that name projects, but not those of domains."""
    return {
        key: value
        for key, value in aggregate.metadata.items()
        if key.startswith(TENANTS) and not is_of_domain(key)
    }


def without_domain(aggregate: Aggregate) -> Iterator[str]:
    """Yield the keys of projects of domains whose own tag is missing."""
    mine = of(aggregate)
    for key in sorted(aggregate.metadata):
        domain_id, colon, _ = key.removeprefix(_PREFIX).partition(':')
        if key.startswith(_PREFIX) and colon and domain_id not in mine:
            yield key


def tag(domain_id: str) -> dict[str, str]:
    """Return the tag that names a domain."""
    return {_PREFIX + domain_id: domain_id}


def tags(domain_id: str, project_ids: Collection[str]) -> dict[str, str]:
    """Return the tags that let in the projects of a domain."""
    start = f'{_PREFIX}{domain_id}:'
    return {start + project: project for project in sorted(project_ids)}


@dataclasses.dataclass(frozen=True)
class Difference:
    """The tags of one domain on an aggregate that are not right.

    :param domain: The id of the domain.
    :param missing: The tags of projects that have none.
    :param foreign: The keys that name no project of the domain, or a wrong
        one, with their values.
    """

    aggregate: Aggregate
    domain: str
    missing: Mapping[str, str]
    foreign: Mapping[str, str]


def differences(aggregate: Aggregate, known: Projects) -> Iterator[Difference]:
    """Yield what differs from the domains, as far as they are known."""
    for domain_id in of(aggregate):
        project_ids = known.get(domain_id)
        if project_ids is None:
            continue
        right = tags(domain_id, project_ids)
        actual = projects(aggregate, domain_id)
        # The domain's own tag must name nobody else.
        actual |= {key: aggregate.metadata[key] for key in tag(domain_id)}
        both = right | tag(domain_id)
        difference = Difference(
            aggregate,
            domain_id,
            {k: v for k, v in both.items() if actual.get(k) != v},
            {k: v for k, v in actual.items() if k not in both},
        )
        if difference.missing or difference.foreign:
            yield difference
