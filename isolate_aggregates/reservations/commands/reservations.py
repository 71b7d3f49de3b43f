# SPDX-License-Identifier: Apache-2.0
"""``reservation show``, ``list``, ``update`` and ``end``."""

import argparse
from collections.abc import Iterable, Sequence
import datetime
from typing import Any

from isolate_aggregates import exception, reservations
from isolate_aggregates.cli import base
from isolate_aggregates.reservations import State, Status
from isolate_aggregates.reservations.commands import common, times


class ShowReservation(common.OneReservation):
    """Show everything about a reservation."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        common.add_reservation(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """Look it up."""
        site = common.site(self.app.conf, self.app.connect())
        found = reservations.show(site, parsed_args.reservation, times.now())
        return common.one(found)


class ListReservations(common.ReservationLister):
    """Show all reservations, their slots, and what is wrong with them.

    In the order of their starts. As json or yaml: one document with all there
    is to know of each.
    """

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """List the reservations."""
        site = common.site(self.app.conf, self.app.connect())
        return self.rows(reservations.list_reservations(site, times.now()))


class UpdateReservation(common.OneReservation):
    """Give a reservation more or fewer slots, or another end.

    Before its start or after it. What does not fit is refused, and so are
    fewer slots than have servers; it then stays as it was.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        common.add_reservation(parser)
        parser.add_argument(
            '--amount',
            type=base.positive,
            metavar='<number>',
            help='How many slots it shall have',
        )
        parser.add_argument(
            '--end',
            type=times.end,
            default=reservations.KEEP,
            metavar='<time>',
            help=f'When it shall end, {common.TIME}, or how long after its '
            'start, such as 7d, or never',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """Change it."""
        end = parsed_args.end
        if parsed_args.amount is None and end is reservations.KEEP:
            self._usage.error('give --amount or --end')
        site = common.site(self.app.conf, self.app.connect())
        name = parsed_args.reservation
        if isinstance(end, datetime.timedelta):
            found = reservations.show(site, name, times.now())
            end = self.time(end, found.reservation.start)
        return common.one(
            reservations.update(
                site, name, times.now(), parsed_args.amount, end
            )
        )


class EndReservation(common.OneReservation):
    """End a reservation now, and delete its servers.

    They are deleted for good, shelved ones too. The status is 3 as long as
    some are being deleted: run it again, or let reconcile do the rest.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        common.add_reservation(parser)
        parser.add_argument(
            '--yes', action='store_true', help='Do not ask whether to do it'
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """End it."""
        site = common.site(self.app.conf, self.app.connect())
        name = parsed_args.reservation
        if not parsed_args.yes:
            self._ask(site, reservations.show(site, name, times.now()))
        self._ended = reservations.end(site, name, times.now())
        return common.one(self._ended)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, or 3 as long as servers are being deleted.
        """
        code = super().run(parsed_args)
        is_over = self._ended.state is State.ENDED
        return code or (0 if is_over else common.NOT_YET)

    def _ask(self, site: reservations.Site, found: Status) -> None:
        """Ask whether to do it.

        :raises InvalidRequest: if the answer is no, or nobody can answer.
        """
        number = len(site.compute.servers(found.reservation))
        servers = '1 server' if number == 1 else f'{number} servers'
        question = (
            f'Reservation {found.reservation.id} of project '
            f'{found.reservation.project} has {servers}'
        )
        if not self.app.stdin.isatty():
            raise exception.InvalidRequest(
                f'{question}; give --yes to end it and to delete them for '
                'good.'
            )
        self.app.stderr.write(f'{question}. Delete them for good? [y/N] ')
        self.app.stderr.flush()
        if self.app.stdin.readline().strip().lower() not in ('y', 'yes'):
            raise exception.InvalidRequest('Nothing was done.')
