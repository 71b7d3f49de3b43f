# SPDX-License-Identifier: Apache-2.0
"""Options and output that the reservation commands have in common."""

import abc
import argparse
from collections.abc import (
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import contextlib
import dataclasses
import datetime
from typing import Any

from cliff import columns
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import uuidutils

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import filter_sets, text
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.api import Status
from isolate_aggregates_reservations.commands import documents, times
from isolate_aggregates_reservations.status import slots_by_host
from isolate_aggregates_reservations.store import Unreadable
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cli import base, consent, output, usage
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.documents import content

LOG = logging.getLogger(__name__)

# The example of a point in time in help texts.
TIME = 'such as 2027-03-01T08:00Z'

AFFINITY = {'same': True, 'different': False, 'any': None}
_AFFINITY = {value: name for name, value in AFFINITY.items()}


def store(
    conf: cfg.ConfigOpts, connection: Connection
) -> reservations.ReservationStore:
    return reservations.ReservationStore(
        connection,
        conf[ia_conf.BLAZAR].aggregate_freepool_name,
        owner_key=conf[ia_conf.BLAZAR].blazar_owner,
        pipeline=filter_sets.deciding(conf),
    )


@contextlib.contextmanager
def reading(
    app: base.Program, args: argparse.Namespace
) -> Iterator[reservations.ReservationStore]:
    """Open the reservations of the live cloud or of a cloud file.

    They can be read until the context ends.
    """
    if not args.snapshot:
        yield store(app.conf, app.connect())
        return
    # Imported late: the live cloud does not need it.
    from isolate_aggregates_reservations import saved

    with saved.opened(app, args) as found:
        yield found


def document(status: Status) -> documents.Reservation:
    reservation = status.reservation
    return documents.drawn(
        documents.Reservation,
        status,
        reservation,
        flavor=reservation.flavor.name,
        affinity=_AFFINITY[reservation.affinity],
        properties=reservation.shape.extra_specs,
        asked=reservation.pending,
    )


# Shown only if there is something.
_OPTIONAL = (
    *('asked', 'leaving', 'name', 'note'),
    *('shared', 'only_on', 'warn_before', 'unused_since', 'planned'),
)


class WithTimes(usage.Command):
    """A mixin for commands that take points in time."""

    def time(
        self, moment: times.Moment, since: datetime.datetime
    ) -> datetime.datetime:
        """Resolve an argument to a point in time; exit with 2 on overflow."""
        try:
            return times.resolve(moment, since)
        except argparse.ArgumentTypeError as exc:
            self._usage.error(str(exc))


class OneShown(output.ShowOne):
    """A command that shows one reservation."""

    app: Any
    columns = tuple(
        field.name for field in dataclasses.fields(documents.Reservation)
    )

    @abc.abstractmethod
    def status(self, args: argparse.Namespace) -> Status:
        """Do what the arguments say; return the reservation after it."""

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        shown = content(document(self.status(parsed_args)))
        is_whole = parsed_args.formatter in output.DOCUMENTS
        values = {
            key: output.field(value)
            for key, value in shown.items()
            if is_whole or value or key not in _OPTIONAL or parsed_args.columns
        }
        values['end'] = End(shown['end'])
        values['hosts'] = Hosts(shown['hosts'])
        return tuple(values), tuple(values.values())


class OneChanged(consent.Confirming, WithTimes, OneShown):
    """A command that changes a reservation after confirmation."""

    def change(
        self,
        args: argparse.Namespace,
        store: reservations.ReservationStore,
        act: Callable[[datetime.datetime, bool], Status],
    ) -> Status:
        """Plan, ask, and act; return the status after it.

        :param act: Takes the time, and whether it is a dry run.
        """
        status: Status

        def find() -> Sequence[str]:
            nonlocal status
            status = act(times.now(), True)
            return status.planned

        if self.goes_ahead(args, find):
            status = act(store.now(), False)
        return status


def add_start(
    parser: argparse.ArgumentParser, name: str, meaning: str
) -> None:
    parser.add_argument(
        name,
        type=times.moment,
        default='now',
        metavar='<time>',
        help=f'{meaning}, {TIME}, or a duration from now, such as 2h; '
        'default: now',
    )


def add_labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--name', metavar='<name>', help='Name; need not be unique'
    )
    parser.add_argument(
        '--note',
        metavar='<text>',
        help='Note, for example the number of an order',
    )


def add_warning(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--warn-before',
        type=times.duration,
        metavar='<duration>',
        help='How long before its end no more servers can be booted, such as '
        '2d. The extra spec isolate_aggregates:boot_until of its flavor tells '
        'its users when that begins',
    )


def add_share(parser: argparse.ArgumentParser, option: str, help: str) -> None:
    parser.add_argument(
        option, action='append', default=[], metavar='<project>', help=help
    )


