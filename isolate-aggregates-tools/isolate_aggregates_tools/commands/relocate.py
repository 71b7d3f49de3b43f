# SPDX-License-Identifier: Apache-2.0
"""``relocation create``: plans migrations, shows them, and makes them."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import itertools
import logging
from typing import Any

from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cli import (
    base,
    output,
    preview,
    progress,
    terminal,
)
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.effect.documents import Effect
from isolate_aggregates_tools.operate import names
from isolate_aggregates_tools.room import carry, documents, formats, shown
from isolate_aggregates_tools.room.plan import Batch, Planner, Relocation
from isolate_aggregates_tools.room.task import INCLUDABLE, Left, Task
from isolate_aggregates_tools.wording import unabridged

LOG = logging.getLogger(__name__)


_RESULT = 'Result'


class Relocate(preview.Previewing, output.ReportLister):
    """Plan migrations that empty hosts, bring servers home, or make room.

    As few servers as possible move, each to a host that its lock, zone, server
    group and reservation allow, in an order in which each fits when its turn
    comes. With a yes or --yes the plan is carried out, and stops at the first
    migration that goes wrong; run it again to go on. The exit status is 4 if
    servers are left, 1 if something went wrong, and 3 if moves are only shown.
    """

    columns = (*shown.MOVE_COLUMNS, _RESULT)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--host',
            action='append',
            default=[],
            dest='hosts',
            metavar='<host>',
            help='Empty this host; may be repeated',
        )
        parser.add_argument(
            '--aggregate',
            action='append',
            default=[],
            dest='aggregates',
            metavar='<aggregate>',
            help='Empty the hosts of this aggregate; may be repeated',
        )
        parser.add_argument(
            '--out-of-place',
            action='store_true',
            help='Bring servers home that run where they may not, on all '
            'hosts or on those given',
        )
        parser.add_argument(
            '--room-for',
            metavar='<flavor>',
            help='Make room for servers of this flavor',
        )
        parser.add_argument(
            '--number',
            type=base.positive,
            default=1,
            metavar='<number>',
            help='With --room-for: for this number of servers; default: 1',
        )
        parser.add_argument(
            '--image',
            metavar='<image>',
            help='With --room-for: the image of these servers',
        )
        base.add_project_arguments(
            parser,
            'With --room-for: name or id of the project of these servers',
        )
        parser.add_argument(
            '--rolling',
            action='store_true',
            help='Show in which order the hosts can be empty one after '
            'another, and which together, so that each server moves once',
        )
        parser.add_argument(
            '--together',
            type=base.positive,
            metavar='<number>',
            help='With --rolling: the most hosts that are empty together',
        )
        parser.add_argument(
            '--parallel',
            type=base.positive,
            default=1,
            metavar='<number>',
            help='How many migrations run at the same time; default: 1',
        )
        parser.add_argument(
            '--cold',
            action='store_true',
            help='Migrate all servers cold; by default only those that are '
            'off, and all others live',
        )
        parser.add_argument(
            '--include',
            action='append',
            default=[],
            choices=list(INCLUDABLE),
            help='Move servers with pinned CPUs or devices too, '
            'which only Nova can judge; may be repeated',
        )
        parser.add_argument(
            '--seconds',
            type=base.positive,
            default=60,
            metavar='<seconds>',
            help='Time to look for fewer moves; default: 60',
        )
        parser.add_argument(
            '--max-wait',
            type=base.positive,
            default=3600,
            metavar='<seconds>',
            help='Time to wait for migrations that run at the same time; '
            'default: 3600',
        )
        parser.add_argument(
            '--as',
            dest='form',
            choices=list(formats.FORMATS),
            help='Only write the plan: as commands of the openstack client, '
            'or as audits of Watcher with its strategy actuator',
        )
        base.add_snapshot_argument(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Plan and carry out; return the exit status."""
        self._check(parsed_args)
        base.check_live(self._usage, parsed_args, 'yes')
        if parsed_args.form:
            return self._write_plan(parsed_args)
        code = super().run(parsed_args)
        if self.reported.error:
            raise self.reported.error
        return code

    def _check(self, args: argparse.Namespace) -> None:
        places = args.hosts or args.aggregates
        if not (places or args.out_of_place or args.room_for):
            self._usage.error(
                'one of --host, --aggregate, --out-of-place and --room-for '
                'is required'
            )
        if args.rolling and (
            not places or args.out_of_place or args.room_for or args.yes
        ):
            self._usage.error(
                '--rolling needs --host or --aggregate, and shows the order '
                'only: empty each batch with --host'
            )
        if args.together and not args.rolling:
            self._usage.error('--together has no effect without --rolling')
        if not args.room_for and (
            args.number > 1 or args.image or args.project
        ):
            self._usage.error(
                '--number, --image and --project have no effect without '
                '--room-for'
            )

    def report(self, args: argparse.Namespace) -> output.Report:
        """Plan, and carry it out if the user agrees."""
        args.dry_run = args.dry_run or args.rolling or bool(args.snapshot)

        found: _Planned

        def find() -> list[str]:
            nonlocal found
            found = self._planned(args)
            return [
                formats.sentence(move)
                for plan in found.plans
                for move in plan.moves
            ]

        def effect() -> list[str]:
            [*_, last] = found.plans
            return self.preview(
                args,
                lambda: preview.loaded('moves')(
                    self.app, found.before, last.after
                ),
            )

        outcome: carry.Outcome | None = None
        if self.agrees(args, find(), find, effect):
            [plan] = found.plans
            outcome = carry.carry_out(
                plan.rounds,
                clouds.live_cloud(self.app).nova,
                args.max_wait,
                progress.changing,
            )
            for failure in outcome.failures:
                LOG.error('%s', failure)
        results = (
            {m.server.id: text for m, text in outcome.results}
            if outcome
            else {}
        )
        columns, rows = found.table(results)
        status = ExitStatus.NO if found.is_incomplete else ExitStatus.DONE
        if outcome and outcome.failures:
            status = ExitStatus.ERROR
        return output.Report(
            document=lambda: found.document(results, self.effect_document()),
            columns=columns,
            rows=rows,
            before=found.lines(None if args.long else shown.MOST),
            after=itertools.chain(
                self.effect_lines() if self.is_undone else (),
                (f'Not known: {sentence}.' for sentence in found.not_known),
            ),
            status=status,
            error=outcome.interruption if outcome else None,
        )

    def _planned(self, args: argparse.Namespace) -> '_Planned':
        with clouds.opened(self.app, args) as cloud:
            snapshot, releases = clouds.read_all(cloud)
            planner = Planner(snapshot, self.app.conf, releases)
            task = self._task(args, snapshot, planner, cloud)
        batches: Sequence[Batch] = ()
        left: Sequence[Left]
        if args.rolling:
            batches, left = planner.rolling(task, args.parallel, args.together)
            found = [batch.plan for batch in batches]
        else:
            plan = planner.plan(task, args.parallel, args.seconds)
            found, left = [plan], plan.left
        return _Planned(
            snapshot, found, batches, left, tuple(planner.not_known)
        )

    def _task(
        self,
        args: argparse.Namespace,
        snapshot: Snapshot,
        planner: Planner,
        cloud: Any,
    ) -> Task:
        known = {p.host for p in snapshot.providers if p.host}
        hosts = set(args.hosts)
        for host in args.hosts:
            if host not in known:
                raise errors.NotFound(
                    'host', host, snapshot.origin, sorted(known)
                )
        for name in args.aggregates:
            hosts |= names.aggregate(
                snapshot.aggregates, name, snapshot.origin
            ).hosts
        wanted = None
        if args.room_for:
            kind = planner.kind_of(
                snapshot.flavor(args.room_for),
                snapshot.image(args.image) if args.image else None,
                base.project_from(args, cloud),
            )
            wanted = kind, args.number
        homecoming = frozenset[str]()
        if args.out_of_place:
            at = {s.id: s.host for s in snapshot.known_servers.placed}
            homecoming = frozenset(
                each
                for each in planner.misplaced
                if not hosts or at[each] in hosts
            )
        return Task(
            frozenset() if args.out_of_place else frozenset(hosts),
            homecoming,
            wanted,
            frozenset(args.include),
            args.cold,
        )

    def _write_plan(self, args: argparse.Namespace) -> int:
        """Write the plan as commands, and nothing else."""
        found = self._planned(args)
        if found.is_incomplete:
            _, *lines = shown.plan_lines(found.plans, found.left, shown.MOST)
            for line in lines:
                LOG.warning('%s', line)
        rounds = [moves for plan in found.plans for moves in plan.rounds]
        with unabridged():
            self._write(
                terminal.Shell(line)
                for line in formats.FORMATS[args.form](rounds)
            )
        if found.is_incomplete:
            return ExitStatus.NO
        return ExitStatus.LEFT if any(rounds) else ExitStatus.DONE


