# SPDX-License-Identifier: Apache-2.0
"""Finds a safe order of commands.

An order is safe if, after each of its commands, all servers may use only hosts
that they may use before or after all of them, and may use all hosts that they
may use before and after all of them. So no server without the key gets in, and
none with the key is refused, at any moment.

This is found by carrying the commands out in memory, with commands of the same
kind as one step at first. Where this has gaps, steps become smaller: one for
each object, then one for each command. If no order is safe, the chosen one
lets in the fewest servers and, among these orders, refuses the fewest.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import heapq
import itertools

from isolate_aggregates import text
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools import ranges
from isolate_aggregates.tools.advice import commands, outcome
from isolate_aggregates.tools.advice.commands import Commands
from isolate_aggregates.tools.advice.openings import (
    Opening,
    needed,
    openings,
)
from isolate_aggregates.tools.answers import scope
from isolate_aggregates.tools.answers.requests import Requests
from isolate_aggregates.tools.answers.scope import Asker
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.effect.formats.access_bounds import Bounds, State
from isolate_aggregates.tools.effect.formats.precedence import Precedence, runs

# How many sets of steps are evaluated for each size of steps. All of eight
# steps are 256.
_MOST_STATES = 256
# How many small steps are arranged, if larger ones have gaps.
_MOST_STEPS = 24

# The numbers of hosts in several availability zones, which Nova refuses, of
# servers that are let in, and of those that are refused.
_Cost = tuple[int, int, int]
_FREE: _Cost = (0, 0, 0)


@dataclasses.dataclass(frozen=True)
class Gap:
    """Servers whose access is wrong after a command.

    :param step: The number of the command in the order, from 1.
    :param let_in: The hosts that they may use neither before nor after all
        commands.
    :param refused: The hosts that they may use before and after all commands,
        but not now.
    """

    step: int
    asker: Asker
    let_in: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Order:
    """Commands in order, with the gaps that no order avoids."""

    commands: Commands
    gaps: tuple[Gap, ...] = ()

    @property
    def sentences(self) -> Iterator[str]:
        """Sentences that describe the gaps, first where servers get in."""
        for kind, says in (
            ('let_in', 'may use {}, which they may use neither before nor'),
            ('refused', 'may not use {}, which they may use before and'),
        ):
            for step, gaps in itertools.groupby(
                self.gaps, lambda gap: gap.step
            ):
                hosts = {gap.asker: getattr(gap, kind) for gap in gaps}
                for opening in openings(hosts):
                    names = ranges.folded(opening.hosts)
                    yield (
                        f'{self._after(step)} {_servers(opening)} '
                        f'{says.format(names)} after the change.'
                    )

    def _after(self, step: int) -> str:
        command = commands.shown(self.commands[step - 1 : step])
        return f'After command {step} ({command}),'


def _servers(opening: Opening) -> str:
    names = map(text.quoted, opening.flavors)
    what = (
        f'servers of {text.named("flavor", names)}'
        if opening.flavors
        else 'servers of any flavor without extra specs'
    )
    return f'{what}{needed(opening)}'


def safe(
    snapshot: Snapshot,
    todo: Commands,
    pipeline: Pipeline,
    filters: Pipeline,
    requests: Requests,
) -> Order:
    """Return the commands in a safe order, or in the best one.

    Commands whose order changes the result keep theirs.

    :param pipeline: The filters that decide, and those of Nova.
    :param filters: All configured filters, whose locks ``sync`` maintains.
    :param requests: Builds the requests of servers.
    """
    if len(todo) < 2:
        # There is nothing in between.
        return Order(todo)
    return _Search(snapshot, todo, pipeline, filters, requests).best()


def judged(
    snapshot: Snapshot,
    todo: Commands,
    pipeline: Pipeline,
    filters: Pipeline,
    requests: Requests,
) -> Order:
    """Return the commands in their own order, with its gaps."""
    if len(todo) < 2:
        return Order(todo)
    return _Search(snapshot, todo, pipeline, filters, requests).own()


# The numbers of commands that are carried out together.
_Step = tuple[int, ...]


class _Search:
    def __init__(
        self,
        snapshot: Snapshot,
        todo: Commands,
        pipeline: Pipeline,
        filters: Pipeline,
        requests: Requests,
    ) -> None:
        self._todo = todo
        self._filters = filters
        before = scope.completed(
            snapshot,
            {
                *snapshot.index.by_host,
                *filter(None, (command.host for command in todo)),
            },
        )
        afters = list(outcome.outcomes(before, todo, filters))
        self._precedence = Precedence(todo)
        self._bounds = Bounds(before, afters, pipeline, requests)
        # By the commands that are done.
        self._states = {
            frozenset[int](): self._bounds.start,
            frozenset(range(len(todo))): self._bounds.end,
        }

    def best(self) -> Order:
        """Return the best order that was found."""
        orders: list[tuple[_Cost, Order]] = []
        last: list[_Step] = []
        for steps in self._precedence.partitions():
            if steps == last:
                continue
            if orders and len(steps) > _MOST_STEPS:
                break
            last = steps
            cost, order = self.order(self._arranged(steps))
            if cost == _FREE:
                return order
            orders.append((cost, order))
        if not orders:
            return self.own()
        _, best = min(orders, key=lambda pair: pair[0])
        return best

    def own(self) -> Order:
        """Return the commands in their own order."""
        _, order = self.order([(n,) for n in range(len(self._todo))])
        return order

    def order(self, steps: Sequence[_Step]) -> tuple[_Cost, Order]:
        """Return the commands of steps in order, with their gaps."""
        numbers = [number for step in steps for number in step]
        todo = tuple(self._todo[number] for number in numbers)
        cost = _FREE
        gaps: list[Gap] = []
        state, has_gaps = self._bounds.start, False
        for run in runs(todo):
            end = self._state(numbers[: run.stop], state, run)
            end_gaps = self._gaps(run.stop, end)
            if has_gaps or end_gaps:
                # Now to say where they are.
                for number in run[:-1]:
                    here = range(number, number + 1)
                    state = self._state(numbers[: here.stop], state, here)
                    gaps += self._gaps(here.stop, state)
            gaps += end_gaps
            cost = _sum(cost, (len(self._torn(end)), 0, 0))
            state, has_gaps = end, bool(end_gaps)
        return _sum(cost, _cost(gaps)), Order(todo, tuple(gaps))

    def _state(
        self, done: Sequence[int], previous: State, last: Sequence[int]
    ) -> State:
        """Return the state after commands.

        :param last: The places in ``done`` of those since the previous state.
        """
        key = frozenset(done)
        if key not in self._states:
            todo = tuple(self._todo[done[place]] for place in last)
            *_, snapshot = outcome.outcomes(
                previous.snapshot, todo, self._filters
            )
            self._states[key] = self._bounds.state(snapshot, previous)
        return self._states[key]

    def _torn(self, state: State) -> frozenset[str]:
        """Return the hosts that are in several zones only in between."""
        return state.torn - self._bounds.start.torn - self._bounds.end.torn

    def _gaps(self, number: int, state: State) -> list[Gap]:
        return [
            Gap(number, *violation)
            for violation in self._bounds.violations(state)
        ]

    def _arranged(self, steps: Sequence[_Step]) -> list[_Step]:
        """Return steps in the order with the least cost.

        The state of the cloud depends only on the set of steps that are done.
        So this is the cheapest path from none to all. Of equally cheap ones,
        it is the one with the preferred steps first.
        """
        serial = itertools.count()
        start = _Path(_FREE, (), self._bounds.start)
        costs: dict[frozenset[int], _Cost] = {}
        # The cheapest path first, then the longest, then the preferred one.
        # Each has the steps that have not been tried as its next one.
        queue = [(start.cost, len(steps), next(serial), start, self._next(
            start, steps
        ))]  # fmt: skip
        while True:
            entry = heapq.heappop(queue)
            _, remaining, _, path, untried = entry
            if not remaining:
                return [steps[number] for number in path.done]
            if len(costs) >= _MOST_STATES:
                return [steps[n] for n in self._completed(path, steps).done]
            number = next(untried, None)
            if number is None:
                continue
            heapq.heappush(queue, entry)
            longer = self._followed(path, number, steps)
            state = frozenset(longer.done)
            if state not in costs or longer.cost < costs[state]:
                costs[state] = longer.cost
                heapq.heappush(
                    queue,
                    (
                        longer.cost,
                        remaining - 1,
                        next(serial),
                        longer,
                        self._next(longer, steps),
                    ),
                )

    def _completed(self, path: '_Path', steps: Sequence[_Step]) -> '_Path':
        """Return a path to its end, by the step that is cheapest then."""
        while len(path.done) < len(steps):
            path = min(
                (
                    self._followed(path, number, steps)
                    for number in self._next(path, steps)
                ),
                key=lambda longer: longer.cost,
            )
        return path

    def _next(self, path: '_Path', steps: Sequence[_Step]) -> Iterator[int]:
        """Yield the numbers of the steps that may follow a path."""
        done = {each for number in path.done for each in steps[number]}
        for number, step in enumerate(steps):
            if number not in path.done and self._precedence.allows(step, done):
                yield number

    def _followed(
        self, path: '_Path', number: int, steps: Sequence[_Step]
    ) -> '_Path':
        path_end = (*path.done, number)
        done = [each for step in path_end for each in steps[step]]
        last = range(len(done) - len(steps[number]), len(done))
        state = self._state(done, path.state, last)
        gaps = self._gaps(0, state)
        cost = _sum(_cost(gaps), (len(self._torn(state)), 0, 0))
        return _Path(_sum(path.cost, cost), path_end, state)


@dataclasses.dataclass(frozen=True)
class _Path:
    """Steps that are done in this order, and what that results in."""

    cost: _Cost
    done: tuple[int, ...]
    state: State


def _cost(gaps: Sequence[Gap]) -> _Cost:
    return (
        0,
        sum(len(gap.let_in) for gap in gaps),
        sum(len(gap.refused) for gap in gaps),
    )


def _sum(one: _Cost, other: _Cost) -> _Cost:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
