# SPDX-License-Identifier: Apache-2.0
"""``audit``: what keeps isolation from working, and what repairs it."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import shlex
import sys
from typing import Any

from cliff import commandmanager
from oslo_log import log as logging
import tqdm

from isolate_aggregates import exception
from isolate_aggregates.cli import base, output
from isolate_aggregates.cloud.clouds import LiveCloud
from isolate_aggregates.inspect.audit import (
    AuditedCloud,
    Finding,
    Severity,
    audit,
    collect,
)
from isolate_aggregates.inspect.audit.repairs import PROGRAM

LOG = logging.getLogger(__name__)

# Exit statuses, beside 2 for arguments that make no sense.
CLEAN = 0
FOUND = 1
FAILED = 4

_LEVELS = tuple(severity.label for severity in Severity)

# All of them side by side no terminal has room for.
_FOR_PEOPLE = ('No.', 'Severity', 'Subject', 'Problem', 'Consequence')
_COLUMNS = (*_FOR_PEOPLE, 'Kind', 'Repair', 'Safe')


class AuditCloud(output.ReportLister):
    """Find what keeps isolation from working, and say what repairs it.

    Aggregates, flavors, images and configuration are held against each other
    and against Placement. The status is 0 when nothing is found, 1 when
    something is of the severity of --fail-on or worse, 4 when the audit itself
    failed. As json or yaml: one document with the findings and their counts.
    """

    # For failures outside, such as a configuration that can not be read.
    error_status = FAILED

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        parser.add_argument(
            '--servers',
            action='store_true',
            help='Look at the servers of all projects too: do they run where '
            'they may',
        )
        parser.add_argument(
            '--fail-on',
            choices=_LEVELS,
            default=Severity.WARNING.label,
            help='From which severity on the status is 1; default: warning',
        )
        parser.add_argument(
            '--fix',
            action='store_true',
            help='Show the repairs that are safe, apply them, and audit again',
        )
        parser.add_argument(
            '--yes', action='store_true', help='With --fix, do not ask'
        )
        self._usage = parser
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Audit the cloud; return the exit status."""
        if parsed_args.snapshot and (parsed_args.servers or parsed_args.fix):
            self._usage.error(
                'a cloud file has no servers and is not changed: leave out '
                '--servers and --fix, or --snapshot'
            )
        if parsed_args.yes and not parsed_args.fix:
            self._usage.error('--yes says nothing without --fix')
        try:
            super().run(parsed_args)
        except exception.IsolateAggregatesError as exc:
            LOG.error('%s', exc)
            LOG.debug('Where it happened:', exc_info=True)
            return FAILED
        limit = Severity[parsed_args.fail_on.upper()]
        worst = max((f.severity for f in self._findings), default=0)
        return FOUND if worst >= limit else CLEAN

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Audit the cloud, and again if something was repaired."""
        self._findings = self._audit(parsed_args)
        if parsed_args.fix and self._fix(parsed_args):
            self._findings = self._audit(parsed_args)
        if parsed_args.formatter == 'table':
            parsed_args.columns = parsed_args.columns or list(_FOR_PEOPLE)
            parsed_args.fit_width = True
        return _COLUMNS, [
            (
                number,
                finding.severity.label,
                *map(
                    _printable,
                    (finding.subject, finding.problem, finding.consequence),
                ),
                finding.kind,
                _printable(finding.repair or ''),
                finding.safe,
            )
            for number, finding in enumerate(self._findings, 1)
        ]

    def document(self) -> dict[str, Any]:
        """Return counts and findings."""
        return {
            'summary': {level: self._count(level) for level in _LEVELS},
            'findings': [
                {
                    **dataclasses.asdict(finding),
                    'severity': finding.severity.label,
                }
                for finding in self._findings
            ],
        }

    def before(self) -> Iterable[str]:
        """Yield how much was found."""
        if not self._findings:
            yield 'Nothing was found.'
            return
        counts = [(level, self._count(level)) for level in reversed(_LEVELS)]
        yield ', '.join(f'{level}: {number}' for level, number in counts)

    def after(self) -> Iterable[str]:
        """Yield the repairs."""
        repairs: dict[str, list[int]] = {}
        for number, finding in enumerate(self._findings, 1):
            if finding.repair:
                repairs.setdefault(finding.repair, []).append(number)
        if not repairs:
            return
        safe = _safe(self._findings)
        yield ''
        yield 'Repairs (with *: safe, --fix applies them):'
        for repair, numbers in repairs.items():
            mark = '*' if repair in safe else ' '
            places = ', '.join(map(str, numbers))
            yield f'{mark} {places}: {_printable(repair)}'

    def _count(self, level: str) -> int:
        return Counter(f.severity.label for f in self._findings)[level]

    def _audit(self, args: argparse.Namespace) -> list[Finding]:
        with base.opened(self.app, args) as cloud:
            if isinstance(cloud, LiveCloud):
                audited = collect.audited(
                    cloud, self.app.conf, args.servers, progress
                )
            else:
                audited = AuditedCloud.of(cloud.snapshot, self.app.conf)
        return audit(audited)

    def _fix(self, args: argparse.Namespace) -> bool:
        """Apply the safe repairs; return whether there were any."""
        repairs = _safe(self._findings)
        if not repairs:
            return False
        error = self.app.stderr
        error.write('Safe repairs:\n')
        for repair in repairs:
            error.write(f'  {_printable(repair)}\n')
        if not args.yes:
            error.write('Apply them? [y/N] ')
            error.flush()
            if sys.stdin.readline().strip().lower() not in ('y', 'yes'):
                error.write('Nothing was changed.\n')
                return False
        for repair in repairs:
            status = _run(repair, _Beside(self.app))
            if status:
                LOG.error('%s ended with status %d.', repair, status)
        return True


class _Beside:
    """The program, for a command whose output goes beside the report."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.stdout = app.stderr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)


def _run(repair: str, app: Any) -> int:
    """Run one of this program's own commands; return its status."""
    program, *arguments = shlex.split(repair)
    assert program == PROGRAM
    manager = commandmanager.CommandManager('isolate_aggregates.cli')
    factory, name, rest = manager.find_command(arguments)
    command = factory(app, None)
    return int(command.run(command.get_parser(name).parse_args(rest)))


def _safe(findings: Iterable[Finding]) -> list[str]:
    """Return the repairs that are safe, each once."""
    return list(
        dict.fromkeys(f.repair for f in findings if f.safe and f.repair)
    )


def _printable(text: str) -> str:
    """Return text that does nothing to a terminal but stand there."""
    return ''.join(
        c if c.isprintable() else c.encode('unicode_escape').decode('ascii')
        for c in text
    )


def progress(
    found: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    """Show progress to a person; a pipe or a log gets none.

    :param found: What comes one by one.
    :param what: What it is, in the plural.
    :param total: How many will come; None if that is not known.
    """
    return tqdm.tqdm(
        found, f'Reading {what}', total, unit='', leave=False, disable=None
    )
