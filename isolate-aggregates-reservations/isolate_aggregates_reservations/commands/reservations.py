# SPDX-License-Identifier: Apache-2.0
"""``reservation show``, ``list``, ``update`` and ``end``."""

import argparse
from collections.abc import Callable, Sequence
import contextlib
import datetime

from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import uuidutils

from isolate_aggregates import exception
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import names, review, views
from isolate_aggregates_reservations.api import Phase, Shape, Status
from isolate_aggregates_reservations.commands import common, documents, times
from isolate_aggregates_reservations.views import OwnReservation
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.identity import KeystoneClient
from isolate_aggregates_tools.reservation_review import Review

LOG = logging.getLogger(__name__)

# The columns of a project's own reservations.
_OWN = ('Flavor', 'VCPUs', 'RAM', 'Disk', 'Servers', 'Boot Until')

_NOT_SHOWN = (
    'Only administrators can see the number of slots, hosts, start, end, and '
    'reservations that have not started.'
)


class ShowReservation(common.OneShown):
    """Show everything about a reservation."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_reservation(parser)
        base.add_snapshot_argument(parser)
        return parser

    def status(self, args: argparse.Namespace) -> Status:
        with common.reading(self.app, args) as store:
            name = common.id_of(store, args.reservation)
            return reservations.show(store, name, store.read_at or times.now())


class ListReservations(common.ReservationLister):
    """Show all reservations, their slots and their problems.

    Sorted by start. As json or yaml: one document with everything about each.
    The exit status is 1 if one cannot be read. With --ending-within it is 4 if
    there are any. Only --mine works without the rights of an administrator.
    """

    @staticmethod
    def review(
        conf: cfg.ConfigOpts,
        connection: Connection,
        now: datetime.datetime,
        may_exist: bool,
        is_thorough: bool,
    ) -> Review:
        """Return a review for audits and metrics.

        :param may_exist: Whether there can be any; False to read nothing.
        :param is_thorough: Whether to read what takes a call for each host.
        """
        if may_exist:
            # A cloud that is too old for reservations has none.
            with contextlib.suppress(exception.ServiceTooOld):
                return review.review(
                    common.store(conf, connection), now, is_thorough
                )
        return review.summary()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            '--mine',
            action='store_true',
            help='Show only the flavors of the reservations of your own '
            'project that have started, and the number of its servers',
        )
        which.add_argument(
            '--ending-within',
            type=times.duration,
            metavar='<duration>',
            help='Show only reservations that end within this time from now, '
            'such as 2d, and have not ended yet',
        )
        base.add_snapshot_argument(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show them; return the exit status."""
        base.check_live(self._usage, parsed_args, 'mine')
        self.columns = _OWN if parsed_args.mine else common.COLUMNS
        return super().run(parsed_args)

    def report(self, args: argparse.Namespace) -> output.Report:
        with common.reading(self.app, args) as store:
            if args.mine:
                return _own(views.list_own(store))
            now = store.read_at or times.now()
            statuses = reservations.list_reservations(
                store,
                now,
                self.log_unreadable,
                is_thorough=True,
                is_project=self._may_exist(args),
            )
        within = args.ending_within
        if within is None:
            return self.listed(
                statuses,
                ExitStatus.ERROR if self.is_incomplete else ExitStatus.DONE,
            )
        ending = [
            status
            for status in statuses
            if not status.reservation.has_ended(now)
            and status.reservation.end is not None
            and status.reservation.end - now <= within
        ]
        if self.is_incomplete:
            # One that cannot be read may end too.
            code = ExitStatus.ERROR
        else:
            code = ExitStatus.NO if ending else ExitStatus.DONE
        return self.listed(
            ending, code, 'No reservation ends within that time.'
        )

    def _may_exist(self, args: argparse.Namespace) -> Callable[[str], bool]:
        """Return what tells whether there may be a project with an id."""
        return uuidutils.is_uuid_like if args.snapshot else self._is_project

    def _is_project(self, project: str) -> bool:
        """Return whether there is a project with an id, as far as is known."""
        try:
            keystone = KeystoneClient(self.app.connect())
            return keystone.project(project) == project
        except (tools_errors.NotFound, tools_errors.NotUnique):
            return False
        except exception.ServiceError as exc:
            LOG.debug('Keystone does not say if it is a project: %s', exc)
            return uuidutils.is_uuid_like(project)


