# SPDX-License-Identifier: Apache-2.0
"""``reservation calendar``: free capacity over time, or an iCalendar file."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import datetime
from typing import Any

from oslo_config import cfg

from isolate_aggregates import exception, reservations
from isolate_aggregates.reservations import views
from isolate_aggregates.reservations.commands import common, times
from isolate_aggregates.reservations.store import Problem
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates.tools import files
from isolate_aggregates.tools.cli import base, output


class ShowCalendar(output.ReportLister):
    """Show the free capacity of hosts for reservations over time.

    A row is a time in which the free capacity of a host does not change. All
    reservations count, and what other servers use. As json or yaml: one
    document with the hosts and their periods. With --output: the reservations,
    as a file for calendar programs.
    """

    nothing = 'There are no hosts for reservations.'

    @staticmethod
    def picture(
        conf: cfg.ConfigOpts,
        connection: Connection,
        now: datetime.datetime,
        days: int,
    ) -> views.Calendar:
        """Return the free capacity from now on, for the report page."""
        end = times.resolve(datetime.timedelta(days=days), now)
        store = common.store(conf, connection)
        return views.Calendar(
            now, end, reservations.calendar(store, now, now, end)
        )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        common.add_start(parser, '--start', 'Start of the period')
        parser.add_argument(
            '--end',
            type=times.moment,
            default='30d',
            metavar='<time>',
            help=f'End of the period, {common.TIME}, or a duration from its '
            'start, such as 7d; default: 30d',
        )
        base.add_output_argument(
            parser,
            'Write an iCalendar file with the reservations of that period '
            'instead; - for standard output',
        )
        self._usage = parser
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show the free capacity, or write an iCalendar file."""
        if parsed_args.output is None:
            return super().run(parsed_args)
        self._write_ical(parsed_args)
        return 0

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Read the calendar of the hosts."""
        now = times.now()
        self._resolve(parsed_args, now)
        store = common.store(self.app.conf, self.app.connect())
        self._hosts = reservations.calendar(store, now, self._start, self._end)
        return ('Host', 'Start', 'End', 'Slots', 'Free'), list(self._rows())

    def _resolve(
        self, args: argparse.Namespace, now: datetime.datetime
    ) -> None:
        try:
            self._start = times.resolve(args.start, now)
            self._end = times.resolve(args.end, self._start)
        except argparse.ArgumentTypeError as exc:
            self._usage.error(str(exc))

    def _write_ical(self, args: argparse.Namespace) -> None:
        try:
            from isolate_aggregates.reservations.commands import ical
        except ImportError as exc:
            raise exception.InvalidRequest(
                'An iCalendar file needs icalendar; install '
                'isolate-aggregates[calendar].'
            ) from exc
        now = times.now()
        self._resolve(args, now)
        views.check_period(self._start, self._end)
        path = args.output
        if path != '-':
            with _write_errors(path):
                files.check(path, ical.MARK)
        store = common.store(self.app.conf, self.app.connect())
        problems: list[Problem] = []
        content = ical.calendar(
            (
                status
                for status in reservations.list_reservations(
                    store, now, problems.append
                )
                if _is_within(status.reservation, self._start, self._end)
            ),
            now,
            self._end,
        )
        for problem in problems:
            if isinstance(problem, exception.ReservationError):
                # Calendar programs would delete events that are missing.
                raise problem
        if path == '-':
            self.app.stdout.write(content)
            return
        with _write_errors(path), files.replacing(path, ical.MARK) as stream:
            stream.write(content)
        self.app.stdout.write(f'Wrote {path}.\n')

    def document(self) -> dict[str, Any]:
        """Return the hosts with their periods as a JSON document."""
        return {
            'start': times.text(self._start),
            'end': times.text(self._end),
            'hosts': [
                {
                    'host': host.host,
                    'obstacle': host.obstacle,
                    'periods': [
                        {
                            'start': times.text(period.start),
                            'end': times.text(period.end),
                            'slots': period.slots,
                            'free': dict(period.free),
                        }
                        for period in host.periods
                    ],
                }
                for host in self._hosts
            ],
        }

    def _rows(self) -> Iterable[Sequence[Any]]:
        for host in self._hosts:
            if host.obstacle:
                yield self._row(
                    host.host, self._start, self._end, '', host.obstacle
                )
            for period in host.periods:
                yield self._row(
                    host.host,
                    period.start,
                    period.end,
                    period.slots,
                    _inline(period.free),
                )

    @staticmethod
    def _row(
        host: str,
        start: datetime.datetime,
        end: datetime.datetime,
        slots: int | str,
        free: str,
    ) -> Sequence[Any]:
        return host, times.text(start), times.text(end), slots, free


def _is_within(
    reservation: reservations.Reservation,
    start: datetime.datetime,
    end: datetime.datetime,
) -> bool:
    return reservation.start < end and (
        reservation.end is None or reservation.end > start
    )


@contextlib.contextmanager
def _write_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise exception.InvalidRequest(
            f'The calendar cannot be written to {path}: {exc.strerror or exc}.'
        ) from exc


def _inline(free: Mapping[str, int]) -> str:
    return ', '.join(f'{amount} {name}' for name, amount in free.items())
