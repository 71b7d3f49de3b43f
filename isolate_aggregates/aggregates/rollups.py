# SPDX-License-Identifier: Apache-2.0
"""Rollup aggregates: one Placement aggregate that stands for many.

The rollup of a lock is a Placement aggregate without a host aggregate in Nova.
Its members are the providers of all hosts in any aggregate with that lock.
Forbidding it excludes the same hosts as forbidding each of those aggregates.
Its uuid is derived from its name, so it need not be stored.

If a family has many locks, for example a trait for each of a thousand
customers, rollups of single locks are not enough: for a request with one of
the keys, the other 999 are still forbidden. Such locks form a tree by the
first hexadecimal digits of their uuids, and each branch has a rollup too. Then
all locks except one are a few branches at each level.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import hashlib
import uuid

from isolate_aggregates.aggregates.aggregate import Lock

# These must never change: the uuids of existing rollups derive from them.
_LOCKS = uuid.UUID('153806e1-479f-4e0f-b498-639fa4a6e00a')
_BRANCHES = uuid.UUID('4101a050-d85a-4bac-8cb4-4aa9243328b3')

# Hexadecimal digits.
_FANOUT = 16
# Enough for 16 ** 4 locks per family; with more, the lowest branches only get
# longer.
_DEPTH = 3


@dataclasses.dataclass(frozen=True)
class Rollup:
    """A Placement aggregate that stands for several aggregates.

    :param name: The name of the lock, or of the branch as
        ``<family>*<digits>``, for messages.
    :param aggregates: The uuids of the aggregates that it stands for, at least
        two.
    """

    name: str
    uuid: str
    aggregates: frozenset[str]


def uuid_of(name: str) -> str:
    """Return the uuid of the rollup of a lock."""
    return _uuid(_LOCKS, name)


def rollups(locks: Iterable[Lock]) -> tuple[Rollup, ...]:
    """Return the rollups of some locks, those of most aggregates first.

    A single aggregate needs none.
    """
    families: dict[str, list[Lock]] = {}
    for lock in locks:
        families.setdefault(lock.family, []).append(lock)
    usable = [
        rollup
        for family, members in families.items()
        for rollup in _of_family(family, members)
        if len(rollup.aggregates) > 1
    ]
    return tuple(sorted(usable, key=lambda r: (-len(r.aggregates), r.name)))


def _of_family(family: str, locks: list[Lock]) -> Iterator[Rollup]:
    numbered_locks = [(uuid_of(lock.name), lock) for lock in locks]
    for number, lock in numbered_locks:
        yield Rollup(lock.name, number, _uuids([lock]))
    if len(locks) > _FANOUT:
        yield from _branches(family, '', numbered_locks)


def _branches(
    family: str, digits: str, numbered_locks: list[tuple[str, Lock]]
) -> Iterator[Rollup]:
    name = f'{family}*{digits}'
    yield Rollup(
        name,
        _uuid(_BRANCHES, name),
        _uuids(lock for _, lock in numbered_locks),
    )
    if len(numbered_locks) <= _FANOUT or len(digits) == _DEPTH:
        return
    parts: dict[str, list[tuple[str, Lock]]] = {}
    for number, lock in numbered_locks:
        parts.setdefault(number[len(digits)], []).append((number, lock))
    for digit, part in parts.items():
        # A single lock has its own rollup.
        if len(part) > 1:
            yield from _branches(family, digits + digit, part)


def _uuid(namespace: uuid.UUID, name: str) -> str:
    """Return ``uuid.uuid5``, also for text that cannot be encoded as UTF-8.

    Metadata in a cloud file may have lone surrogates, for example.
    """
    text = namespace.bytes + name.encode('utf-8', 'surrogatepass')
    digest = hashlib.sha1(text, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


def _uuids(locks: Iterable[Lock]) -> frozenset[str]:
    return frozenset(a.uuid for lock in locks for a in lock.aggregates)
