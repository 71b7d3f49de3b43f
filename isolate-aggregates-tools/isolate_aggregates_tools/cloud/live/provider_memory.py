# SPDX-License-Identifier: Apache-2.0
"""Remembers resource providers, so that only what has changed is read again.

Placement raises the generation of a provider when its traits change, and with
each write of its inventories. So what was read at a generation holds until the
provider is listed with another one. Names and parents do not raise it, and are
in the list itself. Usage and aggregates are never remembered, because not
every write of them raises the generation.

A database that was restored is noticed by a generation that fell. A provider
may be deleted and created again with the same generation. So traits and
capacity are compared with the summaries that each round reads, and each round
reads a part of the providers anew, all of them in :data:`ROUNDS`. There may be
no summaries of trees without a free CPU: for these only the latter counts.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
import dataclasses
import time
from typing import Any, TypeVar, cast
import zlib

from isolate_aggregates_tools.placement.client import ProviderSummary
from isolate_aggregates_tools.placement.provider import Inventory

_T = TypeVar('_T')
_H = TypeVar('_H', bound=Hashable)

#: In so many rounds each provider is read anew at least once. With the default
#: interval of the exporter that is a day.
ROUNDS = 288


@dataclasses.dataclass(slots=True)
class Known:
    """What was read of a resource provider at a generation.

    :param traits: None, like the other parts, if it is not known.
    :param since: When its first part was read, in seconds since 1970.
    """

    generation: int
    traits: frozenset[str] | None = None
    inventories: Mapping[str, Inventory] | None = None
    since: float = dataclasses.field(default_factory=time.time)

    def get(self, part: str, read: Callable[[], tuple[_T, int]]) -> _T:
        """Return a part, and keep what was read at the known generation.

        :param read: Returns the part with the generation of the response.
            Placement reads the generation first, so the part is never older.
        """
        value = getattr(self, part)
        if value is None:
            value, generation = read()
            if generation == self.generation:
                setattr(self, part, value)
        return cast('_T', value)


class ProviderMemory:
    """What earlier rounds have read of the resource providers of a cloud.

    :param known: The providers by uuid.
    :param round: The number of the last round.
    """

    def __init__(
        self, known: Mapping[str, Known] | None = None, round: int = 0
    ) -> None:
        self.known = dict(known or {})
        self.round = round

    def begin(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Begin a round with the current list of all resource providers.

        Providers that are gone are forgotten, and those that are to be read
        anew; all of them if a generation fell. Equal values are kept once:
        most hosts have the same traits.
        """
        entries = list(entries)
        self.round = (self.round + 1) % ROUNDS
        if any(self._fell(entry) for entry in entries):
            self.known = {}
        values: dict[Hashable, Any] = {}
        kept = {}
        for entry in entries:
            uuid = entry['uuid']
            known = self.known.get(uuid)
            if known is None or known.generation != entry['generation']:
                continue
            if zlib.crc32(uuid.encode()) % ROUNDS == self.round:
                continue
            known.traits = _once(values, known.traits)
            if known.inventories is not None:
                items = tuple(sorted(known.inventories.items()))
                known.inventories = values.setdefault(items, known.inventories)
            kept[uuid] = known
        self.known = kept

    def _fell(self, entry: Mapping[str, Any]) -> bool:
        known = self.known.get(entry['uuid'])
        return known is not None and entry['generation'] < known.generation

    def of(self, entry: Mapping[str, Any]) -> Known:
        """Return what is known of a listed resource provider."""
        known = self.known.get(entry['uuid'])
        if known is None or known.generation != entry['generation']:
            known = self.known[entry['uuid']] = Known(entry['generation'])
        return known

    def compare(self, summaries: Mapping[str, ProviderSummary]) -> None:
        """Forget the providers whose traits or capacity are different now."""
        for uuid, known in [*self.known.items()]:
            if (summary := summaries.get(uuid)) is None:
                continue
            if known.traits not in (None, summary.traits) or (
                known.inventories is not None
                and summary.capacity
                != {
                    name: inventory.capacity
                    for name, inventory in known.inventories.items()
                }
            ):
                del self.known[uuid]


def _once(values: dict[Hashable, Any], value: _H | None) -> _H | None:
    """Return the first of equal values."""
    return cast('_H | None', values.setdefault(value, value))
