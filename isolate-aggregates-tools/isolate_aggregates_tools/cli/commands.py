# SPDX-License-Identifier: Apache-2.0
"""Finds the commands of ``isolate-aggregates`` without importing them."""

import argparse
from collections.abc import Iterator, Sequence
import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

from cliff import commandmanager

from isolate_aggregates import entry_points
from isolate_aggregates.suggestions import meant
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.cli.command_help import Listed, descriptions

if TYPE_CHECKING:
    from cliff import app


# Other words for a command.
_WORDS = {
    'audit': ('doctor', 'lint', 'validate', 'verify'),
    'candidate list': ('candidates', 'hosts', 'query', 'where'),
    'check': ('allowed', 'can', 'may'),
    'decision list': ('decisions', 'records', 'shadow'),
    'effect show': ('diff', 'impact', 'preview', 'snapshot diff', 'what-if'),
    'explain': ('reason', 'why'),
    'exporter': ('metrics',),
    'isolate-aggregates-status upgrade check': ('limit', 'upgrade'),
    'key add': ('allow', 'give', 'grant', 'key create', 'key set'),
    'key remove': ('deny', 'key delete', 'key unset', 'revoke', 'take'),
    'lock create': ('isolate', 'lock add', 'lock set', 'tag'),
    'lock delete': (
        *('lock remove', 'lock unset', 'unisolate', 'unlock', 'untag'),
    ),
    'lock list': ('list', 'locks'),
    'lock show': ('describe', 'show'),
    'provider set': ('provider add',),
    'provider unset': ('provider delete', 'provider remove'),
    'rehearse': ('ansible', 'dry-run', 'playbook', 'simulate', 'try'),
    'relocation create': (
        *('drain', 'empty', 'evacuate', 'migrate', 'move', 'relocate'),
    ),
    'report save': ('html', 'page'),
    'reservation calendar list': ('reservation find', 'reservation free'),
    'reservation create': ('reserve',),
    'reservation end': (
        *('reservation cancel', 'reservation delete', 'reservation remove'),
    ),
    'reservation repair': ('reservation evacuate', 'reservation move'),
    'reservation set': (
        *('reservation change', 'reservation extend', 'reservation update'),
    ),
    'snapshot save': ('dump', 'save', 'snapshot create'),
    'survival list': ('failover', 'survive'),
    'sync': ('apply', 'update'),
}
_MEANINGS = {
    word: command for command, words in _WORDS.items() for word in words
}


# What the commands of a distribution that may be missing begin with.
_RESERVATION = ('reservation',)


class CommandManager(commandmanager.CommandManager):
    """Finds commands, and imports each only when it runs."""

    def __init__(self, namespace: str) -> None:
        # Namespace and entry point of commands that several packages provide.
        self._doubled: dict[str, tuple[str, str]] = {}
        super().__init__(namespace)

    def load_commands(self, namespace: str) -> None:
        """Find the commands without importing them, unlike cliff."""
        self.group_list.append(namespace)
        found = entry_points.installed(namespace)
        for entry_point in found:
            self.commands[entry_point.name.replace('_', ' ')] = entry_point
        for name in entry_points.ambiguous(found):
            self._doubled[name.replace('_', ' ')] = namespace, name

    def find_command(self, argv: list[str]) -> Any:
        """Return the command whose name the arguments begin with.

        cliff also takes a beginning of the name, so that a slip of the finger
        could change a cloud.
        """
        try:
            factory, name, arguments = super().find_command(argv)
            if name not in self.commands:
                raise ValueError(name)
        except ValueError:
            words = itertools.takewhile(lambda word: word[:1] != '-', argv)
            raise ValueError(self._unknown(tuple(words))) from None
        if name in self._doubled:
            problem = entry_points.doubled_by(*self._doubled[name])
            raise ValueError(f'Command {name} {problem}')
        return factory, name, arguments

    def _unknown(self, words: Sequence[str]) -> str:
        """Return what is wrong with the name of a command."""
        name = ' '.join(words)
        longer = [c for c in self.commands if c.startswith(f'{name} ')]
        if len(longer) > 1:
            see = _help(*words)
            return f'Several commands begin with {name!r}. See {see}.'
        group = [c for c in self.commands if c.split()[:1] == [*words[:1]]]
        if not group and words[:1] == _RESERVATION:
            return (
                f'There is no command {name!r}: it belongs to the '
                'distribution isolate-aggregates-reservations, which is not '
                'installed here.'
            )
        see = _help(words[0]) if len(group) > 1 else f'{shell.PROGRAM} --help'
        return (
            f'There is no command {name!r}{self._meant(words, group)}. '
            f'See {see}.'
        )

    def _meant(self, words: Sequence[str], group: Sequence[str]) -> str:
        """Suggest a command for its meaning, or else for its letters.

        :param group: The commands with the same first word.
        """
        name = ' '.join(words)
        for command in (
            *map(_MEANINGS.get, (' '.join(words[:2]), *words[:1])),
            *(c for c in self.commands if c.startswith(name)),
        ):
            if command:
                return f' (did you mean {command}?)'
        if len(group) > 1:
            # The word that all of them have says nothing.
            return meant(name, group, f'{words[0]} ')
        return meant(name, self.commands) or meant(
            words[0], {command.split()[0] for command in self.commands}
        )

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield each name with what the help loads to describe the command."""
        for name, entry_point in super().__iter__():
            is_ours = entry_point.name in descriptions()
            yield name, _Line(entry_point) if is_ours else entry_point


def _help(*words: str) -> str:
    return shell.line((shell.PROGRAM, *shell.words_of(shell.Kind.HELP, words)))


@dataclasses.dataclass(frozen=True)
class _Line:
    """An entry point that can be described without importing its command."""

    entry_point: Any

    def load(self) -> '_Line':
        return self

    def __call__(
        self, program: 'app.App', options: argparse.Namespace | None
    ) -> Listed:
        return Listed(
            self.entry_point.name,
            lambda: self.entry_point.load()(program, options),
        )
