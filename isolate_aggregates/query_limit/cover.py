# SPDX-License-Identifier: Apache-2.0
"""Replaces forbidden aggregates by rollups, without changing the meaning."""

from collections.abc import Callable, Iterable, Sequence
import dataclasses

from isolate_aggregates.aggregates.rollups import Rollup

# Combinations are tried of at most so many rollups, and at most so many. It
# takes some milliseconds.
MOST_ROLLUPS = 32
MOST_COMBINATIONS = 2_000

_Step = tuple[Rollup, frozenset[str]]


@dataclasses.dataclass(frozen=True)
class Replacement:
    """The aggregates that a shortened query forbids.

    :param forbidden: The uuids of the Placement aggregates to forbid.
    :param replaced: The uuids of the aggregates that the rollups replace.
    """

    forbidden: frozenset[str]
    rollups: tuple[Rollup, ...] = ()
    replaced: frozenset[str] = frozenset()


class Cover:
    """Rollups that can replace forbidden aggregates, the best first.

    A rollup is used only if all aggregates that it stands for are forbidden;
    otherwise the query would forbid too many hosts. An aggregate is replaced
    only if all its members are members of the rollup; otherwise the query
    would forbid too few.

    To find the fewest aggregates to forbid can take very long if many rollups
    overlap. So the largest rollups are taken first. Only if these do not
    suffice, combinations are tried, up to :data:`MOST_COMBINATIONS` of up to
    :data:`MOST_ROLLUPS` rollups.

    :param rollups: The rollups, sorted by number of aggregates, descending.
    :param coverage: Returns the uuids of the aggregates of a rollup whose
        members are all members of the rollup.
    """

    def __init__(
        self,
        forbidden: frozenset[str],
        rollups: Iterable[Rollup],
        coverage: Callable[[Rollup], frozenset[str]],
    ) -> None:
        self._forbidden = forbidden
        self._coverage = coverage
        self._usable = [r for r in rollups if r.aggregates <= forbidden]
        self._steps: list[_Step] = []
        # The number of forbidden aggregates when using 0, 1, ... rollups.
        self._numbers = [len(forbidden)]
        self._results: dict[int, Replacement | None] = {}
        # Whether all combinations were tried that could suffice.
        self.is_complete = True
        remaining = set(forbidden)
        for rollup in self._usable:
            if len(remaining) < 2:
                break
            if (
                len(rollup.aggregates & remaining) > 1
                and len(aggregates := coverage(rollup) & remaining) > 1
            ):
                self._steps.append((rollup, frozenset(aggregates)))
                remaining -= aggregates
                self._numbers.append(len(self._steps) + len(remaining))

    def within(self, most: int) -> Replacement | None:
        """Return the aggregates to forbid, using few rollups.

        :returns: None if the rollups do not suffice, or no combination was
            found that does; see ``is_complete``.
        """
        if most not in self._results:
            self._results[most] = self._within(most)
        return self._results[most]

    def _within(self, most: int) -> Replacement | None:
        for used, number in enumerate(self._numbers):
            if number <= most:
                return self._with(self._steps[:used])
        steps = self._search(most)
        return None if steps is None else self._with(steps)

    def _with(self, steps: Sequence[_Step]) -> Replacement:
        rollups = tuple(rollup for rollup, _ in steps)
        remaining = self._forbidden.difference(
            *(aggregates for _, aggregates in steps)
        )
        return Replacement(
            remaining.union(rollup.uuid for rollup in rollups),
            rollups,
            self._forbidden - remaining,
        )

    def _search(self, most: int) -> Sequence[_Step] | None:
        """Return a combination of rollups that suffices; None if not found."""
        steps = self._largest()
        if len(steps) > MOST_ROLLUPS:
            self.is_complete = False
            return None
        # Sets as integers are much faster.
        bits = {uuid: 1 << n for n, uuid in enumerate(self._forbidden)}
        search = _Search(
            [sum(map(bits.__getitem__, step[1])) for step in steps], most
        )
        numbers = search.run((1 << len(bits)) - 1)
        self.is_complete = numbers is not None or search.is_complete
        return (
            None if numbers is None else [steps[number] for number in numbers]
        )

    def _largest(self) -> list[_Step]:
        """Return the rollups that no other one makes superfluous.

        :returns: At most one more than :data:`MOST_ROLLUPS`.
        """
        steps: list[_Step] = []
        rollups = [(rollup, self._coverage(rollup)) for rollup in self._usable]
        for rollup, aggregates in sorted(rollups, key=lambda s: -len(s[1])):
            if len(aggregates) > 1 and not any(
                aggregates <= other for _, other in steps
            ):
                steps.append((rollup, aggregates))
                if len(steps) > MOST_ROLLUPS:
                    break
        return steps


class _Search:
    """Looks for few sets that cover most of a set; branch and bound.

    :param sets: The sets, as bits.
    :param most: The highest sum of the number of sets and of what they do not
        cover.
    """

    def __init__(self, sets: Sequence[int], most: int) -> None:
        self._sets = sets
        self._most = most
        self._tried = 0

    @property
    def is_complete(self) -> bool:
        """Whether all combinations were tried."""
        return self._tried <= MOST_COMBINATIONS

    def run(self, remaining: int) -> tuple[int, ...] | None:
        """Return the numbers of the sets; None if none were found."""
        return self._extend((), remaining, range(len(self._sets)))

    def _extend(
        self, used: tuple[int, ...], remaining: int, numbers: Iterable[int]
    ) -> tuple[int, ...] | None:
        count = remaining.bit_count()
        room = self._most - len(used)
        if count <= room:
            return used
        self._tried += 1
        sizes = sorted(
            (
                (size, number)
                for number in numbers
                if (size := (self._sets[number] & remaining).bit_count()) > 1
            ),
            reverse=True,
        )
        if (
            not self.is_complete
            or not sizes
            # Even without overlaps, these sets would be too many, or would
            # cover too little.
            or -(-count // sizes[0][0]) > room
            or count - sum(size - 1 for size, _ in sizes) > room
        ):
            return None
        (_, best), *others = sizes
        rest = [number for _, number in others]
        sets = self._extend((*used, best), remaining & ~self._sets[best], rest)
        return self._extend(used, remaining, rest) if sets is None else sets
