# SPDX-License-Identifier: Apache-2.0
"""Sums up records of decisions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Any

# The most requests that are named; further ones are counted.
MOST_NAMED = 10_000

#: What requests are summed up by, in the order in which it is shown.
KINDS = ('cause', 'lock', 'project', 'flavor', 'day')
#: What filters in shadow would have changed.
EFFECTS = ('no_host', 'refused', 'other_host', 'not_known', 'failed')
# After these a request that was placed would have had no host.
_WITHOUT_HOST = ('no_host', 'refused')


@dataclasses.dataclass(frozen=True)
class NamedRequest:
    """A request that would have ended without a host.

    :param locks: What closes the hosts that it got.
    :param reason: Why it would have been refused.
    """

    at: str
    request: str
    server: str | None
    project: str | None
    flavor: str
    effect: str
    locks: tuple[str, ...]
    reason: str | None


@dataclasses.dataclass
class Counts:
    """How many requests there are of one name, in total and by effect."""

    requests: int = 0
    effects: Counter[str] = dataclasses.field(default_factory=Counter)


class Sums:
    """The sums of records; memory does not grow with their number.

    :param of_shadow: Whether to sum up what filters in shadow would have
        changed, instead of the requests that got no host.
    """

    def __init__(self, of_shadow: bool) -> None:
        self.of_shadow = of_shadow
        self.records = 0
        self.first = self.last = ''
        self.results: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()
        #: By kind and by the id of what it is a sum of.
        self.counts: dict[str, dict[str | None, Counts]] = {
            kind: defaultdict(Counts) for kind in KINDS
        }
        #: The last name of each flavor, by id.
        self.flavors: dict[str, str] = {}
        self.without_host: list[NamedRequest] = []
        self.not_named = 0

    def add(self, record: Mapping[str, Any]) -> None:
        """Count a record."""
        at = record['at']
        self.records += 1
        self.first = min(self.first or at, at)
        self.last = max(self.last, at)
        is_placed = record['result'] == 'placed'
        self.results[record['result']] += 1
        if self.of_shadow:
            if shadow := record.get('shadow'):
                self._add_shadow(record, shadow, is_placed)
        elif not is_placed:
            self._count(record, '', locks(record))

    def _add_shadow(
        self,
        record: Mapping[str, Any],
        shadow: Mapping[str, Any],
        is_placed: bool,
    ) -> None:
        effect = str(shadow.get('effect'))
        self.effects[effect] += 1
        names = tuple(sorted(_closing(shadow.get('would_exclude'))))
        self._count(record, effect, names)
        if not is_placed or effect not in _WITHOUT_HOST:
            return
        if len(self.without_host) >= MOST_NAMED:
            self.not_named += 1
            return
        flavor = record['flavor']
        refusals = shadow.get('refusals') or [shadow]
        self.without_host.append(
            NamedRequest(
                record['at'],
                record['request'],
                record['server'],
                record['project'],
                flavor.get('name', flavor['id']),
                effect,
                names,
                refusals[0].get('reason'),
            )
        )

    def _count(
        self, record: Mapping[str, Any], effect: str, names: Iterable[str]
    ) -> None:
        flavor = record['flavor']
        identity = flavor['id']
        self.flavors[identity] = flavor.get('name', identity)
        of_kind = self.counts
        found = [
            of_kind['project'][record['project']],
            of_kind['flavor'][identity],
            of_kind['day'][record['at'][:10]],
            *map(of_kind['lock'].__getitem__, names),
        ]
        if not self.of_shadow:
            found.append(of_kind['cause'][record.get('cause')])
        for counts in found:
            counts.requests += 1
            if effect:
                counts.effects[effect] += 1

    def sorted(self, kind: str) -> list[tuple[str | None, Counts]]:
        """Return the sums of a kind: the most first, but days in order."""
        counts = self.counts[kind].items()
        if kind == 'day':
            return sorted(counts, key=lambda item: item[0] or '')
        return sorted(
            counts,
            key=lambda item: (
                -item[1].requests,
                self.name(kind, item[0]) or '',
                item[0] or '',
            ),
        )

    def name(self, kind: str, key: str | None) -> str | None:
        """Return the name of what a sum is of."""
        return self.flavors.get(key or '') if kind == 'flavor' else key


def locks(record: Mapping[str, Any]) -> list[str]:
    """Return the locks that closed the hosts that a request needed."""
    if record.get('cause') != 'locked':
        return []
    return sorted(_closing(record.get('detail', {}).get('hosts')))


def _closing(hosts: Mapping[str, Any] | None) -> set[str]:
    """Return the locks in what closes some hosts."""
    found: set[str] = set()
    for entries in (hosts or {}).values():
        for entry in entries:
            found.update(names_of(entry))
    return found


def names_of(entry: Mapping[str, Any]) -> Sequence[str]:
    """Return the locks of an entry of what closes a host.

    They are the metadata, or the aggregates if the filter does not tell which
    metadata it is.
    """
    if 'in_none_of' in entry:
        return (f'outside of {", ".join(entry["in_none_of"])}',)
    found: Sequence[str] = entry.get('locks', ())
    return found or (f'aggregate {entry.get("name")}',)
