# SPDX-License-Identifier: Apache-2.0
"""An immutable snapshot of all aggregates, with caches for fast lookups.

Everything that depends only on the aggregates is computed once per snapshot,
on first use. Threads may share an index: at worst, two of them compute the
same result.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
import dataclasses
from typing import TypeVar, cast

from isolate_aggregates.aggregates import collation
from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.lazy import lazy_property

_T = TypeVar('_T')


class AggregateIndex:
    """A snapshot of all aggregates of a cloud.

    :param aggregates: The aggregates. The index keeps their order.
    """

    # The most cached results. They depend on the keys of requests, some of
    # which tenants choose, and each result may contain all aggregates.
    _most = 128

    def __init__(self, aggregates: Iterable[Aggregate] = ()) -> None:
        self._aggregates = tuple(aggregates)
        self._remembered: dict[Hashable, object] = {}

    def __iter__(self) -> Iterator[Aggregate]:
        return iter(self._aggregates)

    def __len__(self) -> int:
        return len(self._aggregates)

    @lazy_property
    def _by_key(self) -> Mapping[str, tuple[Aggregate, ...]]:
        members: dict[str, list[Aggregate]] = {}
        for aggregate in self._aggregates:
            for key in aggregate.metadata:
                members.setdefault(key, []).append(aggregate)
        return {key: tuple(aggregates) for key, aggregates in members.items()}

    @lazy_property
    def by_host(self) -> Mapping[str, tuple[Aggregate, ...]]:
        """The aggregates of each host, by name of the host."""
        members: dict[str, list[Aggregate]] = {}
        for aggregate in self._aggregates:
            for host in aggregate.hosts:
                members.setdefault(host, []).append(aggregate)
        return {
            host: tuple(aggregates) for host, aggregates in members.items()
        }

    @lazy_property
    def aggregates_of(self) -> Mapping[str, frozenset[str]]:
        """The uuids of the aggregates of each host, by name of the host."""
        return {
            host: frozenset(aggregate.uuid for aggregate in aggregates)
            for host, aggregates in self.by_host.items()
        }

    def with_key(self, key: str) -> tuple[Aggregate, ...]:
        """Return the aggregates that have a metadata key.

        :param key: The exact key.
        """
        return self._by_key.get(key, ())

    def with_prefix(self, prefix: str) -> tuple[Aggregate, ...]:
        """Return the aggregates with a metadata key that has a prefix.

        :param prefix: The exact prefix.
        """
        return self.where(
            ('prefix', prefix),
            lambda aggregate: any(
                key.startswith(prefix) for key in aggregate.metadata
            ),
        )

    def with_prefix_like(self, prefix: str) -> tuple[Aggregate, ...]:
        """Return the aggregates with a key that has a prefix in any database.

        Use this for locks: a key counts if any supported database would match
        the prefix; see ``collation.py``.

        :param prefix: The prefix.
        """
        start = prefix.lower()
        return self.remember(
            ('prefix like', start), lambda: self._with_any(start)
        )

    def where(
        self, question: Hashable, answer: Callable[[Aggregate], bool]
    ) -> tuple[Aggregate, ...]:
        """Return the aggregates that meet a condition.

        :param question: The cache key of the result. It must contain
            everything that the condition depends on.
        :param answer: The condition; it may use only the aggregate.
        """
        return self.remember(
            ('where', question),
            lambda: tuple(a for a in self._aggregates if answer(a)),
        )

    def remember(self, question: Hashable, answer: Callable[[], _T]) -> _T:
        """Return a cached value that depends only on the aggregates.

        :param question: The cache key. It must contain everything else that
            the value depends on.
        :param answer: Computes the value.
        """
        remembered = self._remembered
        try:
            value = cast('_T', remembered[question])
        except KeyError:
            value = answer()
        else:
            # The last are those that were used last.
            remembered.pop(question, None)
        # One at a time: to free many large results takes long.
        while len(remembered) >= self._most:
            # A copy, because other threads may change it meanwhile.
            oldest, *_ = list(remembered)
            remembered.pop(oldest, None)
        remembered[question] = value
        return value

    def keys_like(self, prefix: str) -> frozenset[str]:
        """Return the metadata keys that have a prefix in any database.

        :param prefix: The prefix, which must be ASCII in lower case.
        """
        # Collect the distinct keys first, as many aggregates share them.
        keys = frozenset[str]().union(*(a.metadata for a in self._aggregates))
        return frozenset(
            key for key in keys if collation.may_start_with(key, prefix)
        )

    def _with_any(self, prefix: str) -> tuple[Aggregate, ...]:
        keys = self.keys_like(prefix)
        return tuple(
            a for a in self._aggregates if not keys.isdisjoint(a.metadata)
        )


# Prefix and value of metadata that locks are compared like the most lenient
# database does; see collation.py. The rest of a key is compared exactly. So
# trait:X=Required locks. A key like Trait:X locks too, but no request can open
# it, which is safe.


@dataclasses.dataclass(frozen=True)
class LockGroup:
    """Aggregates that are locked by exactly the same metadata keys.

    :param keys: The metadata keys, for example ``trait:CUSTOM_A``; a request
        needs all of them.
    """

    keys: frozenset[str]
    aggregates: tuple[Aggregate, ...]

    @lazy_property
    def uuids(self) -> frozenset[str]:
        """The uuids of the aggregates."""
        return frozenset(aggregate.uuid for aggregate in self.aggregates)


@dataclasses.dataclass(frozen=True)
class Closed:
    """The aggregates that are closed to a request.

    :param groups: The groups with a key that the request does not have.
    """

    groups: tuple[LockGroup, ...]
    uuids: frozenset[str]

    @lazy_property
    def aggregates(self) -> tuple[tuple[Aggregate, ...], ...]:
        """The aggregates of each group."""
        return tuple(group.aggregates for group in self.groups)


def lock_groups(
    index: AggregateIndex, prefix: str, value: str
) -> tuple[LockGroup, ...]:
    """Return the locked aggregates, grouped by their locks."""
    return index.remember(
        ('lock groups', prefix, value),
        lambda: _grouped(index, prefix.lower(), value.lower()),
    )


def closed(
    index: AggregateIndex, prefix: str, value: str, keys: Iterable[str]
) -> Closed:
    """Return the aggregates that are closed to a request."""
    groups = lock_groups(index, prefix, value)
    locking = index.remember(
        ('locking keys', prefix, value),
        lambda: frozenset(key for group in groups for key in group.keys),
    )
    # Ignore keys that open nothing, so that fewer results are cached.
    opening = locking.intersection(keys)
    return index.remember(
        ('closed', prefix, value, opening), lambda: _closed(groups, opening)
    )


def _grouped(
    index: AggregateIndex, prefix: str, value: str
) -> tuple[LockGroup, ...]:
    members: dict[frozenset[str], list[Aggregate]] = {}
    keys_like = index.keys_like(prefix)
    for aggregate in index:
        metadata = aggregate.metadata
        keys = frozenset(
            key
            for key in keys_like.intersection(metadata)
            if collation.may_equal(metadata[key], value)
        )
        if keys:
            members.setdefault(keys, []).append(aggregate)
    return tuple(
        LockGroup(keys, tuple(aggregates))
        for keys, aggregates in members.items()
    )


def _closed(groups: tuple[LockGroup, ...], keys: frozenset[str]) -> Closed:
    lock_groups = tuple(group for group in groups if not group.keys <= keys)
    return Closed(
        lock_groups, frozenset().union(*(each.uuids for each in lock_groups))
    )
