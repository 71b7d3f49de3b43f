# SPDX-License-Identifier: Apache-2.0
"""Names who is let in or refused while a change is made, step by step.

After each command, servers may use only hosts that they may use before or
after all of them, and all hosts that they may use before and after all of
them; what differs is a gap. The commands are carried out in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import itertools

from oslo_config import cfg

from isolate_aggregates import text
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.advice.admitted import Opening, needed, openings
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.answers.scope import Asker
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.effect.access_bounds import Bounds, State
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.repairs.commands import Commands


@dataclasses.dataclass(frozen=True)
class Gap:
    """Servers whose access is wrong after a command.

    :param step: The number of the command, from 1.
    :param let_in: The hosts that they may use neither before nor after all
        commands.
    :param refused: The hosts that they may use before and after all commands,
        but not now.
    """

    step: int
    asker: Asker
    let_in: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


def gaps(
    snapshot: Snapshot, todo: Commands, conf: cfg.ConfigOpts, filters: Pipeline
) -> tuple[Gap, ...]:
    """Return the gaps of commands that are carried out in their order.

    :param filters: All configured filters, whose locks ``sync`` maintains.
    """
    if len(todo) < 2:
        # There is nothing in between.
        return ()
    joining = {command.host for command in todo if command.host}
    before = scope.completed(snapshot, {*snapshot.index.by_host, *joining})
    afters = list(outcome.outcomes(before, todo, filters))
    requests = Requests(SnapshotCloud(snapshot), conf)
    bounds = Bounds(before, afters, chain.as_in_nova(conf), requests)
    found: list[Gap] = []
    state, has_gaps = bounds.start, False
    for run in _runs(todo):
        # Nothing can be wrong at the end.
        is_last = run.stop == len(todo)
        end = (
            bounds.end
            if is_last
            else bounds.after(state, afters[run.stop - 1])
        )
        end_gaps = [] if is_last else _gaps(run.stop, bounds, end)
        if has_gaps or end_gaps:
            # Now to say where they are.
            for number in run[:-1]:
                state = bounds.after(state, afters[number])
                found += _gaps(number + 1, bounds, state)
        found += end_gaps
        state, has_gaps = end, bool(end_gaps)
    return tuple(found)


def _gaps(number: int, bounds: Bounds, state: State) -> list[Gap]:
    return [Gap(number, *violation) for violation in bounds.violations(state)]


def _runs(todo: Commands) -> Iterator[range]:
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


def sentences(todo: Commands, found: Sequence[Gap]) -> Iterator[str]:
    """Yield sentences that describe gaps, first where servers get in."""
    for kind, says in (
        ('let_in', 'may use {}, which they may use neither before nor'),
        ('refused', 'may not use {}, which they may use before and'),
    ):
        for step, some in itertools.groupby(found, lambda gap: gap.step):
            command = commands.shown(todo[step - 1 : step])
            yield from (
                f'After command {step} ({command}), {servers(opening)} '
                f'{says.format(ranges.folded(opening.hosts))} after the '
                'change.'
                for opening in _alike(some, kind)
            )


def _alike(some: Iterable[Gap], kind: str) -> Iterable[Opening]:
    return openings({gap.asker: getattr(gap, kind) for gap in some})


def servers(opening: Opening) -> str:
    """Return which servers an opening is about."""
    names = map(text.quoted, opening.flavors)
    what = (
        f'servers of {text.named("flavor", names)}'
        if opening.flavors
        else 'servers of any flavor without extra specs'
    )
    return f'{what}{needed(opening)}'