@dataclasses.dataclass(frozen=True)
class _Planned:
    """What was planned.

    :param before: The cloud before the moves.
    :param batches: Hosts that are empty one after the other; empty unless
        that was asked for.
    :param left: The servers that do not move.
    """

    before: Snapshot
    plans: Sequence[Relocation]
    batches: Sequence[Batch]
    left: Sequence[Left]
    not_known: Sequence[str]

    @property
    def is_incomplete(self) -> bool:
        """Whether a plan does not do all that was asked for."""
        return bool(self.left or sum(plan.missing for plan in self.plans))

    def table(
        self, results: Mapping[str, str]
    ) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        """Return the columns and the rows.

        :param results: What became of the moves, by id of the server; empty
            if none was tried.
        """
        rows: list[Sequence[Any]] = []
        first = 1
        for plan in self.plans:
            rows += shown.move_rows(plan, first)
            first += len(plan.rounds)
        if not results:
            return shown.MOVE_COLUMNS, rows
        return (
            (*shown.MOVE_COLUMNS, _RESULT),
            [(*row, results.get(row[2], 'not tried')) for row in rows],
        )

    def document(
        self, results: Mapping[str, str], effect: Effect | None
    ) -> documents.Relocation:
        """Return the document of the plan and its results."""
        [plan, *_] = [*self.plans, None]
        return documents.Relocation(
            plan=None
            if self.batches or plan is None
            else shown.plan_document(plan),
            batches=tuple(
                documents.Batch(
                    hosts=tuple(batch.hosts),
                    again=batch.again,
                    **vars(shown.plan_document(batch.plan)),
                )
                for batch in self.batches
            ),
            left=shown.left_document(self.left),
            results=results,
            effect=effect,
            not_known=tuple(self.not_known),
        )

    def lines(self, most: int | None) -> Iterable[str]:
        """Yield how many moves there are, and what is left."""
        yield from shown.plan_lines(self.plans, self.left, most)
        yield from shown.batch_lines(self.batches)
