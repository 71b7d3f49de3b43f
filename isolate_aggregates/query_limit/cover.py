# SPDX-License-Identifier: Apache-2.0
"""Replaces forbidden aggregates by rollups, without changing the meaning."""

from collections.abc import Callable, Iterable
import dataclasses

from isolate_aggregates.aggregates.rollups import Rollup


@dataclasses.dataclass(frozen=True)
class Shortened:
    """What a query forbids instead of all that is forbidden.

    :param forbidden: Uuids of the Placement aggregates to forbid.
    :param rollups: Those among them that are rollups.
    :param replaced: How many aggregates the rollups stand for.
    """

    forbidden: frozenset[str]
    rollups: tuple[Rollup, ...] = ()
    replaced: int = 0


class Cover:
    """Rollups that stand for some forbidden aggregates, best first.

    A rollup is used only if all aggregates it stands for are forbidden;
    otherwise it would forbid more. An aggregate is replaced only if all its
    members are members of the rollup; otherwise less would be forbidden.

    :param forbidden: Uuids of the forbidden aggregates.
    :param rollups: Rollups, those of most aggregates first.
    :param covered: Returns the uuids of those aggregates of a rollup whose
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
        # How many are forbidden with none of the rollups, with one ...
        self._numbers = [len(forbidden)]
        self._found: dict[int, Shortened] = {}
        left = set(forbidden)
        for rollup in rollups:
            if len(left) < 2:
                break
            if (
                rollup.aggregates <= forbidden
                and len(rollup.aggregates & left) > 1
                and len(replaced := covered(rollup) & left) > 1
            ):
                self._steps.append((rollup, frozenset(replaced)))
                left -= replaced
                self._numbers.append(len(self._steps) + len(left))

    def within(self, most: int) -> Shortened | None:
        """Return what to forbid, with as few rollups as suffice.

        :param most: How many aggregates may be forbidden.
        :returns: None if all the rollups do not suffice.
        """
        for used, number in enumerate(self._numbers):
            if number <= most:
                if used not in self._found:
                    self._found[used] = self._with(used)
                return self._found[used]
        return None

    def _with(self, used: int) -> Shortened:
        rollups = tuple(rollup for rollup, _ in self._steps[:used])
        left = self._forbidden.difference(
            *(replaced for _, replaced in self._steps[:used])
        )
        return Shortened(
            left.union(rollup.uuid for rollup in rollups),
            rollups,
            len(self._forbidden) - len(left),
        )
