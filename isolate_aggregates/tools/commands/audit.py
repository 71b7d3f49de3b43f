# SPDX-License-Identifier: Apache-2.0
"""``audit``: finds problems with the isolation, and their repairs."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import itertools
from typing import Any

from cliff import commandmanager
from oslo_log import log as logging

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import listed
from isolate_aggregates.tools.advice import Advice, Repair, commands, outcome
from isolate_aggregates.tools.audit import (
    AuditedCloud,
    Finding,
    Severity,
    audit,
    trial,
)
from isolate_aggregates.tools.audit.finding import About
from isolate_aggregates.tools.cli import (
    base,
    fields,
    output,
    preview,
    progress,
)
from isolate_aggregates.tools.cli.exit_status import ExitStatus
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.commands import documents, reservations

LOG = logging.getLogger(__name__)

_LEVELS = tuple(severity.label for severity in Severity)

# The columns of a table; all columns together would be too wide.
_FOR_PEOPLE = ('No.', 'Severity', 'Subject', 'Problem', 'Consequence')
# What findings are about, as lists for programs.
_ABOUT = tuple(field.name for field in dataclasses.fields(About))
_COLUMNS = (
    *(*_FOR_PEOPLE, 'Kind', 'Repair', 'Safe'),
    *map(str.capitalize, _ABOUT),
)


class AuditCloud(preview.Previewing, output.ReportLister):
    """Find problems with the isolation, and how to repair them.

    Aggregates, flavors, images, configuration and Placement are cross-checked.
    The exit status is 0 if no problem is found, 4 if one has the severity of
    --fail-on or worse, 1 if the audit itself failed. As json or yaml: one
    document with the findings and their counts.
    """

    nothing = 'No problems found.'
    for_people = _FOR_PEOPLE
    shows_more = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        base.add_servers_argument(parser)
        parser.add_argument(
            '--fail-on',
            choices=_LEVELS,
            default=Severity.WARNING.label,
            help='Lowest severity that results in exit status 4; default: '
            'warning',
        )
        parser.add_argument(
            '--fix',
            action='store_true',
            help='Show the safe repairs, make them after confirmation, and '
            'audit again',
        )
        self._usage = parser
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Audit the cloud; return the exit status."""
        base.check_live(self._usage, parsed_args, 'fix')
        for option in ('yes', 'dry_run'):
            if getattr(parsed_args, option) and not parsed_args.fix:
                name = option.replace('_', '-')
                self._usage.error(f'--{name} needs --fix')
        code = super().run(parsed_args)
        limit = Severity[parsed_args.fail_on.upper()]
        worst = max((f.severity for f in self._findings), default=0)
        return ExitStatus.NO if worst >= limit else code

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Audit the cloud, and again after repairs."""
        self._is_of_file = bool(parsed_args.snapshot)
        self._is_shown = parsed_args.dry_run
        self._findings = self._audit(parsed_args)
        if parsed_args.fix and self._fix(parsed_args):
            self._findings = self._audit(parsed_args)
        self._advice = [
            list(self._effects.advice(finding.repairs))
            for finding in self._findings
        ]
        return _COLUMNS, [
            (
                number,
                finding.severity.label,
                finding.subject,
                finding.problem,
                finding.consequence,
                finding.kind,
                str(advice[0]) if advice else '',
                finding.safe,
                *(
                    fields.Value(list(getattr(finding.about, name)))
                    for name in _ABOUT
                ),
            )
            for number, (finding, advice) in enumerate(
                zip(self._findings, self._advice, strict=True), 1
            )
        ]

    def document(self) -> documents.Audit:
        return documents.Audit(
            summary=documents.Counts(
                **{level: self._count(level) for level in _LEVELS}
            ),
            findings=tuple(
                documents.Finding(
                    kind=finding.kind,
                    severity=finding.severity.label,
                    subject=finding.subject,
                    problem=finding.problem,
                    consequence=finding.consequence,
                    **vars(finding.about),
                    repairs=tuple(
                        documents.Repair(
                            command=one.line or None,
                            text=one.text,
                            opens=one.opens,
                            safe=one.safe,
                        )
                        for one in advice
                    ),
                )
                for finding, advice in zip(
                    self._findings, self._advice, strict=True
                )
            ),
            effect=self.effect_document(),
        )

    def before(self) -> Iterable[str]:
        """Yield the number of findings by severity."""
        if self._findings:
            yield ', '.join(
                f'{level}: {self._count(level)}' for level in reversed(_LEVELS)
            )

    def after(self) -> Iterable[str]:
        """Yield the repairs, and where the kinds are explained."""
        yield from self._repairs()
        if self._is_shown and commands.SYNC in _safe(self._findings):
            yield ''
            yield 'Changes that sync would make:'
            for change in self._synced:
                yield f'  {change}'
        if self._is_shown:
            yield from self.effect_lines()
        if self._findings:
            kinds = sorted({finding.kind for finding in self._findings})
            yield ''
            yield (
                'The page Findings of the documentation has a section for '
                f'each kind: {listed(kinds, None)}.'
            )

    def _repairs(self) -> Iterator[str]:
        numbers_by_repair: dict[Advice, list[int]] = {}
        for number, advice in enumerate(self._advice, 1):
            for first in advice[:1]:
                numbers_by_repair.setdefault(first, []).append(number)
        if not numbers_by_repair:
            return
        safe = _safe(self._findings)
        yield ''
        where, there = (
            (' of the live cloud', ' there') if self._is_of_file else ('', '')
        )
        fix = (
            f' (those with * are safe; --fix applies them{there})'
            if safe
            else ''
        )
        yield f'Repairs{where}{fix}:'
        for first, numbers in numbers_by_repair.items():
            mark = '*' if first.safe else ' '
            places = ', '.join(map(str, numbers))
            yield from output.advice(f'{mark} {places}: ', first)
            others = (self._advice[number - 1][1:] for number in numbers)
            for other in dict.fromkeys(itertools.chain(*others)):
                yield from output.advice('    or: ', other)

    def _count(self, level: str) -> int:
        return Counter(f.severity.label for f in self._findings)[level]

    def _audit(self, args: argparse.Namespace) -> list[Finding]:
        with base.opened(self.app, args) as cloud:
            audited_cloud = AuditedCloud.read(
                cloud, self.app.conf, args.servers, progress.reading
            )
        if not args.snapshot:
            audited_cloud = reservations.with_review(
                self.app, audited_cloud, is_thorough=True
            )
        # What sync would do can be more than the findings say.
        plan = audited_cloud.plan
        # To let in projects of a domain is no repair of something else.
        self._lets_in = any(each.missing for each in plan.differences)
        if self._lets_in:
            plan = dataclasses.replace(plan, differences=())
        self._synced = plan.sentences
        self._effects = audited_cloud.effects
        return trial.held(audited_cloud, audit(audited_cloud), audit)

    def _to_do(self) -> list[str]:
        """Describe the safe repairs and the changes that sync would make."""
        messages = self._messages()
        is_synced = commands.SYNC in _safe(self._findings)
        return [*messages, *self._synced] if is_synced else messages

    def _repaired(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot after all safe repairs."""
        filters = Pipeline(loading.load(self.app.conf))
        for todo in _safe(self._findings):
            *_, snapshot = outcome.outcomes(snapshot, todo, filters)
        return snapshot

    def _messages(self) -> list[str]:
        """Describe the safe repairs with the findings they repair."""
        return [
            f'{advice}: {finding.subject}: {finding.problem}'
            for finding in self._findings
            for advice in self._effects.advice(_safe_repair(finding))
        ]

    def _fix(self, args: argparse.Namespace) -> bool:
        """Apply the safe repairs; return whether there were any."""

        def find() -> list[str]:
            self._findings = self._audit(args)
            return self._to_do()

        def effect() -> list[str]:
            with base.opened(self.app, args) as cloud:
                return self.preview(args, self._repaired, cloud)

        to_do = self._to_do()
        if not to_do or not self.agrees(args, to_do, find, effect):
            return False
        for todo in _safe(self._findings):
            for command in todo:
                words: Sequence[str] = command
                if self._lets_in and (command,) == commands.SYNC:
                    words = (*command, '--no-domains')
                # The user has already agreed.
                status = _run((*words, '--yes'), _Beside(self.app))
                if status:
                    line = commands.shown((words,))
                    LOG.error('%s ended with status %d.', line, status)
                    break
        return True


class _Beside:
    """The program, for a command that must not write to the report.

    Its output goes to standard error.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self.stdout = app.stderr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)


def _run(command: Sequence[str], app: Any) -> int:
    """Run a command of this program; return its exit status."""
    program, *arguments = command
    assert program == commands.PROGRAM
    manager = commandmanager.CommandManager('isolate_aggregates.cli')
    factory, name, rest = manager.find_command(arguments)
    instance = factory(app, None)
    return int(instance.run(instance.get_parser(name).parse_args(rest)))


def _safe_repair(finding: Finding) -> Iterator[Repair]:
    yield from (repair for repair in finding.repairs[:1] if repair.safe)


def _safe(findings: Iterable[Finding]) -> list[commands.Commands]:
    """Return the commands of the safe repairs without duplicates."""
    return list(
        dict.fromkeys(
            repair.commands
            for finding in findings
            for repair in _safe_repair(finding)
        )
    )
