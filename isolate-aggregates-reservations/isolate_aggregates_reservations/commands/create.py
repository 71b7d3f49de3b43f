# SPDX-License-Identifier: Apache-2.0
"""``reservation create``."""

import argparse
from collections.abc import Callable
import datetime

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.request import Flavor
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import names
from isolate_aggregates_reservations.api import Reservation, Shape, Status
from isolate_aggregates_reservations.commands import common, times
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cli import base
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.identity import KeystoneClient

LOG = logging.getLogger(__name__)

_SIZES = ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')


class CreateReservation(common.OneChanged):
    """Reserve capacity for the servers of a project.

    All slots have the size of the servers that use them. They are reserved
    together, for the whole time; if they do not fit, nothing is left behind.
    From the start on, the project may boot servers with the flavor of the
    reservation. When the reservation ends, these servers are permanently
    deleted. With --dry-run --earliest: shows from when on it fits, and where.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_project_arguments(
            parser, 'Name or id of the project that may use it', required=True
        )
        common.add_share(
            parser,
            '--share',
            'Name or id of another project that may use it, too; may be '
            'repeated',
        )
        common.add_warning(parser)
        parser.add_argument(
            '--host',
            action='append',
            default=[],
            metavar='<host>',
            help='Name of a compute node that may have its slots, for example '
            'to keep it free for maintenance; may be repeated; default: all '
            'hosts for reservations',
        )
        common.add_labels(parser)
        _add_slot_arguments(parser)
        common.add_start(parser, '--start', 'When it starts')
        parser.add_argument(
            '--end',
            type=times.end,
            default='never',
            metavar='<time>',
            help=f'When it ends, {common.TIME}, or a duration from its start, '
            'such as 7d; default: never',
        )
        parser.add_argument(
            '--earliest',
            action='store_true',
            help='Start as soon as it fits, not before --start; the end moves '
            'with it',
        )
        parser.add_argument(
            '--id',
            type=_id,
            metavar='<uuid>',
            help='Id of the new reservation, so that the command can be '
            'repeated; default: a new id',
        )
        return parser

    def status(self, args: argparse.Namespace) -> Status:
        self._check_size(args)
        now = times.now()
        start = self.time(args.start, now)
        end = args.end
        if end is not None:
            end = self.time(end, start)
        connection = self.app.connect()
        keystone = KeystoneClient(connection)
        wanted = reservation = reservations.new(
            base.project_from(args, keystone) or '',
            args.amount,
            _shape(args, NovaClient(connection).flavor),
            start,
            end,
            common.AFFINITY[args.affinity],
            args.id,
            args.allow_uncounted,
            args.name or '',
            args.note or '',
            [keystone.project(project) for project in args.share],
            args.host,
            args.warn_before,
        )
        store = common.store(self.app.conf, connection)

        def create(now: datetime.datetime, dry_run: bool) -> Status:
            nonlocal reservation
            if args.earliest and (dry_run or args.yes):
                reservation = reservations.earliest(store, wanted, now)
            return reservations.create(store, reservation, now, dry_run)

        try:
            status = self.change(args, store, create)
        except exception.ServiceError:
            if self.is_agreed:
                LOG.warning(
                    'Reservation %s may be incomplete; reservation reconcile '
                    'completes it, and reservation end removes it.',
                    reservation.id,
                )
            raise
        if _differs(args, status.reservation):
            LOG.warning(
                'Reservation %s was created before, with other times, name or '
                'note, and keeps them; reservation set changes them.',
                reservation.id,
            )
        return status

    def _check_size(self, args: argparse.Namespace) -> None:
        """Exit with 2 unless the size is given in exactly one way."""
        if not args.like:
            if args.vcpus is None or args.ram is None:
                self._usage.error('give --vcpus and --ram, or --like')
        elif args.property or any(
            getattr(args, name) is not None for name in _SIZES
        ):
            self._usage.error(
                '--like cannot be combined with --property or with options '
                'for the size'
            )


def _shape(args: argparse.Namespace, flavor: Callable[[str], Flavor]) -> Shape:
    if args.like:
        return Shape.like(flavor(args.like))
    sizes = {name: getattr(args, name) for name in _SIZES}
    sizes_given = {name: n for name, n in sizes.items() if n is not None}
    return Shape(**sizes_given, extra_specs=dict(args.property))


def _differs(args: argparse.Namespace, reservation: Reservation) -> bool:
    """Return whether a reservation has other times or labels than asked for.

    Durations are not compared: they count from the time of the command.
    """

    target = reservation.settled
    times_given = (args.start, target.start), (args.end, target.end)
    return any(
        argument != value and not isinstance(argument, datetime.timedelta)
        for argument, value in (
            *(() if args.earliest else times_given),
            (args.name or target.name, target.name),
            (args.note or target.note, target.note),
        )
    )


def _add_slot_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--amount',
        type=base.positive,
        default=1,
        metavar='<number>',
        help='Number of slots, each for one server; default: 1',
    )
    parser.add_argument(
        '--like',
        metavar='<flavor>',
        help='Name or id of a flavor to take size and extra specs from',
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
        type=base.pair('extra spec'),
        metavar='<key>=<value>',
        help='Extra spec of its flavor, such as trait:HW_CPU_X86_AVX2='
        'required; may be repeated',
    )
    parser.add_argument(
        '--affinity',
        choices=common.AFFINITY,
        default='any',
        help='Whether all slots must be on the same host, or each on a '
        'different one; default: any',
    )
    parser.add_argument(
        '--allow-uncounted',
        action='store_true',
        help='Reserve even if the flavor requests resources that cannot be '
        'counted, such as PCI devices or huge pages: a server may then get no '
        'host although there is a free slot',
    )


def _id(value: str) -> str:
    try:
        return names.reservation_id(value)
    except tools_errors.InvalidRequest as exc:
        raise argparse.ArgumentTypeError(str(exc).rstrip('.')) from exc


def _size(value: str) -> int:
    if not value.isdecimal():
        raise argparse.ArgumentTypeError(
            f'must be a non-negative integer, not {value!r}'
        )
    return int(value)
