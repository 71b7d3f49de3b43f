# SPDX-License-Identifier: Apache-2.0
"""Domains and projects of Keystone, and the tags that domains have."""

from collections.abc import Collection, Iterator, Mapping
import dataclasses

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.domains import PREFIX, of, tag
from isolate_aggregates_tools import errors

# The ids of the projects of domains, including disabled ones, by id of the
# domain; None if it does not exist.
Projects = Mapping[str, frozenset[str] | None]


@dataclasses.dataclass(frozen=True)
class Project:
    """A project of Keystone.

    :param domain: The id of its domain.
    """

    id: str
    name: str
    domain: str


@dataclasses.dataclass(frozen=True)
class Keystone:
    """All domains and projects of a Keystone, including disabled ones.

    :param domains: The names of the domains, by id.
    """

    domains: Mapping[str, str]
    projects: tuple[Project, ...] = ()

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of the project with an id or name.

        :param domain: The id or name of its domain; None for any.
        :returns: The name itself if no project has it.
        :raises NotUnique: if projects in several domains have it.
        """
        if any(each.id == name for each in self.projects):
            return name
        found = [
            each.id
            for each in self.projects
            if each.name == name
            and domain in (None, each.domain, self.domains.get(each.domain))
        ]
        if len(found) > 1:
            raise errors.NotUnique('project', name, found)
        return found[0] if found else name


def projects(aggregate: Aggregate, domain_id: str) -> dict[str, str]:
    """Return the projects of a domain that have a tag, by key."""
    start = f'{PREFIX}{domain_id}:'
    return {
        key: value
        for key, value in sorted(aggregate.metadata.items())
        if key.startswith(start)
    }


def of_all(aggregates: Collection[Aggregate]) -> frozenset[str]:
    """Return the ids of the domains that any aggregate is reserved for."""
    return frozenset(domain for each in aggregates for domain in of(each))


def without_domain(aggregate: Aggregate) -> Iterator[str]:
    """Yield the keys of projects of domains whose own tag is missing."""
    mine = of(aggregate)
    for key in sorted(aggregate.metadata):
        domain_id, colon, _ = key.removeprefix(PREFIX).partition(':')
        if key.startswith(PREFIX) and colon and domain_id not in mine:
            yield key


def tags(domain_id: str, project_ids: Collection[str]) -> dict[str, str]:
    """Return the tags that let in the projects of a domain."""
    start = f'{PREFIX}{domain_id}:'
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
