# SPDX-License-Identifier: Apache-2.0
"""Which commands must come before which others, whatever they do to access."""

from collections.abc import Collection, Iterator, Sequence

from isolate_aggregates.tools.advice.commands import Commands, Part


class Precedence:
    """The order that commands about the same part of an object keep."""

    def __init__(self, todo: Commands) -> None:
        self._todo = todo
        self._earlier: list[set[int]] = [set() for _ in todo]
        for later, earlier in _pairs(len(todo)):
            if _overlap(todo[earlier].parts, todo[later].parts):
                self._earlier[later].add(earlier)

    def allows(self, step: Collection[int], done: Collection[int]) -> bool:
        """Return whether commands may follow those that are done."""
        before = {*step, *done}
        return all(self._earlier[number] <= before for number in step)

    def partitions(self) -> Iterator[list[tuple[int, ...]]]:
        """Yield the commands as ever smaller steps, in the preferred order.

        The commands of a step may be carried out in their order.
        """
        numbers = sorted(range(len(self._todo)), key=self._rank)
        for key in (
            self._rank,
            lambda number: (self._rank(number), self._object(number)),
            lambda number: (self._rank(number), number),
        ):
            steps: dict[object, list[int]] = {}
            for number in numbers:
                steps.setdefault(key(number), []).append(number)
            partition = [tuple(step) for step in steps.values()]
            if self._is_possible(partition):
                yield partition

    def _is_possible(self, steps: Sequence[tuple[int, ...]]) -> bool:
        done: set[int] = set()
        for step in steps:
            if any(
                later in self._earlier[earlier]
                for later, earlier in _pairs_of(step)
            ):
                return False
        remaining = list(steps)
        while remaining:
            for step in remaining:
                if self.allows(step, done):
                    done.update(step)
                    remaining.remove(step)
                    break
            else:
                return False
        return True

    def _rank(self, number: int) -> int:
        return self._todo[number].rank

    def _object(self, number: int) -> str:
        return min(name for _, name, _ in self._todo[number].parts)


def runs(todo: Commands) -> Iterator[range]:
    """Yield the numbers of commands that move different hosts, in a row.

    The use of a host depends on its own memberships alone. So within such a
    run, it is as before or as after it. Any other command is a run of its own.
    """
    start, hosts = 0, set[str]()
    for number, command in enumerate(todo):
        host = command.host
        if not hosts or not host or host in hosts:
            if number:
                yield range(start, number)
            start, hosts = number, set()
        if host:
            hosts.add(host)
    if todo:
        yield range(start, len(todo))


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    return ((b, a) for b in range(count) for a in range(b))


def _pairs_of(step: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((step[b], step[a]) for b in range(len(step)) for a in range(b))


def _overlap(some: frozenset[Part], others: frozenset[Part]) -> bool:
    return any(
        (kind == other_kind or not (kind and other_kind))
        and (name == other_name or not (name and other_name))
        and (part == other_part or not (part and other_part))
        for kind, name, part in some
        for other_kind, other_name, other_part in others
    )
