# SPDX-License-Identifier: Apache-2.0
"""``effect``: shows what a change would do, before it is made."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import quoted
from isolate_aggregates.tools.advice import commands, outcome
from isolate_aggregates.tools.answers.requests import Requests
from isolate_aggregates.tools.cli import base, output, preview, terminal
from isolate_aggregates.tools.cli.exit_status import ExitStatus
from isolate_aggregates.tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates.tools.commands import change_arguments
from isolate_aggregates.tools.effect import (
    documents,
    effect,
    refusals,
    shown,
)
from isolate_aggregates.tools.mirrored import chain


class ShowEffect(output.ReportLister):
    """Show what changes would do to servers, flavors, projects and findings.

    Nothing is changed. The changes are made to a copy of the cloud in memory,
    in the order of the options, and the answers of the other commands before
    and after them are compared. The worst comes first. As json or yaml: one
    document with all of it. Steps that Nova refuses are named and left out;
    the exit status is 7 then.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        change_arguments.add_arguments(parser)
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
        if not parsed_args.changes:
            self._usage.error('a change is required, such as --add-host')
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
        with base.opened(self.app, parsed_args) as cloud:
            before = preview.read(cloud, not parsed_args.no_servers)
        filters = Pipeline(loading.load(self.app.conf))
        changed = change_arguments.changed(
            before, parsed_args.changes, filters
        )
        self._order, others = refusals.accepted(
            before,
            changed.steps,
            chain.as_in_nova(self.app.conf),
            filters,
            Requests(SnapshotCloud(before), self.app.conf),
        )
        self._refused = changed.refused + others
        after = changed.after
        if others:
            states = outcome.outcomes(before, self._order.commands, filters)
            *_, after = before, *states
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
        # Sentences are too long for the cells of a table.
        is_for_people = parsed_args.formatter == 'table'
        rows = [] if is_for_people else shown.rows(self._effect)
        return (
            ('Effect on', 'Before', 'After', 'Details'),
            [(row.what, row.before, row.after, row.why) for row in rows],
        )

    def document(self) -> documents.PlannedEffect:
        return documents.PlannedEffect(
            **vars(shown.document(self._effect)),
            steps=tuple(commands.shown([c]) for c in self._order.commands),
            gaps=tuple(self._order.sentences),
            refused=tuple(
                documents.Refused(
                    step=commands.shown([each.command]), reason=each.reason
                )
                for each in self._refused
            ),
            unknown=tuple(self._unknown),
        )

    def before(self) -> Iterable[str]:
        """Yield the effect, the worst first, and the steps."""
        for each in self._refused:
            yield f'Nova refuses this step, which is left out: {each.reason}.'
            yield terminal.Shell(f'  {commands.shown([each.command])}')
        yield from shown.lines(
            self._effect, None if self.is_long else shown.MOST
        )
        for sentence in self._unknown:
            yield f'Not known: {sentence}'
        if len(self._order.commands) > 1:
            yield ''
            yield 'A safe order of the steps:'
            for command in self._order.commands:
                yield terminal.Shell(f'  {commands.shown([command])}')
            for gap in self._order.sentences:
                yield f'No order is entirely safe. {gap}'
