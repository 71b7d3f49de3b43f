# SPDX-License-Identifier: Apache-2.0
"""``test``: compares a cloud with what is expected of it."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
import contextlib
import dataclasses
import datetime
import functools
from typing import Any

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import counted, public_url
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.answers import deciding
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cli import base, output, progress
from isolate_aggregates_tools.cli.exit_status import ExitStatus, first_of
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.commands import change_arguments, clouds
from isolate_aggregates_tools.expectations import (
    document,
    first_file,
    mutations,
    report,
)
from isolate_aggregates_tools.expectations.answers import Answers, Context
from isolate_aggregates_tools.expectations.checks import ServersCheck
from isolate_aggregates_tools.expectations.expectation import (
    Expectation,
    evaluate,
)
from isolate_aggregates_tools.expectations.matching import is_pattern
from isolate_aggregates_tools.expectations.survives import Survives
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.repairs import commands, outcome

# The most problems of an expectation, reasons of a problem, and mutations
# that are shown to people.
_MOST = 5
_MOST_GAPS = 20


class CheckExpectations(output.ReportLister):
    """Test whether a cloud isolates hosts as it is expected to.

    The file says which servers may use which hosts, and for how many there is
    room. The exit status is 0 if the cloud meets all expectations, 4 if it
    does not, 7 if Nova refuses a change, 8 if a part of a change was not read,
    1 if the test itself failed. As json
    or yaml: one document with the reasons and the digests of the files and of
    the cloud.
    """

    columns = ('Result', 'Expectation', 'Line', 'Problems')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'file', nargs='?', metavar='<file>', help='File of expectations'
        )
        base.add_snapshot_argument(parser)
        parser.add_argument(
            '--init',
            action='store_true',
            help='Write a file of expectations that describe the cloud as it '
            'is, to --output',
        )
        parser.add_argument(
            '--mutate',
            action='store_true',
            help='Also remove or alter each tag, trait and extra spec on a '
            'copy of the cloud, one after the other, and show those that no '
            'expectation notices; this results in exit status 4, too',
        )
        base.add_output_argument(
            parser, 'Also write the result to this file, as JUnit'
        )
        change_arguments.add_arguments(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Test the cloud; return the exit status."""
        if parsed_args.init:
            if parsed_args.mutate or parsed_args.file:
                self._usage.error('--init takes neither --mutate nor a file')
            if not parsed_args.output:
                self._usage.error('--init needs --output')
            return self._init(parsed_args)
        if not parsed_args.file:
            self._usage.error('<file> is required')
        return super().run(parsed_args)

    def report(self, args: argparse.Namespace) -> output.Report:
        if args.output:
            report.check_junit(args.output)
        expectations = document.load(args.file)
        with self._answers(args, expectations) as (answers, changed, source):
            # All of them have been read.
            digests = {
                name: report.digest_of_file(name) for name in _files(args)
            }
            results = evaluate(expectations, answers)
            with deciding.silent():
                coverage = (
                    mutations.coverage(expectations, answers, progress.testing)
                    if args.mutate
                    else None
                )
                lines = tuple(report.lines(results, answers))
            not_known = dict.fromkeys(
                (*changed.unknown, *answers.context.builder.not_known)
            )
        found = report.Report(
            time=datetime.datetime.now(datetime.UTC),
            path=args.file,
            cloud=source,
            cloud_digest=report.digest_of_cloud(
                answers.snapshot,
                self.app.conf,
                answers.context.builder.releases[-1],
            ),
            file_digests=digests,
            changes=tuple(
                commands.shown([each])
                for each in changed.steps
                if each not in {one.command for one in changed.refused}
            ),
            filters=report.filters(self.app.conf),
            lines=lines,
            not_known=tuple(not_known),
            refused=changed.refused,
            unread=changed.unread,
            coverage=coverage,
        )
        if args.output:
            report.write_junit(found, args.output)
        is_for_people = args.formatter == 'table'
        return output.Report(
            document=functools.partial(report.document, found),
            columns=self.columns,
            rows=() if is_for_people else _rows(found),
            before=_lines(found, args.long),
            status=_status(found),
        )

    def _init(self, args: argparse.Namespace) -> int:
        """Write a first file."""
        document.check_new(args.output)
        with self._answers(args, ()) as (answers, *_), deciding.silent():
            entries = list(first_file.entries(answers))
        if not entries:
            raise errors.ExpectationsFileError(
                args.output,
                of_file='was not written: the cloud has no flavors',
            )
        document.save(entries, args.output)
        number = counted(len(entries), 'expectation')
        self.app.stdout.write(f'Wrote {number} to {args.output}.\n')
        return 0

    @contextlib.contextmanager
    def _answers(
        self, args: argparse.Namespace, expectations: Sequence[Expectation]
    ) -> Iterator[tuple[Answers, change_arguments.Changed, str]]:
        """Open the cloud after the changes; yield its name too."""
        conf = self.app.conf
        with clouds.opened(self.app, args) as cloud:
            if any(isinstance(e.check, Survives) for e in expectations):
                snapshot, _ = clouds.read_all(cloud)
            else:
                # Nova refuses some changes of hosts with servers.
                snapshot = clouds.read(cloud, bool(args.changes))
            filters = Pipeline(loading.load(conf))
            changed = change_arguments.changed(
                snapshot, args.changes, filters, conf
            )
            _, refused, after = outcome.made(snapshot, changed.steps, filters)
            changed = dataclasses.replace(
                changed,
                after=after,
                unknown=(
                    *changed.unknown,
                    *outcome.unknown(snapshot, after),
                ),
                refused=refused,
            )
            context = Context(
                conf,
                chain.as_in_nova(conf),
                filters,
                Requests(cloud, conf),
                _project_ids(expectations, cloud),
            )
            clouds.warn_if_unguarded(cloud, conf)
            source = snapshot.origin
            if not isinstance(cloud, SnapshotCloud):
                url = public_url(cloud.placement.endpoint)
                source += f' with Placement at {url}'
            yield Answers(changed.after, context), changed, source