def add_reservation(
    parser: argparse.ArgumentParser,
    number: str | None = None,
    default: str = '',
) -> None:
    """Add the argument for a reservation; see :func:`id_of`.

    :param number: The argparse ``nargs``; None for one.
    """
    parser.add_argument(
        'reservation',
        nargs=number,
        metavar='<reservation>',
        help=f'Id or name of the reservation{default}',
    )


def id_of(store: reservations.ReservationStore, reservation: str) -> str:
    """Return the id of a reservation by its id or name.

    :raises NotFound: if there is none of that name.
    :raises NotUnique: if there are several.
    """
    if uuidutils.is_uuid_like(reservation):
        return names.reservation_id(reservation)
    found = sorted(
        one.id
        for one in store.records().reservations.values()
        if one.name == reservation and not one.was_refused
    )
    if not found:
        raise errors.unknown(reservation)
    if len(found) > 1:
        raise tools_errors.NotUnique('reservation', reservation, found)
    return found[0]


class ReservationLister(output.ReportLister):
    """Base class of commands that list reservations and log problems."""

    @lazy_property
    def problems(self) -> dict[str, Unreadable]:
        """What was logged about reservations, hosts and the pool."""
        return {}

    @property
    def is_incomplete(self) -> bool:
        """Whether a reservation could not be read."""
        return any(
            isinstance(problem, errors.ReservationError)
            for problem in self.problems.values()
        )

    def log_unreadable(self, problem: Unreadable) -> None:
        """Log an unreadable reservation or a host, once for each problem."""
        if str(problem) not in self.problems:
            LOG.error('%s', problem)
            self.problems[str(problem)] = problem

    def status_of(self, statuses: Iterable[Status]) -> ExitStatus:
        """Return the exit status of a repairing or reconciling command."""
        has_problems = self.problems or any(s.problems for s in statuses)
        return ExitStatus.LEFT if has_problems else ExitStatus.DONE

    def listed(
        self,
        statuses: Sequence[Status],
        status: ExitStatus = ExitStatus.DONE,
        nothing: str = 'There are no reservations.',
    ) -> output.Report:
        """Report reservations, and log their problems."""
        log_problems(statuses)
        rows = list(map(_row, statuses))
        return output.Report(
            document=lambda: documents.Reservations(
                reservations=tuple(map(document, statuses))
            ),
            columns=COLUMNS,
            rows=rows,
            people=[
                name
                for place, name in enumerate(COLUMNS)
                if name not in ('Name', 'Unused Since')
                or any(row[place] for row in rows)
            ],
            nothing=nothing,
            status=status,
        )


COLUMNS = (
    *('Id', 'Name', 'Project', 'State', 'Start', 'End', 'Slots', 'Used'),
    *('Missing', 'Hosts', 'Unused Since'),
)


def _row(status: Status) -> list[Any]:
    values = content(document(status))
    return cells(
        COLUMNS,
        {
            **values,
            'end': End(values['end']),
            'hosts': slots_by_host(status.hosts),
        },
    )


def cells(columns: Iterable[str], values: Mapping[str, Any]) -> list[Any]:
    """Return the cells of a row, in the order of its columns.

    :param values: The cells by key: "slot_hours" for the column Slot Hours.
    """
    return [values[name.lower().replace(' ', '_')] for name in columns]


def line(status: Status) -> str:
    """Describe a reservation in one line, without the usage by servers."""
    reservation = status.reservation
    slots = f'{status.slots} of {text.counted(reservation.amount, "slot")}'
    where = f' on {slots_by_host(status.hosts)}' if status.hosts else ''
    end = times.text(reservation.end)
    until = f' until {end}' if end else ''
    return f'{reservation.id}: {status.state.value}{until}, {slots}{where}'


def log_problems(
    statuses: Iterable[Status],
    unreadable: Iterable[str] = (),
    previous: Container[str] = (),
) -> Container[str]:
    """Log the problems of reservations, and what cannot be read.

    :param previous: The result of the previous call, not logged again.
    :returns: All current problems.
    """
    found = dict.fromkeys(unreadable, LOG.error)
    for status in statuses:
        for problem in status.problems:
            sentence = f'Reservation {status.reservation.id}: {problem}.'
            found[sentence] = LOG.warning
    for sentence, log in found.items():
        if sentence not in previous:
            log('%s', sentence)
    return found.keys()


class Hosts(output.Lines):
    """A column for slots by name of the host."""

    def human_readable(self) -> str:
        return '\n'.join(
            f'{text.escaped(name)}: {text.counted(on_host["slots"], "slot")}, '
            f'{on_host["open"]} open, {on_host["used"]} used'
            for name, on_host in self._value.items()
        )


class End(columns.FormattableColumn[str | None]):
    """A column for an end, which may be None for never."""

    def human_readable(self) -> str:
        return self._value or 'never'
