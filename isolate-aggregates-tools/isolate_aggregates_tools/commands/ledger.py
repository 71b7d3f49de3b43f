# SPDX-License-Identifier: Apache-2.0
"""``ledger``: shows where servers ran, and where they could run."""

import argparse
from collections.abc import Iterable, Sequence
import functools
from typing import Any

from isolate_aggregates import conf as ia_conf
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cli import output
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.ledger import (
    history,
    ledger,
    reading,
    shown,
    sizes,
    times,
)
from isolate_aggregates_tools.ledger.history import History
from isolate_aggregates_tools.ledger.keys import Keys
from isolate_aggregates_tools.ledger.ledger import Ledger, Subject
from isolate_aggregates_tools.ledger.state import State
from isolate_aggregates_tools.ledger.stays import Span, Stay
from isolate_aggregates_tools.operate import names


class ShowLedger(output.ReportLister):
    """Show on which hosts servers ran, and on which they could, by day.

    With --lock, only servers with its key count. The servers are those that
    Nova knows, including deleted ones; --file adds what exporter or sync
    have recorded, which only then tells when hosts were locked. Above and
    below the table are peaks, and what is not known. As json or yaml: one
    document with all stays.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        subject = parser.add_mutually_exclusive_group(required=True)
        subject.add_argument(
            '--lock',
            metavar='<lock>',
            help='Ledger of the servers with the key to this lock, such as '
            'trait:CUSTOM_LICENSED_WINDOWS',
        )
        subject.add_argument(
            '--aggregate',
            # Shorter than elsewhere: the group is not folded.
            metavar='<name>',
            help='Ledger of the servers on hosts of this aggregate: its '
            'name, uuid or number',
        )
        subject.add_argument(
            '--project',
            metavar='<name>',
            help='Ledger of the servers of this project: its name or id; '
            'with --no-cloud, its id',
        )
        parser.add_argument(
            '--project-domain',
            metavar='<domain>',
            help='Name or id of the domain of the project, if several domains '
            'have a project of that name',
        )
        parser.add_argument(
            '--since',
            required=True,
            type=_time,
            metavar='<time>',
            help='Beginning of the period, such as 2027-01-01 or '
            '2027-01-01T08:00+01:00; without time zone, UTC',
        )
        parser.add_argument(
            '--until',
            type=_time,
            metavar='<time>',
            help='End of the period; default: now',
        )
        parser.add_argument(
            '--file',
            metavar='<file>',
            help='Ledger file that exporter --ledger or sync --ledger wrote; '
            'those that it was rotated to are read too',
        )
        parser.add_argument(
            '--no-cloud',
            action='store_true',
            help='Read only the ledger file',
        )
        parser.add_argument(
            '--stays',
            action='store_true',
            help='List the stays of servers on hosts, not the days of hosts',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Check the arguments and show the ledger."""
        args = parsed_args
        self._now = times.now()
        args.until = self._now if args.until is None else args.until
        if args.since >= args.until:
            self._usage.error('--since must be before --until')
        if args.until > self._now:
            self._usage.error('--until must not be in the future')
        if args.no_cloud and not args.file:
            self._usage.error('--no-cloud needs --file')
        if args.no_cloud and args.project_domain:
            self._usage.error(
                '--project-domain cannot be used with --no-cloud'
            )
        self.columns = shown.STAY_COLUMNS if args.stays else shown.DAY_COLUMNS
        return super().run(args)

    def report(self, args: argparse.Namespace) -> output.Report:
        found, record = self._read(args)
        days = tuple(found.days)
        return output.Report(
            document=functools.partial(shown.document, found, days, record),
            columns=self.columns,
            rows=_rows(
                map(shown.stay_row, found.stays)
                if args.stays
                else (shown.day_row(day, found.sizes) for day in days)
            ),
            before=shown.lines(found, days),
            after=shown.gaps(found, None if args.long else shown.MOST),
        )

    def _read(self, args: argparse.Namespace) -> tuple[Ledger, History | None]:
        """Read the cloud and the ledger file.

        :returns: The ledger, and the history in the file, if there is one.
        """
        conf = self.app.conf
        cloud = None if args.no_cloud else clouds.live_cloud(self.app)
        state = reading.live_state(cloud) if cloud else State()
        subject = _subject(args, cloud, state)
        usable = ledger.UsableHosts(conf, subject)
        hosts = usable.of(state)
        record = None
        if args.file:
            record = history.read(args.file, usable.of, subject.counts)
        if subject.kind == 'lock' and not usable.aggregates:
            locks = {
                name
                for each in (state, record.state if record else State())
                for name in usable.locks(each)
            }
            raise errors.NotFound(
                'lock', subject.name, _place(args, cloud), sorted(locks)
            )
        stays: list[Stay] = []
        gaps: list[str] = []
        known: dict[str, list[Stay]] = {}
        recorded = record.stays if record else []
        if cloud:
            nova = reading.NovaStays(
                cloud.nova,
                Keys(
                    conf,
                    usable.aggregates.values()
                    if subject.kind == 'lock'
                    else (),
                    reading.images_of(cloud),
                ),
                args.since,
                subject.counts_stay,
                {stay.server for stay in recorded},
                conf[ia_conf.GROUP].max_concurrency,
            )
            nova.read(
                self._now, subject.name if subject.kind == 'project' else None
            )
            stays += nova.stays
            gaps += nova.gaps
            known = nova.known
        if record:
            more, missing = ledger.from_file(
                record, known, args.since, args.until
            )
            stays += more
            gaps += missing
        could = {
            host: list(spans)
            for host, spans in (record.could if record else {}).items()
        }
        looks = list(record.looks) if record else []
        if cloud:
            # What is true now is true at the last second of the period.
            looks.append(Span(self._now - 1, self._now))
            for host in hosts:
                could.setdefault(host, []).append(looks[-1])
        found = ledger.make(
            subject,
            (args.since, args.until),
            stays,
            could,
            looks,
            sizes.newer(record.sizes if record else {}, sizes.sizes(state)),
            gaps,
            record.problems if record else [],
            cloud is not None,
        )
        return found, record


def _subject(
    args: argparse.Namespace, cloud: LiveCloud | None, state: State
) -> Subject:
    """Return whose ledger was asked for."""
    if args.lock:
        return Subject('lock', args.lock, args.lock)
    if args.project:
        number = args.project
        if cloud:
            number = cloud.project(number, args.project_domain)
        return Subject('project', number, args.project)
    aggregates = {u: each.aggregate(u) for u, each in state.aggregates.items()}
    if args.file:
        # It may have been deleted.
        aggregates = {**history.aggregates(args.file), **aggregates}
    aggregate = names.aggregate(
        aggregates.values(), args.aggregate, _place(args, cloud)
    )
    return Subject('aggregate', aggregate.uuid, aggregate.name)


def _rows(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return rows in which unknown values are empty."""
    return [
        [output.Value(cell) if cell is None else cell for cell in row]
        for row in rows
    ]


def _place(args: argparse.Namespace, cloud: LiveCloud | None) -> str:
    places = [f'Nova at {cloud.nova.direct.endpoint}'] if cloud else []
    return ' and '.join([*places, args.file] if args.file else places)


def _time(text: str) -> int:
    try:
        return times.as_seconds(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a time such as 2027-01-01 or '
            '2027-01-01T08:00+01:00'
        ) from None
