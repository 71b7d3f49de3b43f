# SPDX-License-Identifier: Apache-2.0
"""``reservation calendar list``: free capacity over time."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
import datetime
from typing import Any

from oslo_config import cfg

from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import views
from isolate_aggregates_reservations.commands import common, documents, times
from isolate_aggregates_tools.cli import base, output


class ShowCalendar(common.WithTimes, output.ReportLister):
    """Show the free capacity of hosts for reservations over time.

    A row is a time in which the free capacity of a host does not change. All
    reservations count, and what other servers use. As json or yaml: one
    document with the hosts and their periods.
    """

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
        return reservations.calendar(store, now, now, end)

    columns = ('Host', 'Start', 'End', 'Slots', 'Free')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
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
        base.add_snapshot_argument(parser)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        with common.reading(self.app, args) as store:
            now = store.read_at or times.now()
            start = self.time(args.start, now)
            end = self.time(args.end, start)
            found = reservations.calendar(store, now, start, end)
        return output.Report(
            document=lambda: documents.drawn(documents.Calendar, found),
            columns=self.columns,
            rows=_rows(found),
            nothing='There are no hosts for reservations.',
        )


def _rows(calendar: views.Calendar) -> Iterable[Sequence[Any]]:
    start, end = times.text(calendar.start), times.text(calendar.end)
    for host in calendar.hosts:
        if host.obstacle:
            yield host.host, start, end, '', host.obstacle
        for period in host.periods:
            yield (
                host.host,
                times.text(period.start),
                times.text(period.end),
                period.slots,
                _inline(period.free),
            )


def _inline(free: Mapping[str, int]) -> str:
    return ', '.join(f'{amount} {name}' for name, amount in free.items())