def _files(args: argparse.Namespace) -> Iterator[str]:
    """Yield the files that the result depends on."""
    yield args.file
    if args.snapshot:
        yield args.snapshot
    for option, words in args.changes:
        if change_arguments.is_file(option):
            yield words


def _project_ids(
    expectations: Sequence[Expectation], cloud: Cloud
) -> dict[str, str | None]:
    """Return the ids of the projects that expectations name.

    A saved cloud has no projects: those count that its aggregates, images,
    servers and domains name.
    """
    names = {
        name
        for expectation in expectations
        if isinstance(expectation.check, ServersCheck)
        for name in expectation.check.servers.projects
        if not is_pattern(name)
    }
    if isinstance(cloud, SnapshotCloud):
        return {name: name for name in names & _owners(cloud)}
    ids: dict[str, str | None] = {}
    for name in sorted(names):
        try:
            ids[name] = cloud.project(name)
        except errors.NotFound:
            ids[name] = None
    return ids


def _owners(cloud: SnapshotCloud) -> set[str]:
    """Return the ids of projects that own something in a saved cloud."""
    snapshot = cloud.snapshot
    servers = snapshot.servers.placed if snapshot.servers else ()
    return {
        *(server.project_id for server in servers),
        *(image.owner for image in snapshot.images if image.owner),
        *(key for a in snapshot.aggregates for key in a.metadata),
        *(p for some in snapshot.domains.values() for p in some or ()),
    }


def _status(found: report.Report) -> ExitStatus:
    return first_of(
        {
            ExitStatus.NOT_UNDERSTOOD: found.unread,
            ExitStatus.REFUSED_CHANGE: found.refused,
            ExitStatus.NO: not found.is_passed,
        }
    )


def _lines(found: report.Report, is_long: bool) -> Iterable[str]:
    """Yield the expectations with their problems, and the totals."""
    most = None if is_long else _MOST
    for line in found.lines:
        if not line.problems:
            yield f'passed: {line.name}'
            continue
        yield f'FAILED: {line.name} (line {line.line})'
        for problem in _first(line.problems, most, 'problem', 2):
            if isinstance(problem, str):
                yield problem
                continue
            yield f'  {problem.problem}'
            for reason in _first(problem.reasons, most, 'reason', 4):
                yield f'    {reason}'
    passed = len(found.lines) - len(found.failures)
    yield f'{passed} passed, {len(found.failures)} failed.'
    yield from change_arguments.unread_lines(found.unread)
    yield from change_arguments.refused_lines(found.refused)
    for sentence in found.not_known:
        yield f'Not known: {sentence}'
    if found.coverage:
        yield ''
        yield from _mutation_lines(found.coverage, is_long)


def _mutation_lines(
    coverage: mutations.Coverage, is_long: bool
) -> Iterator[str]:
    yield (
        f'Mutations: {coverage.noticed} noticed, {len(coverage.gaps)} '
        f'unnoticed, {coverage.without_effect} without effect.'
    )
    most = None if is_long else _MOST_GAPS
    for gap in _first(coverage.gaps, most, 'unnoticed mutation', 2):
        if isinstance(gap, str):
            yield gap
        else:
            yield f'  {gap.mutation}: {gap.effect}'


def _rows(result: report.Report) -> Iterator[tuple[Any, ...]]:
    for line in result.lines:
        yield (
            line.result,
            line.name,
            line.line,
            '; '.join(problem.problem for problem in line.problems),
        )


def _first(
    things: Sequence[Any], most: int | None, noun: str, indent: int
) -> Iterator[Any]:
    """Yield the first things, and a line with the number of the others."""
    yield from things[:most]
    if most is not None and len(things) > most:
        number = counted(len(things) - most, f'more {noun}')
        yield f'{" " * indent}and {number}; --long shows all'
