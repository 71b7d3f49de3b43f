# SPDX-License-Identifier: Apache-2.0
"""``rehearse``: runs a tool against a copy of the cloud."""

import argparse
from collections.abc import Iterable, Iterator
import contextlib
import dataclasses
import signal
from typing import NoReturn

from isolate_aggregates.text import counted, listed, quoted
from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.cli.exit_status import ExitStatus, first_of
from isolate_aggregates_tools.cloud import diff
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import clouds, differences, snapshots
from isolate_aggregates_tools.effect import Effect, documents, effect, shown
from isolate_aggregates_tools.rehearse import between, tool
from isolate_aggregates_tools.rehearse.exchange import Call
from isolate_aggregates_tools.rehearse.rehearsal import Rehearsal
from isolate_aggregates_tools.rehearse.tool import Ended
from isolate_aggregates_tools.rehearse.world import World
from isolate_aggregates_tools.repairs import outcome


class Rehearse(output.ReportLister):
    """Run a tool against a copy of the cloud, and show what it would do.

    A local API holds the cloud of the file, or the live cloud, which is only
    read. The tool, such as ansible-playbook, terraform or a script, finds it
    in its variables and in clouds.yaml; it gets no credentials, and reaches no
    other network. Its output goes to the standard error. Afterwards, the two
    clouds are compared as by "effect show". What the local API does not know
    is answered with an error and listed; the exit status is 8 then. If the
    tool fails, it is 9; if Nova or Glance or Placement would refuse a change,
    it is 7.
    """

    columns = differences.COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        parser.add_argument(
            '--no-servers',
            action='store_true',
            help='Do not read the servers of the projects',
        )
        parser.add_argument(
            '--any-network',
            action='store_true',
            help='Run the tool although the system does not let it be kept '
            'off other networks',
        )
        parser.add_argument(
            '--as-cloud',
            action='append',
            default=[],
            metavar='<name>',
            help='A name of the cloud in clouds.yaml that the tool gives; may '
            'be repeated. The names of your own clouds are known',
        )
        parser.add_argument(
            '--time-limit',
            type=base.positive,
            metavar='<seconds>',
            help='End the tool after this time; by default, it may take any '
            'time',
        )
        parser.add_argument(
            '--trace',
            action='store_true',
            help='Show all requests of the tool',
        )
        parser.add_argument(
            '--detailed-exitcode',
            action='store_true',
            help='Exit with status 0 if nothing changes, 6 if something does, '
            'and 5 if servers would be out of place',
        )
        base.add_output_argument(
            parser, 'Cloud file to write, with the cloud as it would be'
        )
        parser.add_argument(
            'command',
            nargs=argparse.REMAINDER,
            metavar='-- <command>',
            help='The tool with its arguments',
        )
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        words = args.command
        command = words[1:] if words[:1] == ['--'] else words
        if not command:
            self._usage.error('a command is required, after --')
        tool.check(command)
        if args.output:
            cloud_file.check_output(args.output)
        found = self._rehearsed(args, command)
        if args.output:
            cloud_file.save(found.world.snapshot, args.output)
        most = None if args.long else shown.MOST
        return output.Report(
            document=found.document,
            columns=self.columns,
            rows=differences.rows(found.differences),
            before=found.before(args.trace),
            after=found.after(most),
            nothing='The tool leaves the cloud as it is.',
            status=found.status(args.detailed_exitcode),
        )

    def _rehearsed(
        self, args: argparse.Namespace, command: list[str]
    ) -> '_Found':
        before = self._cloud(args)
        names = *args.as_cloud, *_named_clouds(command)
        with (
            _leaving_at_signals(),
            Rehearsal(before, names, args.any_network) as rehearsal,
        ):
            ended = rehearsal.run(command, args.time_limit)
        world = rehearsal.world
        return _Found(
            world,
            ended,
            effect(world.before, world.snapshot, self.app.conf),
            tuple(diff.changes(world.before, world.snapshot)),
            tuple(between.sentences(world, self.app.conf)),
            not args.any_network,
            args.time_limit,
        )

    def _cloud(self, args: argparse.Namespace) -> Snapshot:
        if not args.snapshot:
            return snapshots.with_names(
                self.app, snapshots.taken(self.app, not args.no_servers)
            )
        snapshot = cloud_file.load(args.snapshot)
        clouds.apply_settings(self.app.conf, snapshot)
        if args.no_servers:
            return dataclasses.replace(snapshot, servers=None)
        return snapshot


