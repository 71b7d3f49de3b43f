# SPDX-License-Identifier: Apache-2.0
"""``reservation history list``: what was reserved, also after the end."""

import argparse
from collections.abc import Mapping, Sequence
import datetime
from typing import Any

from isolate_aggregates_reservations import events, history
from isolate_aggregates_reservations.commands import common, documents, times
from isolate_aggregates_reservations.history import PastReservation
from isolate_aggregates_reservations.reservation import needs
from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.documents import content

_HOUR = datetime.timedelta(hours=1)

_COLUMNS = (
    *('Id', 'Name', 'Note', 'Project', 'State', 'Created', 'Created By'),
    *('Start', 'End', 'Slots', 'VCPUs', 'RAM', 'Disk', 'Ephemeral', 'Swap'),
    *('Resources', 'Properties', 'Slot Hours', 'Open', 'Usable', 'Events'),
)

# In a table; csv and value have all columns.
_FOR_PEOPLE = (
    *('Id', 'Name', 'Project', 'State', 'Start', 'End', 'Slots'),
    *('Slot Hours', 'Usable', 'Events'),
)


class ShowHistory(common.WithTimes, common.ReservationLister):
    """Show what was reserved, by whom and when, and how it was changed.

    Reservations that have ended are kept for 400 days, or for the number of
    days in reservation_history_days of the aggregate of the hosts. The hours
    of slots are those between --since and --until, and not later than now:
    sold, open to servers, and usable, which is the part of what was sold that
    was open on hosts that were up. As json or yaml: one document with all
    events. The exit status is 1 if a reservation cannot be read.
    """

    columns = _COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for name, edge in (('--since', 'Start'), ('--until', 'End')):
            parser.add_argument(
                name,
                type=times.past,
                metavar='<time>',
                help=f'{edge} of the period, {common.TIME}, or a duration '
                'before now, such as 30d',
            )
        parser.add_argument(
            '--reservation',
            metavar='<reservation>',
            help='Show only the reservations with this id or name',
        )
        base.add_project_arguments(
            parser, 'Show only the reservations of this project, by name or id'
        )
        base.add_snapshot_argument(parser)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        with common.reading(self.app, args) as store:
            now = store.read_at or times.now()
            since, until = (
                moment and self.time(moment, now)
                for moment in (args.since, args.until)
            )
            found = history.read_history(
                store,
                now,
                since,
                until,
                base.project_from(args, store),
                args.reservation,
                self.log_unreadable,
            )
        has_names = any(past.reservation.name for past in found)
        return output.Report(
            document=lambda: documents.History(
                reservations=tuple(map(_document, found))
            ),
            columns=self.columns,
            rows=map(_row, found),
            people=[n for n in _FOR_PEOPLE if has_names or n != 'Name'],
            nothing='No reservation was found for that time.',
            # A bill would lack it.
            status=ExitStatus.ERROR if self.is_incomplete else ExitStatus.DONE,
        )


def _row(past: PastReservation) -> Sequence[Any]:
    values = content(_document(past))
    first = values['events'][0] if values['events'] else {}
    return common.cells(
        _COLUMNS,
        {
            **values,
            **values['shape'],
            **values['slot_hours'],
            'created': first.get('at'),
            'created_by': first.get('by') or '',
            'end': common.End(values['end']),
            'slots': values['amount'],
            'resources': _pairs(values['resources']),
            'properties': _pairs(values['properties']),
            'slot_hours': values['slot_hours']['sold'],
            'events': '; '.join(
                f'{event["at"]} {event["event"]}' for event in values['events']
            ),
        },
    )


def _pairs(values: Mapping[str, object]) -> str:
    return ' '.join(f'{key}={value}' for key, value in sorted(values.items()))


def _document(past: PastReservation) -> documents.PastReservation:
    reservation = past.reservation
    return documents.drawn(
        documents.PastReservation,
        past,
        reservation,
        flavor=reservation.flavor.name,
        properties=reservation.shape.extra_specs,
        resources={
            name: amount
            for name, amount in needs(reservation.flavor).items()
            if amount
        },
        slot_hours=documents.Hours(
            sold=round(past.time.sold / _HOUR, 4),
            open=round(past.time.open / _HOUR, 4),
            usable=round(past.time.usable / _HOUR, 4),
        ),
        events=tuple(
            documents.drawn(
                documents.Event, event, by=event.by or None, event=what
            )
            for event, what in events.sentences(reservation.events)
        ),
    )
