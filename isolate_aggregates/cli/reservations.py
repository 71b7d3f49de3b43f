# SPDX-License-Identifier: Apache-2.0
"""``reservation``: capacity that is kept for the servers of a project."""

import argparse
from collections.abc import Callable, Iterable, Sequence
import datetime
from typing import Any

from cliff import show
from oslo_log import log as logging

from isolate_aggregates import exception, reservation
from isolate_aggregates.cli import base, times, watching
from isolate_aggregates.cli import reservation_output as output
from isolate_aggregates.clouds import LiveCloud
from isolate_aggregates.reservation import Shape, State, Status

LOG = logging.getLogger(__name__)

_TIME = 'such as 2027-03-01T08:00Z'
_SIZES = ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')


class _OneCommand(show.ShowOne):
    """Shows a reservation after something was done to it."""

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        self._usage = parser
        return parser

    def time(
        self, given: times.Moment, since: datetime.datetime
    ) -> datetime.datetime:
        """Return a point in time; end with 2 if there is none such.

        :param given: The point in time, or a duration.
        :param since: Where a duration starts.
        """
        try:
            return times.resolve(given, since)
        except argparse.ArgumentTypeError as exc:
            self._usage.error(str(exc))


class CreateReservation(_OneCommand):
    """Reserve capacity for the servers of a project.

    All slots have one size, that of the servers which use them. They are
    found and kept at once, for all of the time; if they do not fit, nothing
    is left behind. From the start on the project may boot servers with the
    flavor of the reservation.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        base.add_project_arguments(
            parser, 'Name or id of the project that may use it', required=True
        )
        parser.add_argument(
            '--amount',
            type=base.positive,
            default=1,
            metavar='<number>',
            help='How many slots, which is how many servers; default: 1',
        )
        _add_shape_arguments(parser)
        parser.add_argument(
            '--affinity',
            choices=output.AFFINITY,
            default='any',
            help='Whether all slots have to be on the same host, or each on a '
            'different one; default: any',
        )
        parser.add_argument(
            '--start',
            type=times.moment,
            default='now',
            metavar='<time>',
            help=f'When it starts, {_TIME}, or a duration from now, such as '
            '2h; default: now',
        )
        parser.add_argument(
            '--end',
            type=times.end,
            default='never',
            metavar='<time>',
            help=f'When it ends, {_TIME}, or how long after its start, such '
            'as 7d; default: never',
        )
        parser.add_argument(
            '--id',
            metavar='<uuid>',
            help='The id it shall have, so that the same command can be run '
            'again; default: a new one',
        )
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='Only show whether it fits, and where',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """Create it."""
        shape = self._given_shape(parsed_args)
        now = _now()
        start = self.time(parsed_args.start, now)
        end = parsed_args.end and self.time(parsed_args.end, start)
        connection = self.app.connect()
        cloud = LiveCloud(self.app.conf, lambda: connection)
        found = reservation.new(
            base.project_from(parsed_args, cloud) or '',
            parsed_args.amount,
            shape or Shape.like(cloud.flavor(parsed_args.like)),
            start,
            end,
            output.AFFINITY[parsed_args.affinity],
            parsed_args.id,
        )
        site = output.site(self.app.conf, connection)
        if parsed_args.dry_run:
            return output.one(reservation.preview(site, found, now))
        try:
            return output.one(reservation.create(site, found, now))
        except exception.ServiceError:
            LOG.warning(
                'Reservation %s may have been begun; reservation reconcile '
                'completes it, and reservation end takes it away.',
                found.id,
            )
            raise

    def _given_shape(self, args: argparse.Namespace) -> Shape | None:
        """Return the shape that is written out, None for that of a flavor."""
        sizes = {name: getattr(args, name) for name in _SIZES}
        given = {name: n for name, n in sizes.items() if n is not None}
        if args.like:
            if given or args.property:
                self._usage.error('--like says all about the size already')
            return None
        if args.vcpus is None or args.ram is None:
            self._usage.error('give --vcpus and --ram, or --like')
        return Shape(**given, extra_specs=dict(args.property))


class ShowReservation(show.ShowOne):
    """Show everything about a reservation."""

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        _add_reservation(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """Look it up."""
        site = output.site(self.app.conf, self.app.connect())
        found = reservation.show(site, parsed_args.reservation, _now())
        return output.one(found)


class ListReservations(output.ReservationLister):
    """Show all reservations, their slots, and what is wrong with them.

    In the order of their starts. As json or yaml: one document with all there
    is to know of each.
    """

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """List the reservations."""
        site = output.site(self.app.conf, self.app.connect())
        return self.rows(reservation.list_reservations(site, _now()))


class UpdateReservation(_OneCommand):
    """Give a reservation more or fewer slots, or another end.

    Before its start or after it. What does not fit is refused, and so are
    fewer slots than have servers; it then stays as it was.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        _add_reservation(parser)
        parser.add_argument(
            '--amount',
            type=base.positive,
            metavar='<number>',
            help='How many slots it shall have',
        )
        parser.add_argument(
            '--end',
            type=times.end,
            default=reservation.KEEP,
            metavar='<time>',
            help=f'When it shall end, {_TIME}, or how long after its start, '
            'such as 7d, or never',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """Change it."""
        end = parsed_args.end
        if parsed_args.amount is None and end is reservation.KEEP:
            self._usage.error('give --amount or --end')
        site = output.site(self.app.conf, self.app.connect())
        name = parsed_args.reservation
        if isinstance(end, datetime.timedelta):
            found = reservation.show(site, name, _now())
            end = self.time(end, found.reservation.start)
        return output.one(
            reservation.update(site, name, _now(), parsed_args.amount, end)
        )


class EndReservation(_OneCommand):
    """End a reservation now, and delete its servers.

    They are deleted for good, shelved ones too. The status is 3 as long as
    some are being deleted: run it again, or let reconcile do the rest.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        _add_reservation(parser)
        parser.add_argument(
            '--yes', action='store_true', help='Do not ask whether to do it'
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """End it."""
        site = output.site(self.app.conf, self.app.connect())
        name = parsed_args.reservation
        if not parsed_args.yes:
            self._ask(site, reservation.show(site, name, _now()))
        self._ended = reservation.end(site, name, _now())
        return output.one(self._ended)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, or 3 as long as servers are being deleted.
        """
        code = super().run(parsed_args)
        is_over = self._ended.state is State.ENDED
        return code or (0 if is_over else output.NOT_YET)

    def _ask(self, site: reservation.Site, found: Status) -> None:
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


class RepairReservations(output.ReservationLister):
    """Move slots away from hosts that are down, disabled or gone.

    Slots that have a server stay where it is; evacuate it. The status is 3 if
    some slots fit nowhere, or something else is wrong still.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        _add_reservation(parser, '?', '; default: all')
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Repair them."""
        site = output.site(self.app.conf, self.app.connect())
        return self.rows(
            reservation.repair(site, _now(), parsed_args.reservation)
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, or 3 if something is wrong still.
        """
        return super().run(parsed_args) or output.status_for(self.found)


class ReconcileReservations(output.ReservationLister):
    """Start and end reservations whose time has come, and complete others.

    Brings all of them to the state they should be in, whatever was
    interrupted. Has to run again and again; several at once do no harm. The
    status is 3 if something is wrong still.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--watch',
            type=base.positive,
            metavar='<seconds>',
            help='Do it again and again, with so many seconds between, and '
            'write a line for each reservation that has changed',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Reconcile them."""
        site = output.site(self.app.conf, self.app.connect())
        return self.rows(reservation.tick(site, _now()))

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Do it once, or again and again; return the exit status."""
        if parsed_args.watch:
            self._watch(parsed_args.watch)
            return 0
        return super().run(parsed_args) or output.status_for(self.found)

    def _watch(self, pause: int) -> None:
        # What it has read of the cloud is not read again.
        site = output.site(self.app.conf, self.app.connect())
        shown: dict[str, str] = {}
        told: frozenset[tuple[str, str]] = frozenset()

        def once(stopped: Callable[[], bool]) -> None:
            nonlocal shown, told
            found = reservation.tick(site, _now())
            told = output.tell_problems(found, told)
            lines = {s.reservation.id: output.line(s) for s in found}
            for name, line in lines.items():
                if shown.get(name) != line:
                    self.app.stdout.write(f'{line}\n')
            self.app.stdout.flush()
            shown = lines

        watching.watch(once, pause)


def _add_reservation(
    parser: argparse.ArgumentParser,
    number: str | None = None,
    default: str = '',
) -> None:
    parser.add_argument(
        'reservation',
        nargs=number,
        metavar='<reservation>',
        help=f'Id of the reservation{default}',
    )


def _add_shape_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--like',
        metavar='<flavor>',
        help='Name or id of a flavor whose servers have the size of a slot, '
        'and whose extra specs it gets',
    )
    for name, what in (
        ('vcpus', 'Virtual CPUs of a slot'),
        ('ram', 'Memory of a slot in MiB'),
        ('disk', 'Root disk of a slot in GiB; default: 0'),
        ('ephemeral', 'Ephemeral disk of a slot in GiB; default: 0'),
        ('swap', 'Swap disk of a slot in MiB; default: 0'),
    ):
        parser.add_argument(
            f'--{name}', type=_size, metavar='<number>', help=what
        )
    parser.add_argument(
        '--property',
        action='append',
        default=[],
        type=_property,
        metavar='<key>=<value>',
        help='Extra spec of its flavor, such as trait:HW_CPU_X86_AVX2='
        'required; may be repeated',
    )


def _size(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'{text!r} is no whole number')
    return int(text)


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition('=')
    if not key or not equals:
        raise argparse.ArgumentTypeError(
            f'{text!r} is no extra spec; write <key>=<value>'
        )
    return key, value


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