@contextlib.contextmanager
def _leaving_at_signals() -> Iterator[None]:
    """Within this context, SIGTERM and SIGHUP let contexts be left first.

    By default they end Python at once, and temporary files stay.
    """

    def leave(number: int, _: object) -> NoReturn:
        # The status that a shell tells of such an end.
        raise SystemExit(128 + number)

    # nohup ignores one of them.
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) == signal.SIG_DFL
    ]
    for number in numbers:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@dataclasses.dataclass(frozen=True)
class _Found:
    """What a tool did to the cloud of a rehearsal.

    :param gaps: Who is let in or refused only in between.
    :param timeout: The longest time that the tool had, in seconds.
    """

    world: World
    ended: Ended
    effect: Effect
    differences: tuple[diff.Change, ...]
    gaps: tuple[str, ...]
    is_isolated: bool
    timeout: int | None

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is not known, without full stops."""
        left = self.ended.left
        return (
            *self.world.unknown,
            *(
                f'what the processes that the tool left behind would have '
                f'done, which were ended: {listed(left)}'
                for _ in range(bool(left))
            ),
            *(
                f'{fields}; the tool got empty fields'
                for fields in self.world.empty
            ),
            *outcome.unknown(self.world.before, self.world.snapshot),
            *(
                f'whether server {quoted(each.server.name)} '
                f'({each.server.id}) may stay on host '
                f'{each.server.host}{each.text}'
                for each in self.effect.doubtful
            ),
        )

    def document(self) -> documents.PlannedEffect:
        return documents.PlannedEffect(
            **vars(shown.document(self.effect)),
            differences=differences.document(self.differences),
            steps=tuple(str(call) for call, _ in self.world.steps),
            gaps=self.gaps,
            refused=tuple(
                documents.Refused(step=str(call), reason=call.reason)
                for call in self.world.refused
            ),
            unknown=self.unknown,
            unread=(),
        )

    def before(self, is_traced: bool) -> Iterator[str]:
        """Yield the lines above the table."""
        if is_traced:
            for call in self.world.calls:
                body = f' {call.body}' if call.body else ''
                yield f'{call.status} {call}{body}'
        if not self.is_isolated:
            yield 'The tool could reach other networks.'
        yield from _ends(self.ended, self.timeout)
        for sentence in self.unknown:
            yield f'Not known: {sentence}.'
        for call in self.world.refused:
            yield f'Refused ({call.status}): {_told(call)}'

    def after(self, most: int | None) -> Iterator[str]:
        """Yield the lines below the table."""
        if self.differences:
            yield from shown.lines(self.effect, most)
        yield from self.gaps
        written = self.ended.written
        if written:
            yield (
                'What the tool wrote to the working folder is not kept: '
                f'{listed(written)}.'
            )
        elif written is None:
            yield (
                'What the tool wrote to the working folder stays, as it could '
                f'not be protected: {self.ended.why_open}.'
            )

    def status(self, is_detailed: bool) -> ExitStatus:
        is_changed = is_detailed and bool(self.differences or self.effect)
        return first_of(
            {
                ExitStatus.NOT_UNDERSTOOD: self.world.unknown
                or self.world.empty
                or self.ended.left,
                ExitStatus.TOOL_FAILED: self.ended.status != 0,
                ExitStatus.REFUSED_CHANGE: self.world.refused,
                ExitStatus.DISPLACED: is_changed and self.effect.displaced,
                ExitStatus.CHANGED: is_changed,
            }
        )


def _ends(ended: Ended, timeout: int | None) -> Iterator[str]:
    if ended.status is None:
        yield f'The tool was ended after {counted(timeout or 0, "second")}.'
    elif ended.status < 0:
        yield f'The tool was ended by signal {-ended.status}.'
    elif ended.status:
        yield f'The tool failed with status {ended.status}.'


def _told(call: Call) -> str:
    return f'{call}: {call.reason}.' if call.reason else f'{call}.'


def _named_clouds(command: Iterable[str]) -> Iterator[str]:
    """Yield the clouds that a command names in its own arguments."""
    words = iter(command)
    for word in words:
        name, equals, value = word.partition('=')
        if name == '--os-cloud':
            yield value if equals else next(words, '')
