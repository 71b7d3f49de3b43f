# SPDX-License-Identifier: Apache-2.0
"""The aggregates that metadata locks, grouped by their locks.

Prefix and value of the metadata are compared like the most lenient database
does; see ``collation.py``. The rest of a key is compared exactly. So
``trait:X=Required`` locks. A key like ``Trait:X`` locks too, but no request
can open it, which is safe.
"""

from collections.abc import Iterable
import dataclasses

from isolate_aggregates.aggregates import collation
from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.aggregates.index import AggregateIndex


@dataclasses.dataclass(frozen=True)
class LockGroup:
    """Aggregates that are locked by exactly the same metadata keys.

    :param keys: The metadata keys, for example ``trait:CUSTOM_A``; a request
        needs all of them.
    """

    keys: frozenset[str]
    aggregates: tuple[Aggregate, ...]


@dataclasses.dataclass(frozen=True)
class Closed:
    """The aggregates that are closed to a request.

    :param groups: The groups with a key that the request does not have.
    """

    groups: tuple[LockGroup, ...]
    uuids: frozenset[str]


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
        lock_groups,
        frozenset(a.uuid for group in lock_groups for a in group.aggregates),
    )
