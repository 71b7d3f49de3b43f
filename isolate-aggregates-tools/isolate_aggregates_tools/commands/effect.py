# SPDX-License-Identifier: Apache-2.0
"""``effect show``: shows what a change would do, before it is made."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
from typing import Any

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import quoted
from isolate_aggregates_tools.cli import base, output, terminal
from isolate_aggregates_tools.cli.exit_status import ExitStatus, first_of
from isolate_aggregates_tools.cloud import diff
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import (
    change_arguments,
    clouds,
    differences,
    snapshots,
)
from isolate_aggregates_tools.effect import (
    Effect,
    documents,
    effect,
    gaps,
    shown,
)
from isolate_aggregates_tools.effect.gaps import Gap
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.repairs.outcome import Refusal


class ShowEffect(output.ReportLister):
    """Show what changes would do to servers, flavors, projects and findings.

    Nothing is changed. The changes are made to a copy of the cloud in memory,
    in the order of the options, and the answers of the other commands before
    and after them are compared. The worst comes first. As json or yaml: one
    document with all of it. Steps that Nova refuses are named and left out;
    the exit status is 7 then. What is not read of a file is listed; the exit
    status is 8 then. With ``--to``: what differs in another cloud
    file, and the effect of all differences together, with the settings of that
    file.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        change_arguments.add_arguments(parser)
        parser.add_argument(
            '--to',
            metavar='<file>',
            help='Compare with this cloud file instead of making changes',
        )
        parser.add_argument(
            '--no-servers',
            action='store_true',
            help='Do not read the servers of the projects',
        )
        parser.add_argument(
            '--detailed-exitcode',
            action='store_true',
            help='Exit with status 0 if nothing changes, 6 if something does, '
            'and 5 if servers would be out of place',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show the effect; return the exit status."""
        if parsed_args.to and parsed_args.changes:
            self._usage.error('--to cannot be used with changes')
        if not parsed_args.to and not parsed_args.changes:
            self._usage.error(
                'a change is required, such as --add-host, or --to'
            )
        return super().run(parsed_args)

    def report(self, args: argparse.Namespace) -> output.Report:
        columns: Sequence[str] = differences.COLUMNS
        if args.to:
            found = self._compared(args)
            rows: Iterable[Sequence[Any]] = differences.rows(found.differences)
        else:
            found = self._changed(args)
            columns = ('Effect on', 'Before', 'After', 'Details')
            # Sentences are too long for the cells of a table.
            is_for_people = args.formatter == 'table'
            rows = [] if is_for_people else map(_row, shown.rows(found.effect))
        most = None if args.long else shown.MOST
        lines = shown.lines(found.effect, most)
        before, after = ((), lines) if args.to else (lines, ())
        return output.Report(
            document=found.document,
            columns=columns,
            rows=rows,
            before=found.lines(before),
            # If nothing differs, nothing changes.
            after=after if found.differences else (),
            nothing='The file describes the same cloud.' if args.to else '',
            status=_status(found, args.detailed_exitcode),
        )

    def _compared(self, args: argparse.Namespace) -> '_Found':
        after = cloud_file.load(args.to)
        before = (
            cloud_file.load(args.snapshot)
            if args.snapshot
            else snapshots.taken(self.app, not args.no_servers)
        )
        if args.no_servers:
            before = dataclasses.replace(before, servers=None)
        changes = list(diff.changes(before, after))
        clouds.apply_settings(self.app.conf, after)
        found = effect(before, after, self.app.conf)
        return _Found(
            found,
            unknown=tuple(_unknown(before, after, found)),
            differences=changes,
        )

    def _changed(self, args: argparse.Namespace) -> '_Found':
        with clouds.opened(self.app, args) as cloud:
            before = clouds.read(cloud, not args.no_servers)
        filters = Pipeline(loading.load(self.app.conf))
        changed = change_arguments.changed(
            before, args.changes, filters, self.app.conf
        )
        steps, refused, after = outcome.made(before, changed.steps, filters)
        found = effect(before, after, self.app.conf)
        return _Found(
            found,
            steps,
            gaps.gaps(before, steps, self.app.conf, filters),
            refused,
            (
                *changed.unknown,
                *_unknown(before, after, found),
            ),
            unread=changed.unread,
        )


def _unknown(
    before: Snapshot, after: Snapshot, found: Effect
) -> Iterator[str]:
    """Yield what the two clouds do not tell, without full stops."""
    yield from outcome.unknown(before, after)
    for each in found.doubtful:
        yield (
            f'whether server {quoted(each.server.name)} ({each.server.id}) '
            f'may stay on host {each.server.host}{each.text}'
        )


_NOTHING_READ = (
    'What was read changes nothing for servers, flavors, projects and '
    'findings.'
)


@dataclasses.dataclass(frozen=True)
class _Found:
    """What changes or differences do, and what is not certain.

    :param steps: The changes, in their order.
    :param gaps: Who is let in or refused between them.
    :param unknown: What cannot be said, without a full stop.
    :param unread: What was not read of the files of the changes.
    :param differences: Those of two cloud files.
    """

    effect: Effect
    steps: commands.Commands = ()
    gaps: tuple[Gap, ...] = ()
    refused: tuple[Refusal, ...] = ()
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    differences: Sequence[diff.Change] = ()

    def document(self) -> documents.PlannedEffect:
        return documents.PlannedEffect(
            **vars(shown.document(self.effect)),
            differences=differences.document(self.differences),
            steps=tuple(commands.shown([step]) for step in self.steps),
            gaps=tuple(gaps.sentences(self.steps, self.gaps)),
            refused=documents.refused(self.refused),
            unknown=tuple(self.unknown),
            unread=self.unread,
        )

    def lines(self, effects: Iterable[str]) -> Iterable[str]:
        """Yield what is refused, the effect, what is unknown, and the steps.

        :param effects: The lines of the effect, the worst first.
        """
        yield from change_arguments.unread_lines(self.unread)
        yield from change_arguments.refused_lines(self.refused)
        if self.unread and not self.effect:
            yield _NOTHING_READ
        else:
            yield from effects
        for sentence in self.unknown:
            yield f'Not known: {sentence}'
        if len(self.steps) > 1:
            yield ''
            yield 'The steps, in this order:'
            for step in self.steps:
                yield terminal.Shell(f'  {commands.shown([step])}')
            for sentence in gaps.sentences(self.steps, self.gaps):
                yield f'This order is not safe. {sentence}'


def _row(row: shown.Row) -> Sequence[str]:
    return row.what, row.before, row.after, row.why


def _status(found: _Found, is_detailed: bool) -> ExitStatus:
    is_changed = is_detailed and bool(found.effect)
    return first_of(
        {
            ExitStatus.NOT_UNDERSTOOD: found.unread,
            ExitStatus.REFUSED_CHANGE: found.refused,
            ExitStatus.DISPLACED: is_changed and found.effect.displaced,
            ExitStatus.CHANGED: is_changed,
        }
    )
