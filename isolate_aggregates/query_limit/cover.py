# SPDX-License-Identifier: Apache-2.0
"""Replaces forbidden aggregates by rollups, without changing the meaning."""

from collections.abc import Callable, Iterable
import dataclasses

from isolate_aggregates.aggregates.rollups import Rollup


@dataclasses.dataclass(frozen=True)
class Shortened:
    """The aggregates that a shortened query forbids.

    :param forbidden: The uuids of the Placement aggregates to forbid.
    :param rollups: The uuids of the rollups among them.
    :param replaced: The number of aggregates that the rollups replace.
    """

    forbidden: frozenset[str]
    rollups: tuple[Rollup, ...] = ()
    replaced: int = 0


class Cover:
    """Rollups that can replace forbidden aggregates, the best first.

    A rollup is used only if all aggregates that it stands for are forbidden;
    otherwise the query would forbid too many hosts. An aggregate is replaced
    only if all its members are members of the rollup; otherwise the query
    would forbid too few.

    :param rollups: The rollups, sorted by number of aggregates, descending.
    :param covered: Returns the uuids of the aggregates of a rollup whose
        members are all members of the rollup.
    """

    def __init__(
        self,
        forbidden: frozenset[str],
        rollups: Iterable[Rollup],
        covered: Callable[[Rollup], frozenset[str]],
    ) -> None:
        self._forbidden = forbidden
        self._steps: list[tuple[Rollup, frozenset[str]]] = []
        # The number of forbidden aggregates when using 0, 1, ... rollups.
        self._numbers = [len(forbidden)]
        self._found: dict[int, Shortened] = {}
        remaining = set(forbidden)
        for rollup in rollups:
            if len(remaining) < 2:
                break
            if (
                rollup.aggregates <= forbidden
                and len(rollup.aggregates & remaining) > 1
                and len(replaced := covered(rollup) & remaining) > 1
            ):
                self._steps.append((rollup, frozenset(replaced)))
                remaining -= replaced
                self._numbers.append(len(self._steps) + len(remaining))

    def within(self, most: int) -> Shortened | None:
        """Return the aggregates to forbid, using as few rollups as possible.

        :returns: None if even all rollups do not suffice.
        """
        for used, number in enumerate(self._numbers):
            if number <= most:
                if used not in self._found:
                    self._found[used] = self._with(used)
                return self._found[used]
        return None

    def _with(self, used: int) -> Shortened:
        rollups = tuple(rollup for rollup, _ in self._steps[:used])
        remaining = self._forbidden.difference(
            *(replaced for _, replaced in self._steps[:used])
        )
        return Shortened(
            remaining.union(rollup.uuid for rollup in rollups),
            rollups,
            len(self._forbidden) - len(remaining),
        )
