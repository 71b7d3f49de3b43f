# SPDX-License-Identifier: Apache-2.0
"""Options and output that the reservation commands have in common."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
import datetime
from typing import Any

from cliff import columns
from oslo_config import cfg
from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import reservations, text
from isolate_aggregates.cli import consent, fields, output
from isolate_aggregates.reservations import Slots, Status
from isolate_aggregates.reservations.commands import times
from isolate_aggregates.reservations.reservation import Terms
from isolate_aggregates.rest.connection import Connection

LOG = logging.getLogger(__name__)

# The exit status if something remains to be done or there are problems.
NOT_YET = 3

# The example of a point in time in help texts.
TIME = 'such as 2027-03-01T08:00Z'

AFFINITY = {'same': True, 'different': False, 'any': None}
_AFFINITY = {value: name for name, value in AFFINITY.items()}


def store(
    conf: cfg.ConfigOpts, connection: Connection
) -> reservations.ReservationStore:
    """Return the reservation store of the configured cloud."""
    return reservations.ReservationStore(
        connection,
        conf[ia_conf.BLAZAR].aggregate_freepool_name,
        cleaning_time=datetime.timedelta(
            seconds=conf[ia_conf.GROUP].reservation_cleaning_time
        ),
    )


def document(status: Status) -> dict[str, Any]:
    """Return a reservation as a JSON document."""
    found = status.reservation
    shape = found.shape
    asked = found.pending
    return {
        'id': found.id,
        'project': found.project,
        'state': status.state.value,
        'start': times.text(found.start),
        'end': times.text(found.end),
        'flavor': found.flavor.name,
        'amount': found.amount,
        'affinity': _AFFINITY[found.affinity],
        'shape': {
            'vcpus': shape.vcpus,
            'ram': shape.ram,
            'disk': shape.disk,
            'ephemeral': shape.ephemeral,
            'swap': shape.swap,
        },
        'properties': dict(sorted(shape.extra_specs.items())),
        'slots': status.slots,
        'used': status.used,
        'missing': status.missing,
        'hosts': hosts(status.hosts),
        'leaving': list(found.leaving),
        'asked': asked
        and {
            'amount': asked.amount,
            'end': times.text(asked.end),
            'leaving': list(asked.leaving),
            **_terms(asked.terms or found.terms),
        },
        'problems': list(status.problems),
    }


def _terms(terms: Terms) -> dict[str, Any]:
    return {
        'project': terms.project,
        'start': times.text(terms.start),
        'affinity': _AFFINITY[terms.affinity],
    }


def hosts(slots: Mapping[str, Slots]) -> dict[str, Any]:
    """Return slots by name of the host as a JSON document."""
    return {
        name: {'slots': on.total, 'open': on.open, 'used': on.used}
        for name, on in sorted(slots.items())
    }


def one(status: Status) -> tuple[Sequence[str], Sequence[Any]]:
    """Return a reservation as the columns and values of a ShowOne command."""
    found = document(status)
    values = {key: fields.field(value) for key, value in found.items()}
    values['end'] = End(found['end'])
    for key in ('asked', 'leaving'):
        if not found[key]:
            del values[key]
    return tuple(values), tuple(values.values())


class OneReservation(output.ShowOne):
    """Base class of commands that show one reservation."""

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        self._usage = parser
        return parser

    def time(
        self, given: times.Moment, since: datetime.datetime
    ) -> datetime.datetime:
        """Resolve an argument to a point in time; exit with 2 on overflow.

        :param since: The time that a duration is added to.
        """
        try:
            return times.resolve(given, since)
        except argparse.ArgumentTypeError as exc:
            self._usage.error(str(exc))


class OneChanged(consent.Asking, OneReservation):
    """Base class of commands that change a reservation after confirmation."""


def add_start(
    parser: argparse.ArgumentParser,
    name: str,
    meaning: str,
    default: str | None = 'now',
    note: str = 'default: now',
) -> None:
    """Add an option for a point in time or a duration from now."""
    parser.add_argument(
        name,
        type=times.moment,
        default=default,
        metavar='<time>',
        help=f'{meaning}, {TIME}, or a duration from now, such as 2h; {note}',
    )


def add_affinity(
    parser: argparse.ArgumentParser, default: str | None = None
) -> None:
    """Add the option ``--affinity``."""
    parser.add_argument(
        '--affinity',
        choices=AFFINITY,
        default=default,
        help='Whether all slots must be on the same host, or each on a '
        'different one' + (f'; default: {default}' if default else ''),
    )


def add_reservation(
    parser: argparse.ArgumentParser,
    number: str | None = None,
    default: str = '',
) -> None:
    """Add the argument for the id of a reservation.

    :param number: The argparse ``nargs``; None for one id.
    :param default: A text to append to the help.
    """
    parser.add_argument(
        'reservation',
        nargs=number,
        metavar='<reservation>',
        help=f'Id of the reservation{default}',
    )


def end_of(name: str, project: str, servers: int) -> str:
    """Describe what ending a reservation does, for the confirmation."""
    gone = ''
    if servers:
        gone = (
            f', and permanently delete its {text.counted(servers, "server")}'
        )
    return f'end reservation {name} of project {project}{gone}'


def changes(before: Status, after: Status) -> list[str]:
    """Describe each difference between two statuses in one line."""
    old, new = document(before), document(after)
    return [
        f'{key}: {_value(old[key])} -> {_value(new[key])}'
        for key in (
            *('project', 'start', 'end', 'amount', 'affinity'),
            *('hosts', 'leaving'),
        )
        if old[key] != new[key]
    ]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        value = [f'{name} ({on["slots"]})' for name, on in value.items()]
    if isinstance(value, list):
        return ', '.join(value) or 'none'
    return 'never' if value is None else str(value)


class ReservationLister(output.ReportLister):
    """Base class of commands that list reservations and log problems."""

    nothing = 'There are no reservations.'

    def rows(
        self, found: Sequence[Status]
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Return the rows, and log the problems."""
        self.found = found
        tell_problems(found)
        return (
            (
                'Id',
                'Project',
                'State',
                'Start',
                'End',
                'Slots',
                'Used',
                'Missing',
                'Hosts',
            ),
            [
                (
                    status.reservation.id,
                    status.reservation.project,
                    status.state.value,
                    times.text(status.reservation.start),
                    End(times.text(status.reservation.end)),
                    status.slots,
                    status.used,
                    status.missing,
                    placed(status.hosts),
                )
                for status in found
            ],
        )

    def document(self) -> dict[str, Any]:
        """Return the reservations as a JSON document."""
        return {'reservations': [document(status) for status in self.found]}


