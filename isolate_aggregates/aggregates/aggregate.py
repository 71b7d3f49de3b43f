# SPDX-License-Identifier: Apache-2.0
"""One host aggregate as Nova knows it."""

from collections.abc import Iterable, Mapping
import dataclasses

from isolate_aggregates import text


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A named set of hosts with metadata.

    :param uuid: The uuid, which is also that of the Placement aggregate.
    :param name: Name, shown to people.
    :param metadata: Metadata by key.
    :param hosts: Names of the compute services in it; none from a source that
        is a :class:`~isolate_aggregates.aggregates.Membership`.
    :param id: Nova's number for it, if known.
    :param availability_zone: Its availability zone, if it has one.
    """

    uuid: str
    name: str
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    id: int | None = None
    availability_zone: str | None = None


def grants(
    aggregate: Aggregate, project_id: str | None, owner_key: str
) -> bool:
    """Return whether a reserved aggregate is meant for a project.

    Blazar writes the owner's id under ``blazar:owner``, and for each further
    project a key that is that project's id (see BlazarFilter of blazar-nova).

    :param aggregate: The aggregate of a reservation.
    :param project_id: Id of the project; None is never meant.
    :param owner_key: The metadata key that holds the owner's id.
    """
    if not project_id:
        return False
    return bool(
        aggregate.metadata.get(owner_key) == project_id
        or aggregate.metadata.get(project_id)
    )


def zone_of(aggregate: Aggregate) -> str | None:
    """Return the availability zone of an aggregate, if it has one."""
    # For Nova it is metadata; a cloud file may leave that out.
    return aggregate.metadata.get(
        'availability_zone', aggregate.availability_zone
    )


def naming(aggregates: Iterable[Aggregate]) -> str:
    """Name aggregates in a sentence: ``aggregates a, b and 7 more``.

    :param aggregates: The aggregates, at least one.
    """
    return text.named('aggregate', (a.name for a in aggregates))
