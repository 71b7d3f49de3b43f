# SPDX-License-Identifier: Apache-2.0
"""``reservation repair`` and ``reservation reconcile``."""

import argparse
from collections.abc import Callable, Iterable, Sequence
import datetime
from typing import Any

from oslo_log import log as logging

from isolate_aggregates import reservations
from isolate_aggregates.reservations.commands import common, times
from isolate_aggregates.reservations.conditions import (
    FailedHosts,
    Move,
    no_host,
)
from isolate_aggregates.tools.cli import base, consent, periodic

LOG = logging.getLogger(__name__)


class RepairReservations(consent.Confirming, common.ReservationLister):
    """Move slots from hosts that are down, disabled, deleted or too small.

    Slots with a server do not move; evacuate the server. The exit status is 3
    if some slots fit nowhere, or there are other problems.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        common.add_reservation(parser, '?', '; default: all')
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Repair them."""
        store = common.store(self.app.conf, self.app.connect())
        name = parsed_args.reservation
        statuses: Sequence[reservations.Status] = ()

        def find() -> list[str]:
            nonlocal statuses
            now = times.now()
            statuses = (
                [reservations.show(store, name, now)]
                if name
                else reservations.list_reservations(
                    store, now, self.log_unreadable
                )
            )
            due, remnants = reservations.to_repair(store, now, name)
            return [
                *(
                    f'repair reservation {status.reservation.id}: {problem}'
                    for status in statuses
                    if status.reservation.id in due
                    for problem in status.problems or ('complete what is due',)
                ),
                *(
                    f'delete {remnant} of an ended reservation'
                    for remnant in remnants
                ),
            ]

        if not parsed_args.yes and not self.agrees(parsed_args, find(), find):
            return self.rows(statuses)
        return self.rows(
            reservations.repair(store, store.now(), name, self.log_unreadable)
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, or 3 if there are still problems.
        """
        return super().run(parsed_args) or self.exit_status()


class ReconcileReservations(common.ReservationLister):
    """Start and end reservations that are due, and complete others.

    Also completes interrupted commands. It must run regularly; several at the
    same time do no harm. It does not ask, because it only does what other
    commands were told to do. The exit status is 3 if there are still problems.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
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
        self._usage = parser
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Reconcile them."""
        store = common.store(self.app.conf, self.app.connect())
        return self.rows(
            reservations.reconcile_all(
                store, store.now(), on_unreadable=self.log_unreadable
            )
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Reconcile once, or repeatedly; return the exit status."""
        if parsed_args.watch:
            self._watch(parsed_args.watch, parsed_args.heal_after)
            return 0
        if parsed_args.heal_after:
            self._usage.error('--heal-after needs --watch')
        return super().run(parsed_args) or self.exit_status()

    def _watch(self, pause: int, heal_after: int | None) -> None:
        # One store for all rounds, so that its caches are used.
        store = common.store(self.app.conf, self.app.connect())
        last_lines: dict[str, str] = {}
        problems: frozenset[tuple[str, str]] = frozenset()
        unreadable: list[str] = []
        move: Move = no_host
        if heal_after:
            move = FailedHosts(datetime.timedelta(seconds=heal_after))

        def once(stopped: Callable[[], bool]) -> None:
            nonlocal last_lines, problems, unreadable
            current: list[str] = []
            statuses = reservations.reconcile_all(
                store,
                store.now(),
                move,
                lambda problem: current.append(str(problem)),
            )
            for problem in current:
                if problem not in unreadable:
                    LOG.error('%s', problem)
            unreadable = current
            problems = common.log_problems(statuses, problems)
            lines = {s.reservation.id: common.line(s) for s in statuses}
            for name, line in lines.items():
                if last_lines.get(name) != line:
                    self.app.stdout.write(f'{line}\n')
            self.app.stdout.flush()
            last_lines = lines

        periodic.watch(once, pause)