def _own(own: Sequence[OwnReservation]) -> output.Report:
    return output.Report(
        document=lambda: documents.OwnReservations(
            reservations=tuple(
                documents.drawn(
                    documents.OwnReservation,
                    entry,
                    entry.flavor,
                    flavor=entry.flavor.name,
                    shape=Shape.like(entry.flavor),
                    boot_until=_boot_until(entry),
                )
                for entry in own
            )
        ),
        columns=_OWN,
        rows=[
            (
                entry.flavor.name,
                entry.flavor.vcpus,
                entry.flavor.ram,
                entry.flavor.disk,
                entry.servers,
                _boot_until(entry),
            )
            for entry in own
        ],
        after=('', _NOT_SHOWN),
        nothing='No reservation of your project has started.',
    )


def _boot_until(entry: OwnReservation) -> str | None:
    return entry.flavor.extra_specs.get(names.BOOT_UNTIL)


class UpdateReservation(common.OneChanged):
    """Change the slots, the end or the name of a reservation.

    Before and after its start. Either all changes are made or none: slots that
    do not fit are refused, and so are fewer slots than servers. For another
    project, start or affinity, end it and create one.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_reservation(parser)
        parser.add_argument(
            '--amount',
            type=base.positive,
            metavar='<number>',
            help='New number of slots',
        )
        parser.add_argument(
            '--end',
            type=times.end,
            default=reservations.UNCHANGED,
            metavar='<time>',
            help=f'When it ends, {common.TIME}, or a duration from its start, '
            'such as 7d, or never',
        )
        common.add_labels(parser)
        common.add_warning(parser)
        for option, meaning in (
            ('--share', 'that may use it, too'),
            ('--unshare', 'that may not use it any more; its servers stay'),
        ):
            common.add_share(
                parser, option, f'Name or id of a project {meaning}'
            )
        return parser

    def status(self, args: argparse.Namespace) -> Status:
        end = args.end
        options = ('amount', 'name', 'note', 'warn_before')
        if (
            end is reservations.UNCHANGED
            and all(getattr(args, name) is None for name in options)
            and not (args.share or args.unshare)
        ):
            self._usage.error(
                'give --amount, --end, --name, --note, --share, --unshare or '
                '--warn-before'
            )
        store = common.store(self.app.conf, self.app.connect())
        keystone = KeystoneClient(self.app.connect())
        name = common.id_of(store, args.reservation)
        if isinstance(end, datetime.timedelta):
            state = store.read()
            end = self.time(end, state.reservation(name).start)

        def change(now: datetime.datetime, dry_run: bool) -> Status:
            return reservations.update(
                store,
                name,
                now,
                args.amount,
                end,
                args.name,
                args.note,
                [keystone.project(name) for name in args.share],
                [keystone.project(name) for name in args.unshare],
                args.warn_before,
                dry_run,
            )

        return self.change(args, store, change)


class EndReservation(common.OneChanged):
    """End a reservation now, and delete its servers.

    They are deleted permanently, shelved ones too. The exit status is 3 as
    long as some are being deleted: run it again, or let reconcile do the rest.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_reservation(parser)
        return parser

    def status(self, args: argparse.Namespace) -> Status:
        store = common.store(self.app.conf, self.app.connect())
        name = common.id_of(store, args.reservation)

        def end(now: datetime.datetime, dry_run: bool) -> Status:
            return reservations.end(store, name, now, dry_run)

        self._ended = self.change(args, store, end)
        return self._ended

    def run(self, parsed_args: argparse.Namespace) -> int:
        code = super().run(parsed_args)
        is_over = self._ended.state is Phase.ENDED
        return code or (0 if is_over else ExitStatus.LEFT)
