# SPDX-License-Identifier: Apache-2.0
"""``audit``: finds problems with the isolation, and their repairs."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
import dataclasses
import itertools
import logging
from typing import Any

from cliff import commandmanager

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import listed
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.advice import trial
from isolate_aggregates_tools.advice.effects import Advice, Effects
from isolate_aggregates_tools.audit import (
    AuditedCloud,
    Finding,
    Severity,
    audit,
)
from isolate_aggregates_tools.audit.finding import About
from isolate_aggregates_tools.cli import base, output, preview, progress
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import (
    advised,
    clouds,
    reservations,
)
from isolate_aggregates_tools.commands import audit_documents as documents
from isolate_aggregates_tools.effect.documents import Effect
from isolate_aggregates_tools.operate.sync.plan import SyncPlan
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.repairs.repair import Repair

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

    shows_more = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        clouds.add_servers_argument(parser)
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
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Audit the cloud; return the exit status."""
        base.check_live(self._usage, parsed_args, 'fix')
        for option in ('yes', 'dry_run'):
            if getattr(parsed_args, option) and not parsed_args.fix:
                name = option.replace('_', '-')
                self._usage.error(f'--{name} needs --fix')
        return super().run(parsed_args)

    def report(self, args: argparse.Namespace) -> output.Report:
        """Audit the cloud, and again after repairs."""
        audited = self._audit(args)
        if args.fix:
            audited, is_repaired = self._fix(args, audited)
            if is_repaired:
                audited = self._audit(args)
        shown = _Shown(
            audited.findings,
            [
                list(audited.effects.advice(finding.repairs))
                for finding in audited.findings
            ],
        )
        limit = Severity[args.fail_on.upper()]
        worst = max((f.severity for f in audited.findings), default=0)
        is_shown = args.dry_run
        return output.Report(
            document=lambda: shown.document(self.effect_document()),
            columns=_COLUMNS,
            rows=shown.rows(),
            people=_FOR_PEOPLE,
            text=shown.text(),
            before=shown.heading(bool(args.snapshot), bool(audited.safe)),
            after=itertools.chain(
                audited.sync_lines() if is_shown else (),
                self.effect_lines() if is_shown else (),
                shown.kinds(),
            ),
            nothing='No problems found.',
            status=ExitStatus.NO if worst >= limit else ExitStatus.DONE,
        )

    def _audit(self, args: argparse.Namespace) -> '_Audited':
        # What is repaired is read anew.
        remembers = not args.fix
        with clouds.opened(self.app, args, remembers=remembers) as cloud:
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
        lets_in = any(each.missing for each in plan.differences)
        if lets_in:
            plan = dataclasses.replace(plan, differences=())
        effects = Effects.of(audited_cloud)
        return _Audited(
            trial.held(audited_cloud, audit(audited_cloud), effects),
            effects,
            plan,
            lets_in,
        )

    def _fix(
        self, args: argparse.Namespace, audited: '_Audited'
    ) -> tuple['_Audited', bool]:
        """Apply the safe repairs.

        :returns: The last audit, and whether there were repairs.
        """

        def find() -> list[str]:
            nonlocal audited
            audited = self._audit(args)
            return audited.to_do()

        def repaired(snapshot: Snapshot) -> Snapshot:
            filters = Pipeline(loading.load(self.app.conf))
            for todo in audited.safe:
                snapshot = outcome.after(snapshot, todo, filters)
            return snapshot

        def effect() -> list[str]:
            with clouds.opened(self.app, args) as cloud:
                return self.preview(
                    args,
                    lambda: preview.loaded('change')(
                        self.app, repaired, cloud
                    ),
                )

        to_do = audited.to_do()
        if not to_do or not self.agrees(args, to_do, find, effect):
            return audited, False
        for todo in audited.safe:
            for command in todo:
                words: Sequence[str] = command
                if audited.lets_in and (command,) == commands.SYNC:
                    words = (*command, '--no-domains')
                # The user has already agreed.
                status = _run((*words, '--yes'), _Beside(self.app))
                if status:
                    line = commands.shown((words,))
                    LOG.error('%s ended with status %d.', line, status)
                    break
        return audited, True


