# SPDX-License-Identifier: Apache-2.0
"""An immutable snapshot of all aggregates, with caches for quick answers.

Everything that depends only on the aggregates is computed once per snapshot,
when it is first needed. Threads may share an index: at worst two of them
compute the same answer.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
import dataclasses
import functools
from typing import TypeVar, cast

from isolate_aggregates.aggregates import collation
from isolate_aggregates.aggregates.aggregate import Aggregate

# Answers that are remembered. Which there are depends on the requests, and
# tenants write some of their keys; each may name all the aggregates.
_MOST = 128

_T = TypeVar('_T')


@dataclasses.dataclass(frozen=True)
class LockGroup:
    """Aggregates that are locked by exactly the same metadata keys.

    :param keys: The metadata keys, such as ``trait:CUSTOM_A``; all of them
        must be opened.
    :param aggregates: The aggregates, in the order of the snapshot.
    """

    keys: frozenset[str]
    aggregates: tuple[Aggregate, ...]


@dataclasses.dataclass(frozen=True)
class Closed:
    """What is closed to a request that has some keys.

    :param groups: The groups with a key that the request does not have.
    :param uuids: The uuids of all their aggregates.
    """

    groups: tuple[LockGroup, ...]
    uuids: frozenset[str]


class AggregateIndex:
    """All aggregates of a cloud at one moment.

    :param aggregates: The aggregates. The index keeps their order.
    """

    def __init__(self, aggregates: Iterable[Aggregate] = ()) -> None:
        self._aggregates = tuple(aggregates)
        self._remembered: dict[Hashable, object] = {}

    def __iter__(self) -> Iterator[Aggregate]:
        return iter(self._aggregates)

    def __len__(self) -> int:
        return len(self._aggregates)

    @functools.cached_property
    def _by_key(self) -> Mapping[str, tuple[Aggregate, ...]]:
        found: dict[str, list[Aggregate]] = {}
        for aggregate in self._aggregates:
            for key in aggregate.metadata:
                found.setdefault(key, []).append(aggregate)
        return {key: tuple(held) for key, held in found.items()}

    @functools.cached_property
    def by_host(self) -> Mapping[str, tuple[Aggregate, ...]]:
        """The aggregates each host is in, by its name."""
        found: dict[str, list[Aggregate]] = {}
        for aggregate in self._aggregates:
            for host in aggregate.hosts:
                found.setdefault(host, []).append(aggregate)
        return {host: tuple(held) for host, held in found.items()}

    @functools.cached_property
    def aggregates_of(self) -> Mapping[str, frozenset[str]]:
        """The uuids of the aggregates each host is in, by its name."""
        return {
            host: frozenset(aggregate.uuid for aggregate in held)
            for host, held in self.by_host.items()
        }

    def with_key(self, key: str) -> tuple[Aggregate, ...]:
        """Return the aggregates that have a metadata key.

        :param key: The key, exactly as written.
        """
        return self._by_key.get(key, ())

    def with_prefix(self, prefix: str) -> tuple[Aggregate, ...]:
        """Return the aggregates with a metadata key that has a prefix.

        :param prefix: The first characters of the key, exactly as written.
        """
        return self.where(
            ('prefix', prefix),
            lambda aggregate: any(
                key.startswith(prefix) for key in aggregate.metadata
            ),
        )

    def with_prefix_like(self, prefix: str) -> tuple[Aggregate, ...]:
        """Return the aggregates with a key that may have a prefix.

        Use it for locks: a key counts if any database may treat it as having
        the prefix, see ``collation.py``.

        :param prefix: The first characters of the key.
        """
        start = prefix.lower()
        return self.remember(
            ('prefix like', start), lambda: self._with_any(start)
        )

    def where(
        self, question: Hashable, answer: Callable[[Aggregate], bool]
    ) -> tuple[Aggregate, ...]:
        """Return the aggregates for which some condition holds.

        :param question: The cache key of the answer. It must contain
            everything that the condition depends on.
        :param answer: The condition; it may use only the aggregate.
        """
        return self.remember(
            ('where', question),
            lambda: tuple(a for a in self._aggregates if answer(a)),
        )

    def remember(self, question: Hashable, answer: Callable[[], _T]) -> _T:
        """Return an answer that depends only on the aggregates.

        :param question: The cache key of the answer. It must contain
            everything that the answer depends on.
        :param answer: Computes the answer.
        """
        try:
            return cast('_T', self._remembered[question])
        except KeyError:
            found = answer()
        if len(self._remembered) >= _MOST:
            # Rarely, if ever: it is kept by sets of keys that are in use.
            self._remembered.clear()
        self._remembered[question] = found
        return found

    def locks(self, prefix: str, value: str) -> tuple[LockGroup, ...]:
        """Return the aggregates locked by some metadata, grouped by locks.

        The prefix and the value are compared as the most lenient database
        would, see ``collation.py``; the rest of a key is compared exactly. So
        ``trait:X=Required`` locks. A key such as ``Trait:X`` locks too, and no
        request can open it, which is safe.

        :param prefix: The first characters of the keys that lock.
        :param value: The value with which they lock.
        """
        return self.remember(
            ('locks', prefix, value),
            lambda: self._find_locks(prefix.lower(), value.lower()),
        )

    def closed(self, prefix: str, value: str, held: Iterable[str]) -> Closed:
        """Return what is closed to a request with some keys.

        :param prefix: The first characters of the keys that lock.
        :param value: The value with which they lock.
        :param held: The keys of the request.
        """
        groups = self.locks(prefix, value)
        known = self.remember(
            ('keys', prefix, value),
            lambda: frozenset(key for group in groups for key in group.keys),
        )
        # Other keys open nothing here.
        held = known.intersection(held)
        return self.remember(
            ('closed', prefix, value, held), lambda: _closed(groups, held)
        )

    def _keys_like(self, prefix: str) -> frozenset[str]:
        # Many aggregates have the same keys.
        keys = frozenset[str]().union(*(a.metadata for a in self._aggregates))
        return frozenset(
            key for key in keys if collation.may_start_with(key, prefix)
        )

    def _with_any(self, prefix: str) -> tuple[Aggregate, ...]:
        keys = self._keys_like(prefix)
        return tuple(
            a for a in self._aggregates if not keys.isdisjoint(a.metadata)
        )

    def _find_locks(self, prefix: str, value: str) -> tuple[LockGroup, ...]:
        found: dict[frozenset[str], list[Aggregate]] = {}
        known = self._keys_like(prefix)
        for aggregate in self._aggregates:
            held = aggregate.metadata
            keys = frozenset(
                key
                for key in known.intersection(held)
                if collation.may_equal(held[key], value)
            )
            if keys:
                found.setdefault(keys, []).append(aggregate)
        return tuple(
            LockGroup(keys, tuple(members)) for keys, members in found.items()
        )


def _closed(groups: tuple[LockGroup, ...], held: frozenset[str]) -> Closed:
    shut = tuple(group for group in groups if not group.keys <= held)
    return Closed(
        shut, frozenset(a.uuid for group in shut for a in group.aggregates)
    )
