# SPDX-License-Identifier: Apache-2.0
"""Which commands must come before which others, whatever they do to access."""

from collections.abc import Collection, Iterator, Sequence
from types import MappingProxyType

from isolate_aggregates.tools.advice.commands import Command, Commands
from isolate_aggregates.tools.advice.outcome import parsed
from isolate_aggregates.tools.cloud.snapshot import Snapshot

# The parts of a cloud that a command changes: the kind of an object, its name,
# and the part of it. An empty name or part stands for all.
_Part = tuple[str, str, str]

_EVERYTHING: _Part = ('', '', '')

# The preferred order, by the first words of commands.
_RANKS = MappingProxyType(
    {
        ('trait', 'create'): 0,
        ('aggregate', 'create'): 1,
        ('resource', 'provider'): 2,
        ('aggregate', 'set'): 3,
        ('aggregate', 'add'): 4,
        ('flavor', 'create'): 5,
        ('flavor', 'set'): 5,
        ('flavor', 'unset'): 5,
        ('image', 'create'): 5,
        ('image', 'set'): 5,
        ('image', 'unset'): 5,
        ('aggregate', 'remove'): 6,
        ('aggregate', 'unset'): 7,
        ('aggregate', 'delete'): 8,
        ('flavor', 'delete'): 8,
        ('image', 'delete'): 8,
    }
)
_LAST = 9
_ZONE = 'availability_zone'


class Precedence:
    """The order that commands about the same part of an object keep."""

    def __init__(self, before: Snapshot, todo: Commands) -> None:
        self._todo = todo
        # The names of images are not unique.
        self._names = {
            **{('aggregate', str(a.id)): a.name for a in before.aggregates},
            **{('flavor', f.id): f.name for f in before.flavors},
        }
        self._parts = [frozenset(self._parts_of(each)) for each in todo]
        self._earlier: list[set[int]] = [set() for _ in todo]
        for later, earlier in _pairs(len(todo)):
            if _overlap(self._parts[earlier], self._parts[later]):
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
        words = _words(self._todo[number])
        return _RANKS.get((words[0], words[1] if words[1:] else ''), _LAST)

    def _object(self, number: int) -> str:
        return min(name for _, name, _ in self._parts[number])

    def _parts_of(self, command: Command) -> Iterator[_Part]:
        words = _words(command)
        _, options = parsed(command)
        keys = [p.partition('=')[0] for p in options.get('property', ())]
        match words:
            case ['aggregate', 'add' | 'remove', 'host', name, host]:
                yield 'aggregate', self._name('aggregate', name), f'={host}'
            case ['aggregate' | 'flavor' | 'image' as kind, 'set', name] if (
                'name' not in options
            ):
                zone = [_ZONE] if 'zone' in options else []
                for key in (*keys, *zone) or ['=']:
                    yield kind, self._name(kind, name), key
            case ['aggregate' | 'flavor' | 'image' as kind, 'unset', name]:
                for key in keys:
                    yield kind, self._name(kind, name), key
            case [
                'aggregate' | 'flavor' | 'image' as kind,
                'create' | 'delete' | 'set',
                name,
            ]:
                yield kind, self._name(kind, name), ''
            case ['trait', 'create', name]:
                yield 'trait', name, ''
            case ['resource', 'provider', part, 'set', uuid]:
                yield 'provider', uuid, part
                for trait in options.get('trait', ()):
                    # The trait must exist.
                    yield 'trait', trait, f'={uuid}'
            case _:
                yield _EVERYTHING

    def _name(self, kind: str, name: str) -> str:
        return self._names.get((kind, name), name)


def runs(todo: Commands) -> Iterator[range]:
    """Yield the numbers of commands that move different hosts, in a row.

    The use of a host depends on its own memberships alone. So within such a
    run, it is as before or as after it. Any other command is a run of its own.
    """
    start, hosts = 0, set[str]()
    for number, command in enumerate(todo):
        words = _words(command)
        host = (
            words[-1]
            if words[:1] == ['aggregate']
            and words[1:3] in (['add', 'host'], ['remove', 'host'])
            else ''
        )
        if not hosts or not host or host in hosts:
            if number:
                yield range(start, number)
            start, hosts = number, set()
        if host:
            hosts.add(host)
    if todo:
        yield range(start, len(todo))


def _words(command: Command) -> list[str]:
    words, _ = parsed(command)
    return words[1:]


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    return ((b, a) for b in range(count) for a in range(b))


def _pairs_of(step: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((step[b], step[a]) for b in range(len(step)) for a in range(b))


def _overlap(some: frozenset[_Part], others: frozenset[_Part]) -> bool:
    return any(
        (kind == other_kind or not (kind and other_kind))
        and (name == other_name or not (name and other_name))
        and (part == other_part or not (part and other_part))
        for kind, name, part in some
        for other_kind, other_name, other_part in others
    )
