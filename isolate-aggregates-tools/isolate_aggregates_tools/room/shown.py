# SPDX-License-Identifier: Apache-2.0
"""Shows plans and survival: as lines, rows and documents."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from isolate_aggregates.text import counted, listed, plural, quoted
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.room import documents, program
from isolate_aggregates_tools.room.plan import Batch, Relocation
from isolate_aggregates_tools.room.survival import Failure, Margin, Survival
from isolate_aggregates_tools.room.task import Left

# The most servers and rows of the room behind locks that are named at once.
MOST = 20

MOVE_COLUMNS = (
    'Round',
    'Server',
    'Id',
    'Project',
    'Flavor',
    'From',
    'To',
    'Migration',
)
SURVIVAL_COLUMNS = ('Hosts', 'Servers', 'Without a host', 'Locks')


def survival_lines(survival: Survival) -> Iterator[str]:
    """Yield what happens in the worst case."""
    which = (
        'a host fails'
        if survival.failures == 1
        else f'{survival.failures} hosts fail'
    )
    examined = len(survival.cases)
    if survival.is_survived:
        known = ', as far as is known' if survival.not_known else ''
        yield f'If {which}, every server has somewhere to go{known}.'
    else:
        worst = survival.cases[0]
        number = len(worst.stranded)
        bad = sum(bool(case.stranded) for case in survival.cases)
        yield (
            f'If {which}, {counted(number, "server")} may have nowhere to go: '
            f'with {_hosts(worst)}. That is so in {bad} of '
            f'{counted(examined, "case")}.'
        )
        if worst.least < number:
            yield _bound(worst.least)
    if examined < survival.combinations:
        yield (
            f'Examined were {examined} of {survival.combinations} '
            'combinations of hosts: each host with those that its '
            'servers need most.'
        )


def _bound(least: int) -> str:
    """Say what another placement may achieve."""
    better = (
        f'Other placements leave at least {least} of them without a host'
        if least
        else 'Other placements may have a host for each of them'
    )
    if program.is_available():
        return f'{better}; the solver has not found the best one in time.'
    return (
        f'{better}; to find the best one, install the solver HiGHS, which is '
        'missing: isolate-aggregates-tools[room].'
    )


def survival_rows(survival: Survival) -> list[tuple[Any, ...]]:
    """Return the failures that leave servers without a host."""
    return [
        (
            _hosts(case),
            case.servers,
            len(case.stranded),
            listed({name for s in case.stranded for name in s.locks}, None),
        )
        for case in survival.cases
        if case.stranded
    ]


def stranded_lines(survival: Survival, most: int | None) -> Iterator[str]:
    """Yield the servers without a host of the worst case.

    :param most: The most servers; None for all.
    """
    if survival.is_survived:
        return
    worst = survival.cases[0]
    yield ''
    yield f'Without a host if {_fail(worst)}:'
    for each in worst.stranded[:most]:
        yield f'  {_server(each.server)}: {each.reason}'
    if most is not None and len(worst.stranded) > most:
        yield f'  and {len(worst.stranded) - most} more, which -f json shows'


def margin_lines(survival: Survival, most: int | None) -> Iterator[str]:
    """Yield the room behind each lock.

    :param most: The most lines; None for all.
    """
    if survival.margins:
        yield ''
        yield 'Room on the other hosts, in the worst case of each:'
    for margin in survival.margins[:most]:
        yield f'  {_margin(margin)}'
    if most is not None and len(survival.margins) > most:
        yield f'  and {len(survival.margins) - most} more, which -f json shows'


def survival_document(survival: Survival) -> documents.Survival:
    """Return survival as a JSON document."""
    return documents.Survival(
        failures=survival.failures,
        survived=survival.is_survived,
        examined=len(survival.cases),
        combinations=survival.combinations,
        cases=tuple(
            documents.Case(
                hosts=case.hosts,
                reserved_hosts=case.spares,
                servers=case.servers,
                without_host=tuple(
                    documents.Stranded(
                        **_server_document(each.server), reason=each.reason
                    )
                    for each in case.stranded
                ),
                at_least=case.least,
            )
            for case in survival.cases
            if case.stranded
        ),
        locks=tuple(
            documents.LockSurvival(lock=lock, without_host=number)
            for lock, number in survival.locks.items()
        ),
        room=survival.margins,
        not_evaluated=survival.not_evaluated,
        not_known=survival.not_known,
    )


def moves_summary(number: int, least: int) -> str:
    """Return how many moves there are, and whether fewer would do."""
    if not number:
        return 'Nothing to move.'
    proof = 'least possible' if number <= least else f'at least {least}'
    return f'{counted(number, "move")}, {proof}.'


def plan_lines(
    plans: Sequence[Relocation], left: Iterable[Left], most: int | None
) -> Iterator[str]:
    """Yield what plans do, and what they leave.

    :param plans: The plans; if several, one after another.
    :param most: The most servers that are named; None for all.
    """
    moves = [move for plan in plans for move in plan.moves]
    least = (
        plans[0].least
        if len(plans) == 1
        else len({move.server.id for move in moves})
    )
    yield moves_summary(len(moves), least)
    if not program.is_available() and not all(p.is_proven for p in plans):
        yield (
            'There may be a better plan: the solver HiGHS is missing, which '
            'isolate-aggregates-tools[room] installs.'
        )
    for plan in plans:
        if plan.wanted:
            yield (
                f'Afterwards there is room for {plan.wanted - plan.missing} '
                f'of {counted(plan.wanted, "server")}.'
            )
    left = list(left)
    for each in left[:most]:
        yield f'Left: {_server(each.server)}: {each.reason}.'
    if most is not None and len(left) > most:
        yield f'and {len(left) - most} more, which -f json shows.'


def move_rows(plan: Relocation, first: int) -> list[tuple[Any, ...]]:
    """Return the moves as rows.

    :param first: The number of the first round.
    """
    return [
        (
            number,
            move.server.name,
            move.server.id,
            move.server.project_id,
            move.server.flavor.name if move.server.flavor else '',
            move.source,
            move.target,
            'live' if move.live else 'cold',
        )
        for number, moves in enumerate(plan.rounds, first)
        for move in moves
    ]


def batch_lines(batches: Iterable[Batch]) -> Iterator[str]:
    """Yield which hosts are empty together, in which order."""
    for number, batch in enumerate(batches, 1):
        moves = counted(len(batch.plan.moves), 'move')
        again = f', {batch.again} of them again' if batch.again else ''
        yield f'{number}. {ranges.folded(batch.hosts)}: {moves}{again}'


def plan_document(plan: Relocation) -> documents.Plan:
    """Return a plan as a JSON document."""
    return documents.Plan(
        moves=tuple(
            documents.Move(
                round=number,
                **_server_document(move.server),
                source=move.source,
                target=move.target,
                live=move.live,
            )
            for number, moves in enumerate(plan.rounds, 1)
            for move in moves
        ),
        at_least=plan.least,
        left=left_document(plan.left),
        emptied=tuple(sorted(plan.emptied)),
        room=documents.Room(wanted=plan.wanted, missing=plan.missing)
        if plan.wanted
        else None,
    )


def left_document(left: Iterable[Left]) -> tuple[documents.Left, ...]:
    """Return the servers that do not move, and why not."""
    return tuple(
        documents.Left(
            **_server_document(each.server),
            host=each.server.host,
            reason=each.reason,
        )
        for each in left
    )


def _server_document(server: Server) -> dict[str, Any]:
    return {
        'id': server.id,
        'name': server.name,
        'project': server.project_id,
        'flavor': server.flavor and server.flavor.name,
    }


def _server(server: Server) -> str:
    return (
        f'server {quoted(server.name)} ({server.id}) of project '
        f'{server.project_id} on {server.host}'
    )


def _hosts(case: Failure) -> str:
    return ranges.folded(case.hosts)


def _fail(case: Failure) -> str:
    return f'{_hosts(case)} {plural(len(case.hosts), "fails", "fail")}'


def _margin(margin: Margin) -> str:
    short = (
        f', {counted(margin.hosts_short, "host")} short'
        if margin.hosts_short
        else ''
    )
    return (
        f'{margin.lock}, flavor {margin.flavor}: {margin.needed} needed, '
        f'{margin.free} free{short}'
    )
