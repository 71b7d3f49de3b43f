# SPDX-License-Identifier: Apache-2.0
"""Updates the tags of projects on aggregates that are reserved for domains.

Each round reads the aggregates first and Keystone second. So if a project has
a tag and Keystone does not know it, it was deleted, and not created later than
Keystone was read. New projects are added before deleted ones are removed. If
Keystone cannot be read, nothing changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Protocol

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, domains
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools.domains import Difference, Projects


@dataclasses.dataclass(frozen=True)
class TagChange:
    """One change of the metadata of an aggregate.

    :param action: ``add project`` or ``remove project``.
    :param subject: The id of the project.
    """

    aggregate: str
    action: str
    subject: str
    why: str

    def __str__(self) -> str:
        return f'aggregate {self.aggregate}: {self.action} {self.subject}'


class Nova(Protocol):
    """The part of Nova's client that is needed."""

    def aggregates(self) -> list[Aggregate]:
        """Return all aggregates."""

    def set_metadata(
        self, aggregate: Aggregate, metadata: Mapping[str, str | None]
    ) -> None:
        """Set metadata; None removes a key."""


Read = Callable[[Iterable[str]], Projects]


def changes(difference: Difference) -> Iterator[TagChange]:
    """Yield the changes that remove a difference."""
    name, domain = difference.aggregate.name, difference.domain
    for project in difference.missing.values():
        yield TagChange(
            name, 'add project', project, f'domain {domain} has it'
        )
    for project in difference.foreign.values():
        yield TagChange(
            name,
            'remove project',
            project,
            f'domain {domain} does not have it',
        )


def updated(
    aggregates: Iterable[Aggregate], differences: Iterable[Difference]
) -> tuple[Aggregate, ...]:
    """Return the aggregates without the differences."""
    after = {aggregate.uuid: aggregate for aggregate in aggregates}
    for difference in differences:
        old = after[difference.aggregate.uuid]
        kept = {
            key: value
            for key, value in old.metadata.items()
            if key not in difference.foreign
        }
        after[old.uuid] = dataclasses.replace(
            old, metadata=kept | dict(difference.missing)
        )
    return tuple(after.values())


def problems(
    aggregates: Iterable[Aggregate], known: Projects
) -> Iterator[str]:
    """Yield what sync does not change and why."""
    for aggregate in aggregates:
        for each in domains.of(aggregate):
            if each in known and known[each] is None:
                yield (
                    f'aggregate {aggregate.name}: is reserved for domain '
                    f'{each}, which does not exist; sync leaves its tags as '
                    'they are'
                )


def carry_out(
    differences: Iterable[Difference], nova: Nova, read: Read
) -> tuple[list[TagChange], list[str]]:
    """Make the changes; return them, and what could not be done.

    If one aggregate cannot be changed, the others are still changed.
    """
    done: list[TagChange] = []
    failures: list[str] = []
    aggregates = {d.aggregate.uuid: d.aggregate for d in differences}
    for uuid, aggregate in aggregates.items():
        try:
            done += _update(uuid, nova, read)
        except exception.IsolateAggregatesError as exc:
            failures.append(f'aggregate {aggregate.name}: {exc}')
    return done, failures


def _update(uuid: str, nova: Nova, read: Read) -> Iterator[TagChange]:
    aggregate = _current(uuid, nova)
    if aggregate is None:
        return
    known = read(domains.of(aggregate))
    for difference in list(tools_domains.differences(aggregate, known)):
        # In this order, so that a failure lets in nobody and keeps out nobody.
        if difference.missing:
            nova.set_metadata(aggregate, difference.missing)
            _withdraw(difference, nova)
        if difference.foreign:
            nova.set_metadata(aggregate, dict.fromkeys(difference.foreign))
        yield from changes(difference)


def _withdraw(difference: Difference, nova: Nova) -> None:
    """Remove the tags again if the domain was removed meanwhile."""
    current = _current(difference.aggregate.uuid, nova)
    if current and difference.domain not in domains.of(current):
        nova.set_metadata(current, dict.fromkeys(difference.missing))


def _current(uuid: str, nova: Nova) -> Aggregate | None:
    return next((a for a in nova.aggregates() if a.uuid == uuid), None)