def line(status: Status) -> str:
    """Describe a reservation in one line, without the usage by servers."""
    found = status.reservation
    slots = f'{status.slots} of {found.amount} slots'
    where = f' on {placed(status.hosts)}' if status.hosts else ''
    end = times.text(found.end)
    until = f' until {end}' if end else ''
    return f'{found.id}: {status.state.value}{until}, {slots}{where}'


def tell_problems(
    found: Iterable[Status], told: Iterable[tuple[str, str]] = ()
) -> frozenset[tuple[str, str]]:
    """Log the problems of reservations.

    :param told: The result of the previous call; these are not logged again.
    :returns: All current problems, as pairs of reservation id and problem.
    """
    known = frozenset(told)
    problems = [
        (status.reservation.id, problem)
        for status in found
        for problem in status.problems
    ]
    for name, problem in problems:
        if (name, problem) not in known:
            LOG.warning('Reservation %s: %s.', name, problem)
    return frozenset(problems)


def status_for(found: Iterable[Status]) -> int:
    """Return the exit status of a repairing or reconciling command."""
    return NOT_YET if any(status.problems for status in found) else 0


def placed(slots: Mapping[str, Slots]) -> str:
    """Describe the number of slots on each host in one line."""
    return ', '.join(
        f'{name} ({on.total})' for name, on in sorted(slots.items())
    )


class End(columns.FormattableColumn[str | None]):
    """A column for an end, which may be None for never."""

    def human_readable(self) -> str:
        """Return the time, or the word for no end."""
        return self._value or 'never'
