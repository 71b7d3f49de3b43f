# SPDX-License-Identifier: Apache-2.0
"""What a ledger file records of a cloud at one time, and how it changes."""

from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any, NamedTuple

from isolate_aggregates.aggregates import Aggregate


class Placement(NamedTuple):
    """A server on a host.

    :param keys: The names of the locks that it has the keys to; None if
        unknown.
    :param launched: When it was last launched, in seconds since 1970.
    """

    host: str
    project: str
    flavor: str | None
    cores: int | None
    keys: tuple[str, ...] | None
    launched: int | None


class HostState(NamedTuple):
    """A host.

    :param traits: Those of its traits that aggregates require.
    """

    sockets: int | None
    cores: int | None
    traits: tuple[str, ...]


class AggregateState(NamedTuple):
    """An aggregate, with all its metadata."""

    name: str
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]

    @classmethod
    def of(cls, aggregate: Aggregate) -> 'AggregateState':
        return cls(
            aggregate.name,
            tuple(sorted(aggregate.hosts)),
            dict(aggregate.metadata),
        )

    def aggregate(self, uuid: str) -> Aggregate:
        """Return it as an aggregate of Nova."""
        return Aggregate(uuid, self.name, self.metadata, frozenset(self.hosts))


_PARTS: Mapping[str, type[Any]] = {
    'aggregates': AggregateState,
    'hosts': HostState,
    'servers': Placement,
}


@dataclasses.dataclass
class State:
    """The locks, memberships and placements of a cloud.

    :param aggregates: By uuid.
    :param hosts: By name of the compute service.
    :param servers: The servers that have a host, by id.
    """

    aggregates: dict[str, AggregateState] = dataclasses.field(
        default_factory=dict
    )
    hosts: dict[str, HostState] = dataclasses.field(default_factory=dict)
    servers: dict[str, Placement] = dataclasses.field(default_factory=dict)

    def changes(self, before: 'State | None') -> dict[str, Any]:
        """Return what differs from an earlier state; None is what is gone.

        :param before: None to return the whole state.
        """
        changes: dict[str, Any] = {}
        for part in _PARTS:
            mine = getattr(self, part)
            old = getattr(before, part) if before else {}
            entries = {
                key: value._asdict()
                for key, value in mine.items()
                if old.get(key) != value
            }
            entries.update((key, None) for key in old if key not in mine)
            if entries:
                changes[part] = dict(sorted(entries.items()))
        return changes

    def change(self, document: Mapping[str, Any]) -> None:
        """Make the changes of a line.

        :raises LookupError, TypeError, ValueError: if it is invalid.
        """
        for part, kind in _PARTS.items():
            mine = getattr(self, part)
            for key, entry in document.get(part, {}).items():
                if entry is None:
                    mine.pop(key, None)
                    continue
                values = (entry[name] for name in kind._fields)
                mine[key] = kind(*map(_hashable, values))


def aggregates_of(aggregates: Iterable[Aggregate]) -> dict[str, Any]:
    """Return aggregates as a part of a state."""
    return {a.uuid: AggregateState.of(a) for a in aggregates}


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
