# SPDX-License-Identifier: Apache-2.0
"""``effect``: shows what a change would do, before it is made."""

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.advice import commands, outcome
from isolate_aggregates.tools.cli import base, output, preview, terminal
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.effect import effect, formats, shown
from isolate_aggregates.tools.mirrored import chain
from isolate_aggregates.tools.operate import names

# The exit statuses of --detailed-exitcode.
CHANGED = 2
DISPLACED = 5

_HOST = ('<aggregate>', '<host>')

# Options with what they take and do.
_OPTIONS = {
    '--add-host': (_HOST, 'Add a host to an aggregate'),
    '--remove-host': (_HOST, 'Remove a host from an aggregate'),
    '--set': (
        ('<aggregate>', '<key>=<value>'),
        'Set metadata of an aggregate',
    ),
    '--unset': (('<aggregate>', '<key>'), 'Remove metadata of an aggregate'),
    '--flavor': (
        ('<flavor>', '<key>=<value>'),
        'Set an extra spec of a flavor',
    ),
    '--flavor-unset': (
        ('<flavor>', '<key>'),
        'Remove an extra spec of a flavor',
    ),
    '--image': (('<image>', '<key>=<value>'), 'Set a property of an image'),
    '--image-unset': (
        ('<image>', '<key>'),
        'Remove a property of an image',
    ),
}

# Options for files, with their formats.
_FILES = {
    '--terraform-plan': (
        'terraform',
        'a plan of Terraform, as terraform show -json writes it',
    ),
    '--ansible': ('ansible', 'Ansible variables with os_host_aggregates'),
    '--k-orc': ('k-orc', 'manifests of ORC'),
}

_pair = base.pair('setting')


class ShowEffect(output.ReportLister):
    """Show what changes would do to servers, flavors, projects and findings.

    Nothing is changed. The changes are made to a copy of the cloud in memory,
    in the order of the options, and the answers of the other commands before
    and after them are compared. The worst comes first. As json or yaml: one
    document with all of it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        for option, (metavar, what) in _OPTIONS.items():
            parser.add_argument(
                option,
                nargs=2,
                action=_Appended,
                dest='changes',
                default=[],
                metavar=metavar,
                help=f'{what}; may be repeated',
            )
        for option, (_, what) in _FILES.items():
            parser.add_argument(
                option,
                action=_Appended,
                dest='changes',
                metavar='<file>',
                help=f'Make the changes of this file: {what}',
            )
        parser.add_argument(
            '--sync',
            action=_Appended,
            nargs=0,
            dest='changes',
            help='Run sync; may be repeated',
        )
        parser.add_argument(
            '--no-servers',
            action='store_true',
            help='Do not read the servers of the projects',
        )
        parser.add_argument(
            '--detailed-exitcode',
            action='store_true',
            help='Exit with status 0 if nothing changes, 2 if something does, '
            'and 5 if servers would be out of place',
        )
        self._usage = parser
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show the effect; return the exit status."""
        if not parsed_args.changes:
            self._usage.error('a change is required, such as --add-host')
        code = super().run(parsed_args)
        if not parsed_args.detailed_exitcode or code:
            return code
        if self._effect.displaced:
            return DISPLACED
        return CHANGED if self._effect else 0

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with base.opened(self.app, parsed_args) as cloud:
            before = preview.read(cloud, not parsed_args.no_servers)
        filters = Pipeline(loading.load(self.app.conf))
        after = before
        todo: commands.Commands = ()
        unknown: tuple[str, ...] = ()
        for option, words in parsed_args.changes:
            planned = _planned(after, option, words)
            states = outcome.outcomes(after, planned.commands, filters)
            *_, after = after, *states
            todo += planned.commands
            unknown += planned.unknown
        self._unknown = unknown
        self._order = formats.safe(
            before, todo, chain.as_in_nova(self.app.conf), filters
        )
        self._effect = effect(before, after, self.app.conf)
        # Sentences are too long for the cells of a table.
        is_for_people = parsed_args.formatter == 'table'
        rows = [] if is_for_people else shown.rows(self._effect)
        return (
            ('Effect on', 'Before', 'After', 'Details'),
            [(row.what, row.before, row.after, row.why) for row in rows],
        )

    def document(self) -> dict[str, Any]:
        return {
            **shown.document(self._effect),
            'steps': [commands.shown([each]) for each in self._order.commands],
            'gaps': list(self._order.sentences),
            'unknown': list(self._unknown),
        }

    def before(self) -> Iterable[str]:
        """Yield the effect, the worst first, and the steps."""
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


class _Appended(argparse.Action):
    """Keeps the order of all changes."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        entries = [*namespace.changes, (option_string or '', values)]
        namespace.changes = entries


def _planned(snapshot: Snapshot, option: str, words: Any) -> formats.Planned:
    """Return the changes that an option describes."""
    if option == '--sync':
        return formats.Planned(commands.SYNC)
    if option in _FILES:
        kind, _ = _FILES[option]
        return formats.read(words, kind, snapshot)
    name, what = words
    return formats.Planned(tuple(_commands(snapshot, option, name, what)))


def _commands(
    snapshot: Snapshot, option: str, name: str, what: str
) -> Iterable[commands.Command]:
    if option.startswith('--flavor'):
        flavor = snapshot.flavor(name)
        if option == '--flavor':
            return [commands.set_spec(flavor, *_setting(what))]
        return commands.unset_spec(flavor, what)
    if option.startswith('--image'):
        image = snapshot.image(name)
        if option == '--image':
            return commands.set_property(image, *_setting(what))
        return commands.unset_property(image, what)
    aggregate = names.aggregate(snapshot.aggregates, name, snapshot.origin)
    if option == '--set':
        return [commands.set_tag(aggregate, *_setting(what))]
    if option == '--unset':
        return commands.unset_tags(aggregate, [what])
    hosts = {p.host for p in snapshot.providers if p.host}
    if option == '--add-host':
        _check_host(what, hosts, snapshot.origin)
        return commands.add_hosts(aggregate, [what])
    _check_host(what, aggregate.hosts, f'aggregate {aggregate.name}')
    return commands.remove_hosts(aggregate, [what])


def _setting(text: str) -> tuple[str, str]:
    try:
        return _pair(text)
    except argparse.ArgumentTypeError as exc:
        raise exception.InvalidRequest(f'{exc}.') from exc


def _check_host(host: str, hosts: Collection[str], place: str) -> None:
    if host not in hosts:
        raise exception.NotFound('host', host, place, sorted(hosts))
