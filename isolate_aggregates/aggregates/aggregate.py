# SPDX-License-Identifier: Apache-2.0
"""Host aggregates, and the interface of their sources.

A source is constructed with the configuration and a function that returns the
connection to the cloud. The function is to be called only if a connection is
needed. A source is registered by an entry point in the group
``isolate_aggregates.aggregate_sources`` in ``setup.cfg``.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Protocol, runtime_checkable

from isolate_aggregates import text

# The metadata key of the availability zone.
ZONE = 'availability_zone'


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


@dataclasses.dataclass(frozen=True)
class Lock:
    """Aggregates that are forbidden together.

    :param family: The common prefix of the metadata keys of similar locks, for
        example ``trait:``.
    :param name: Its unique name, for example ``trait:CUSTOM_LICENSED`` or
        ``reservation:``.
    :param aggregates: The aggregates, at least one.
    """

    family: str
    name: str
    aggregates: tuple[Aggregate, ...]


@runtime_checkable
class AggregateSource(Protocol):
    """Reads all host aggregates of a cloud.

    If it cannot read all of them, it must raise an exception. It must never
    return an incomplete or empty list in that case.
    """

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates.

        If nothing has changed, it may return the identical sequence again.

        :raises IsolateAggregatesError: if not all of them can be read.
        """


@runtime_checkable
class Membership(Protocol):
    """A source that reads the aggregates of hosts separately.

    If a source has this method, it returns aggregates without their hosts.
    """

    def aggregates_of(
        self, hosts: Iterable[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the uuids of the current aggregates of hosts, by host.

        :param hosts: The names of the compute services.
        :raises IsolateAggregatesError: if they cannot be read.
        """


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
    return aggregate.metadata.get(ZONE, aggregate.availability_zone)


def naming(aggregates: Iterable[Aggregate]) -> str:
    """Return the names as text: ``aggregates a, b and 7 more``."""
    return text.named('aggregate', (a.name for a in aggregates))
