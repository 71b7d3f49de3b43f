# SPDX-License-Identifier: Apache-2.0
"""``reservation repair`` and ``reservation reconcile``."""

import argparse
from collections.abc import Callable, Container, Iterable, Iterator
import dataclasses
import datetime

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors
from isolate_aggregates_reservations.api import Status
from isolate_aggregates_reservations.commands import common, documents, times
from isolate_aggregates_reservations.failed_hosts import (
    FailedHosts,
    Move,
    no_host,
)
from isolate_aggregates_reservations.parts import clause, tried
from isolate_aggregates_reservations.status import Kind, Problem
from isolate_aggregates_tools.cli import base, consent, output, periodic


class RepairReservations(consent.Confirming, common.ReservationLister):
    """Move slots from hosts that are down, disabled, deleted or too small.

    Slots with a server do not move. With --from, reservations leave a host
    together with their servers: each gets the same number of slots on other
    hosts, all at once, or is refused if they do not fit. Old slots with a
    server stay, closed to others, until the server has been evacuated or
    migrated. The exit status is 3 until then, if some slots fit nowhere, or if
    there are other problems.
    """

    columns = common.COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_reservation(parser, '?', '; default: all')
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            '--from',
            action='append',
            dest='hosts',
            metavar='<host>',
            help='Name of a compute node to leave; may be repeated',
        )
        which.add_argument(
            '--call-off',
            action='store_true',
            help='Stay on the hosts that --from named; servers that are still '
            'there get their slots back',
        )
        parser.add_argument(
            '--evacuate',
            action='store_true',
            help='Evacuate the servers of nodes whose compute service is '
            'down, which the reservations leave; all such nodes, or those '
            'that --from names',
        )
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        store = common.store(self.app.conf, self.app.connect())
        if args.reservation:
            args.reservation = common.id_of(store, args.reservation)
        is_move = bool(args.hosts or args.call_off or args.evacuate)
        statuses: list[Status] = []

        def find() -> list[str]:
            nonlocal statuses
            now, name = times.now(), args.reservation
            if is_move:
                statuses = self._move(store, args, now, True)
                return list(_words(statuses))
            statuses = self._present(store, name, now)
            return reservations.planned_repair(
                store, statuses, now, is_of_all=name is None
            )

        if self.goes_ahead(args, find):
            statuses = (
                self._move(store, args, store.now(), False)
                if is_move
                else reservations.repair(
                    store, store.now(), args.reservation, self.log_unreadable
                )
            )
        listed = self.listed(statuses, self.status_of(statuses))
        planned = self.changes if self.is_undone else ()
        return dataclasses.replace(
            listed,
            document=lambda: documents.Repaired(
                reservations=tuple(map(common.document, statuses)),
                planned=tuple(planned),
            ),
            after=('', 'To be done:', *planned) if planned else (),
        )

    def _present(
        self,
        store: reservations.ReservationStore,
        name: str | None,
        now: datetime.datetime,
    ) -> list[Status]:
        if name:
            return [reservations.show(store, name, now)]
        return reservations.list_reservations(store, now, self.log_unreadable)

    def _moving(
        self,
        store: reservations.ReservationStore,
        args: argparse.Namespace,
        now: datetime.datetime,
    ) -> Iterator[tuple[Status, list[str]]]:
        """Yield reservations with the hosts that each is to leave."""
        hosts = {host.name: host for host in reservations.list_hosts(store)}
        for name in args.hosts or ():
            if name not in hosts:
                raise errors.no_host(name)
        leave = args.hosts or [
            host.name
            for host in hosts.values()
            if args.evacuate and host.has_failed
        ]
        for status in self._present(store, args.reservation, now):
            there = [name for name in sorted(status.hosts) if name in leave]
            if args.reservation and args.hosts:
                # It is an error if there are no slots on one of them.
                there = args.hosts
            if there or (args.call_off and status.reservation.leaving):
                yield status, there

    def _move(
        self,
        store: reservations.ReservationStore,
        args: argparse.Namespace,
        now: datetime.datetime,
        dry_run: bool,
    ) -> list[Status]:
        moving = {
            before.reservation.id: (before, hosts)
            for before, hosts in self._moving(store, args, now)
        }
        statuses = {name: before for name, (before, _) in moving.items()}

        def move(name: str) -> None:
            statuses[name] = reservations.move(
                store, name, now, moving[name][1], args.evacuate, dry_run
            )

        for name, error in tried(moving, move).items():
            if args.reservation:
                raise error
            problem = Problem(Kind.OTHER, clause(error))
            before = statuses[name]
            statuses[name] = dataclasses.replace(
                before, found=(problem, *before.found)
            )
        return list(statuses.values())


def _words(statuses: Iterable[Status]) -> Iterator[str]:
    for status in statuses:
        for words in status.planned:
            is_of_server = words.startswith('evacuate ')
            of = f'reservation {status.reservation.id}: '
            yield words if is_of_server else of + words


class ReconcileReservations(common.ReservationLister):
    """Start and end reservations that are due, and complete others.

    Also completes interrupted commands. It must run regularly; several at the
    same time do no harm. It does not ask, because it only does what other
    commands were told to do. The exit status is 3 if there are still problems.
    """

    columns = common.COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--watch',
            type=base.positive,
            metavar='<seconds>',
            help='Repeat at this interval, and write a line for each '
            'reservation that has changed',
        )
        parser.add_argument(
            '--heal-after',
            type=base.positive,
            metavar='<seconds>',
            help='With --watch: move slots without a server from a host whose '
            'compute service has been down for this many seconds; by default '
            'they stay, because hosts usually come back',
        )
        parser.add_argument(
            '--yes',
            action='store_true',
            help='Has no effect, as this command never asks; it is accepted '
            'like by all commands that change something',
        )
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        store = common.store(self.app.conf, self.app.connect())
        statuses = reservations.reconcile_all(
            store, store.now(), on_unreadable=self.log_unreadable
        )
        return self.listed(statuses, self.status_of(statuses))

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Reconcile once, or repeatedly; return the exit status."""
        if parsed_args.watch:
            self._watch(parsed_args.watch, parsed_args.heal_after)
            return 0
        if parsed_args.heal_after:
            self._usage.error('--heal-after needs --watch')
        return super().run(parsed_args)

    def _watch(self, pause: int, heal_after: int | None) -> None:
        # One store for all rounds, so that its caches are used.
        store = common.store(self.app.conf, self.app.connect())
        lines: dict[str, str] = {}
        logged: Container[str] = ()
        move: Move = no_host
        if heal_after:
            move = FailedHosts(datetime.timedelta(seconds=heal_after))

        def once(stopped: Callable[[], bool]) -> None:
            nonlocal lines, logged
            unreadable: list[str] = []
            statuses = reservations.reconcile_all(
                store,
                store.now(),
                move,
                lambda problem: unreadable.append(str(problem)),
            )
            logged = common.log_problems(statuses, unreadable, logged)
            before = lines
            lines = {s.reservation.id: common.line(s) for s in statuses}
            for name, line in lines.items():
                if before.get(name) != line:
                    self.app.stdout.write(f'{line}\n')
            self.app.stdout.flush()

        periodic.watch(once, pause)
