# SPDX-License-Identifier: Apache-2.0
"""The host aggregate."""

from collections.abc import Iterable, Mapping
import dataclasses

from isolate_aggregates import text


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A host aggregate of Nova.

    :param uuid: The uuid, which is also that of the Placement aggregate.
    :param name: The name.
    :param metadata: The metadata by key.
    :param hosts: The names of the compute services in it. Empty if the source
        is a :class:`~isolate_aggregates.aggregates.Membership`.
    :param id: The numeric id in Nova, if known.
    :param availability_zone: The availability zone, if it has one.
    """

    uuid: str
    name: str
    metadata: Mapping[str, str] = dataclasses.field(
        default_factory=dict, hash=False
    )
    hosts: frozenset[str] = frozenset()
    id: int | None = None
    availability_zone: str | None = None


def grants(
    aggregate: Aggregate, project_id: str | None, owner_key: str
) -> bool:
    """Return whether a project may use the aggregate of a reservation.

    Blazar stores the id of the owner in the metadata ``blazar:owner``. The ids
    of further projects are metadata keys themselves (see BlazarFilter of
    blazar-nova).

    :param project_id: The id of the project; the result for None is False.
    """
    if not project_id:
        return False
    return bool(
        aggregate.metadata.get(owner_key) == project_id
        or aggregate.metadata.get(project_id)
    )


def zone_of(aggregate: Aggregate) -> str | None:
    """Return the availability zone of an aggregate, if it has one."""
    # The zone is metadata in Nova, but a cloud file may have it separately.
    return aggregate.metadata.get(
        'availability_zone', aggregate.availability_zone
    )


def naming(aggregates: Iterable[Aggregate]) -> str:
    """Return the names as text: ``aggregates a, b and 7 more``."""
    return text.named('aggregate', (a.name for a in aggregates))
