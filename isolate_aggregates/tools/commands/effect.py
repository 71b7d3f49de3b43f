# SPDX-License-Identifier: Apache-2.0
"""``effect show``: shows what a change would do, before it is made."""

import argparse
from collections.abc import Iterable, Sequence
import dataclasses
from typing import Any

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import quoted
from isolate_aggregates.tools.advice import commands
from isolate_aggregates.tools.advice.refusals import Refusal
from isolate_aggregates.tools.cli import base, output, preview, terminal
from isolate_aggregates.tools.cli.exit_status import ExitStatus
from isolate_aggregates.tools.cloud import diff
from isolate_aggregates.tools.cloud.file import cloud_file
from isolate_aggregates.tools.commands import (
    change_arguments,
    differences,
    snapshots,
)
from isolate_aggregates.tools.effect import (
    documents,
    effect,
    refusals,
    shown,
)
from isolate_aggregates.tools.effect.formats.order import Order


class ShowEffect(output.ReportLister):
    """Show what changes would do to servers, flavors, projects and findings.

    Nothing is changed. The changes are made to a copy of the cloud in memory,
    in the order of the options, and the answers of the other commands before
    and after them are compared. The worst comes first. As json or yaml: one
    document with all of it. Steps that Nova refuses are named and left out;
    the exit status is 7 then. With ``--to``: what differs in another cloud
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
        self._usage = parser
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show the effect; return the exit status."""
        if parsed_args.to and parsed_args.changes:
            self._usage.error('--to cannot be used with changes')
        if not parsed_args.to and not parsed_args.changes:
            self._usage.error(
                'a change is required, such as --add-host, or --to'
            )
        code = super().run(parsed_args)
        if self._refused and not code:
            return ExitStatus.REFUSED_CHANGE
        if not parsed_args.detailed_exitcode or code:
            return code
        if self._effect.displaced:
            return ExitStatus.DISPLACED
        return ExitStatus.CHANGED if self._effect else 0

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self._differences: Sequence[diff.Change] = ()
        self._order = Order(())
        self._refused: tuple[Refusal, ...] = ()
        self._unknown: tuple[str, ...] = ()
        self._compares = bool(parsed_args.to)
        if parsed_args.to:
            self._compare(parsed_args)
            return differences.COLUMNS, differences.rows(self._differences)
        self._change(parsed_args)
        # Sentences are too long for the cells of a table.
        is_for_people = parsed_args.formatter == 'table'
        rows = [] if is_for_people else shown.rows(self._effect)
        return (
            ('Effect on', 'Before', 'After', 'Details'),
            [(row.what, row.before, row.after, row.why) for row in rows],
        )

    def _compare(self, args: argparse.Namespace) -> None:
        after = cloud_file.load(args.to)
        before = (
            cloud_file.load(args.snapshot)
            if args.snapshot
            else snapshots.taken(self.app, not args.no_servers)
        )
        if args.no_servers:
            before = dataclasses.replace(before, servers=None)
        self._differences = list(diff.changes(before, after))
        base.apply_settings(self.app.conf, after)
        self._effect = effect(before, after, self.app.conf)
        self.nothing = 'The file describes the same cloud.'

    def _change(self, parsed_args: argparse.Namespace) -> None:
        with base.opened(self.app, parsed_args) as cloud:
            before = preview.read(cloud, not parsed_args.no_servers)
        filters = Pipeline(loading.load(self.app.conf))
        changed = change_arguments.changed(
            before, parsed_args.changes, filters
        )
        self._order, others, after = refusals.made(
            before, changed.steps, self.app.conf, filters
        )
        self._refused = changed.refused + others
        unknown = (*changed.unknown, *refusals.unknown(before, after))
        self._effect = effect(before, after, self.app.conf)
        self._unknown = (
            *unknown,
            *(
                f'whether server {quoted(each.server.name)} '
                f'({each.server.id}) may stay on host '
                f'{each.server.host}{each.text}'
                for each in self._effect.doubtful
            ),
        )

    def document(self) -> documents.PlannedEffect:
        return documents.PlannedEffect(
            **vars(shown.document(self._effect)),
            differences=differences.document(self._differences),
            steps=tuple(commands.shown([c]) for c in self._order.commands),
            gaps=tuple(self._order.sentences),
            refused=documents.refused(self._refused),
            unknown=tuple(self._unknown),
        )

    def before(self) -> Iterable[str]:
        """Yield the effect, the worst first, and the steps."""
        yield from change_arguments.refused_lines(self._refused)
        if not self._compares:
            yield from self._lines()
        for sentence in self._unknown:
            yield f'Not known: {sentence}'
        if len(self._order.commands) > 1:
            yield ''
            yield 'A safe order of the steps:'
            for command in self._order.commands:
                yield terminal.Shell(f'  {commands.shown([command])}')
            for gap in self._order.sentences:
                yield f'No order is entirely safe. {gap}'

    def after(self) -> Iterable[str]:
        """Yield the effect of differences, the worst first."""
        if self._differences:
            yield from self._lines()

    def _lines(self) -> Iterable[str]:
        return shown.lines(self._effect, None if self.is_long else shown.MOST)