@dataclasses.dataclass(frozen=True)
class _Audited:
    """The findings of an audit, and what sync would do.

    :param lets_in: Whether sync would let in projects of a domain too.
    """

    findings: Sequence[Finding]
    effects: Effects
    plan: SyncPlan
    lets_in: bool

    @property
    def safe(self) -> Sequence[commands.Commands]:
        """The commands of the safe repairs, without duplicates."""
        return list(
            dict.fromkeys(
                repair.commands
                for finding in self.findings
                for repair in _safe_repair(finding)
            )
        )

    def to_do(self) -> list[str]:
        """Describe the safe repairs and the changes that sync would make."""
        messages = [
            f'{advice}: {finding.subject}: {finding.problem}'
            for finding in self.findings
            for advice in self.effects.advice(_safe_repair(finding))
        ]
        is_synced = commands.SYNC in self.safe
        return [*messages, *self.plan.sentences] if is_synced else messages

    def sync_lines(self) -> Iterator[str]:
        """Yield what sync would do, if it is a repair."""
        if commands.SYNC in self.safe:
            yield ''
            yield 'Changes that sync would make:'
            for change in self.plan.sentences:
                yield f'  {change}'


@dataclasses.dataclass(frozen=True)
class _Shown:
    """The findings of an audit with their advice, as they are shown."""

    findings: Sequence[Finding]
    advice: Sequence[Sequence[Advice]]

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield a row for each finding."""
        for number, (finding, advice) in enumerate(self._pairs(), 1):
            yield (
                number,
                finding.severity.label,
                finding.subject,
                finding.problem,
                finding.consequence,
                finding.kind,
                str(advice[0]) if advice else '',
                finding.safe,
                *(
                    output.Value(list(getattr(finding.about, name)))
                    for name in _ABOUT
                ),
            )

    def document(self, effect: Effect | None) -> documents.Audit:
        """Return the document.

        :param effect: That of the repairs, if it was computed.
        """
        counts = self._counts()
        return documents.Audit(
            summary=documents.Counts(
                **{level: counts[level] for level in _LEVELS}
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
                for finding, advice in self._pairs()
            ),
            effect=effect,
        )

    def heading(self, is_of_file: bool, has_safe: bool) -> Iterator[str]:
        """Yield the number of findings by severity, and what a mark means.

        :param is_of_file: Whether the cloud is that of a cloud file.
        :param has_safe: Whether --fix would make a repair.
        """
        if self.findings:
            counts = self._counts()
            yield ', '.join(
                f'{level}: {counts[level]}' for level in reversed(_LEVELS)
            )
        if has_safe:
            where = ' to the live cloud' if is_of_file else ''
            yield f'Repairs with * are safe; --fix applies them{where}.'

    def text(self) -> Iterator[str]:
        """Yield each finding as a paragraph, with its repairs below it."""
        first: dict[Advice, int] = {}
        for number, (finding, advice) in enumerate(self._pairs(), 1):
            yield ''
            yield (
                f'{number}. {finding.severity.label}: {finding.subject}: '
                f'{finding.problem}; {finding.consequence}'
            )
            for place, one in enumerate(advice):
                same = first.setdefault(one, number)
                if same != number:
                    yield f' {"*" if one.safe else " "} the repair of {same}'
                    continue
                mark = ' or: ' if place else ' * ' if one.safe else '   '
                yield from advised.lines(mark, one)

    def kinds(self) -> Iterator[str]:
        """Yield where the kinds of findings are explained."""
        if self.findings:
            kinds = sorted({finding.kind for finding in self.findings})
            yield ''
            yield (
                'The page Findings of the documentation has a section for '
                f'each kind: {listed(kinds, None)}.'
            )

    def _pairs(self) -> Iterator[tuple[Finding, Sequence[Advice]]]:
        return zip(self.findings, self.advice, strict=True)

    def _counts(self) -> Counter[str]:
        return Counter(each.severity.label for each in self.findings)


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
    assert program == shell.PROGRAM
    manager = commandmanager.CommandManager('isolate_aggregates.cli')
    factory, name, rest = manager.find_command(arguments)
    instance = factory(app, None)
    return int(instance.run(instance.get_parser(name).parse_args(rest)))


def _safe_repair(finding: Finding) -> Iterator[Repair]:
    yield from (repair for repair in finding.repairs[:1] if repair.safe)
