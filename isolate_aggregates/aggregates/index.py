# SPDX-License-Identifier: Apache-2.0
"""An immutable snapshot of all aggregates, arranged for quick questions.

Everything that depends on the aggregates alone is worked out once per
snapshot, when it is first asked for, and kept. Threads may share an index: at
worst two of them work out the same answer.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
import dataclasses
import types

from isolate_aggregates.aggregates.aggregate import Aggregate


@dataclasses.dataclass(frozen=True)
class LockGroup:
    """Aggregates that are locked by exactly the same metadata keys.

    :param keys: The metadata keys, such as ``trait:CUSTOM_A``; all of them
        have to be opened.
    :param aggregates: The aggregates, in the order of the snapshot.
    """

    keys: frozenset[str]
    aggregates: tuple[Aggregate, ...]


class AggregateIndex:
    """All aggregates of a cloud at one moment.

    :param aggregates: The aggregates. The index keeps their order.
    """

    def __init__(self, aggregates: Iterable[Aggregate] = ()) -> None:
        self._aggregates = tuple(aggregates)
        by_key: dict[str, list[Aggregate]] = {}
        for aggregate in self._aggregates:
            for key in aggregate.metadata:
                by_key.setdefault(key, []).append(aggregate)
        self._by_key = types.MappingProxyType(
            {key: tuple(found) for key, found in by_key.items()}
        )
        self._found: dict[Hashable, tuple[Aggregate, ...]] = {}
        self._locks: dict[tuple[str, str], tuple[LockGroup, ...]] = {}

    def __iter__(self) -> Iterator[Aggregate]:
        return iter(self._aggregates)

    def __len__(self) -> int:
        return len(self._aggregates)

    def with_key(self, key: str) -> tuple[Aggregate, ...]:
        """Return the aggregates that have a metadata key.

        :param key: The key, exactly as written.
        """
        return self._by_key.get(key, ())

    def with_prefix(self, prefix: str) -> tuple[Aggregate, ...]:
        """Return the aggregates with a metadata key that starts so.

        :param prefix: The first characters of the key, exactly as written.
        """
        return self.where(
            ('prefix', prefix),
            lambda aggregate: any(
                key.startswith(prefix) for key in aggregate.metadata
            ),
        )

    def where(
        self, question: Hashable, answer: Callable[[Aggregate], bool]
    ) -> tuple[Aggregate, ...]:
        """Return the aggregates for which some condition holds.

        :param question: What is asked; the answer is remembered by it, so it
            has to name everything that the condition depends on.
        :param answer: The condition; it may look at the aggregate alone.
        """
        found = self._found.get(question)
        if found is None:
            found = tuple(a for a in self._aggregates if answer(a))
            self._found[question] = found
        return found

    def locks(self, prefix: str, value: str) -> tuple[LockGroup, ...]:
        """Return the aggregates locked by some metadata, grouped by locks.

        The prefix is compared without regard to case, the rest of the key
        and the value exactly. That is what Nova's in-tree filter does on
        SQLite; its ``LIKE`` ignores case on MySQL too. A key such as
        ``Trait:X`` thus locks, and as nothing can ask for it, stays locked:
        the safe reading of a mistake.

        :param prefix: The first characters of the keys that lock.
        :param value: The value with which they lock.
        """
        groups = self._locks.get((prefix, value))
        if groups is None:
            groups = self._find_locks(prefix.lower(), value)
            self._locks[prefix, value] = groups
        return groups

    def _find_locks(self, prefix: str, value: str) -> tuple[LockGroup, ...]:
        length = len(prefix)
        found: dict[frozenset[str], list[Aggregate]] = {}
        for aggregate in self._aggregates:
            keys = frozenset(
                key
                for key, held in aggregate.metadata.items()
                if held == value and key[:length].lower() == prefix
            )
            if keys:
                found.setdefault(keys, []).append(aggregate)
        return tuple(
            LockGroup(keys, tuple(members)) for keys, members in found.items()
        )
