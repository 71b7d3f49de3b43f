# SPDX-License-Identifier: Apache-2.0
"""Parsers that report an invalid argument in one sentence."""

import argparse
from collections.abc import Callable, Iterator, Sequence
import contextlib
import errno
import itertools
import os
import re
import sys
import textwrap
from typing import Any, NoReturn, TypeVar

from cliff import command

from isolate_aggregates import exception
from isolate_aggregates.suggestions import meant
from isolate_aggregates_tools.cli import terminal
from isolate_aggregates_tools.cli.exit_status import ExitStatus

_P = TypeVar('_P', bound='Parser')

# What a write to the standard output fails with.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# The sentences of argparse, and ours.
_SENTENCES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        'the following arguments are required: (.*)',
        lambda match: f'{_subject(match[1].split(", "))} required',
    ),
    (
        'one of the arguments (.*) is required',
        lambda match: f'{" or ".join(match[1].split())} is required',
    ),
    (
        'argument (.*?): expected one argument',
        lambda match: f'{match[1]} needs a value',
    ),
    (
        'argument (.*?): not allowed with argument (.*)',
        lambda match: f'{match[1]} cannot be used with {match[2]}',
    ),
    (
        'argument (.*?): (must .*)',
        lambda match: f'{match[1]} {match[2]}',
    ),
    # That of openstacksdk, for seconds.
    (
        'argument (.*?): (.*) must be a float',
        lambda match: f'{match[1]} must be a number, not {match[2]!r}',
    ),
    ('argument (.*)', lambda match: match[1]),
)


# The groups of options that cliff adds for the formats of the output.
_OUTPUT = re.compile('output formatters|.* formatter', re.IGNORECASE)
_INDENT = ' ' * 8
_DIRECTION = 'sort_direction'


def _is_output(group: Any) -> bool:
    return bool(_OUTPUT.fullmatch(group.title or ''))


def _subject(names: Sequence[str]) -> str:
    """Return names as the subject of a sentence, with its verb."""
    *first, last = names
    return f'{", ".join(first)} and {last} are' if first else f'{last} is'


class HelpFormatter(argparse.HelpFormatter):
    """Wraps text, but never at the hyphens of an option."""

    def _format_usage(self, *arguments: Any) -> str:
        """Return the usage; indent less if a line is too long otherwise.

        argparse breaks no line within alternatives or the value of an option.
        """
        text = super()._format_usage(*arguments)
        if max(map(len, text.splitlines())) > self._width:
            text = re.sub('\\n +', f'\n{_INDENT}', text)
        return text

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(
            ' '.join(text.split()),
            width,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = self._split_lines(text, width - len(indent))
        return '\n'.join(f'{indent}{line}' for line in lines)


class Parser(argparse.ArgumentParser):
    """Reports errors in one sentence, without the whole usage."""

    @classmethod
    def like(cls: type[_P], parser: argparse.ArgumentParser) -> _P:
        """Return a parser with the same arguments."""
        # cliff's formatter, which keeps line breaks, overrides ours; that of
        # argparse itself, which cliff leaves to Python 3.14, is a base of it.
        given: Any = parser.formatter_class
        formatter: Any = (
            HelpFormatter
            if issubclass(HelpFormatter, given)
            else type('Formatter', (given, HelpFormatter), {})
        )
        return cls(
            prog=parser.prog,
            description=parser.description,
            epilog=parser.epilog,
            formatter_class=formatter,
            allow_abbrev=parser.allow_abbrev,
            parents=[parser],
            add_help=False,
        )

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help or an error; exit if that fails.

        argparse would ignore it, and cliff print a traceback.
        """
        if not message:
            return
        try:
            with writing():
                (file or sys.stderr).write(message)
        except exception.IsolateAggregatesError as exc:
            print(exc, file=sys.stderr)
            sys.exit(ExitStatus.ERROR)

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with status 2."""
        for pattern, sentence in _SENTENCES:
            if match := re.fullmatch(pattern, message, re.DOTALL):
                message = sentence(match)
                break
        line = f'{self.prog}: {message}. See {self.prog} --help.'
        if sys.stderr.isatty():
            line = terminal.folded(line)
        self.exit(ExitStatus.INVALID, f'{line}\n')


def refuse(
    parser: argparse.ArgumentParser, option: str, otherwise: str = ''
) -> NoReturn:
    """Report an unknown option and exit with status 2.

    :param otherwise: The end of the sentence if no option is similar.
    """
    suggestion = meant(option, parser._option_string_actions, '--')
    parser.error(f'there is no option {option}{suggestion or otherwise}')


class CommandParser(Parser):
    """The parser of a command, which reports unknown options first."""

    @property
    def own(self) -> list[argparse.Action]:
        """The arguments that not all commands have, by their groups."""
        return [
            action
            for group in self._action_groups
            for action in group._group_actions
            if not _is_output(group) and action.dest != _DIRECTION
        ]

    def format_help(self) -> str:
        """Return the help; options of all commands are only named."""
        groups = [g for g in self._action_groups if not _is_output(g)]
        own = self.own
        common = [
            action
            for action in self._actions
            if action not in own and action.help != argparse.SUPPRESS
        ]
        if not common:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(
            self.usage,
            own,
            self._mutually_exclusive_groups,
        )
        formatter.add_text(self.description)
        for group in groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(
                action for action in group._group_actions if action in own
            )
            formatter.end_section()
        names = ', '.join(
            f'{"/".join(action.option_strings)} '
            f'{"|".join(action.choices or ())}'.rstrip()
            for action in common
        )
        formatter.add_text(f'Output, as of all commands: {names}')
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments; exit with status 2 for an unknown option.

        argparse checks for missing required arguments first, and would not
        report a misspelt option.
        """
        for argument in itertools.takewhile('--'.__ne__, args or ()):
            name = argument.partition('=')[0]
            if name.startswith('--') and not self._has(name):
                refuse(self, name)
        namespace, others = super().parse_known_args(args, namespace)
        for name in self._empty(namespace):
            # Mostly an unset variable of a shell.
            self.error(f'{name} must not be empty')
        return namespace, others

    def _empty(self, namespace: argparse.Namespace) -> Iterator[str]:
        """Yield the names of arguments whose value is an empty string."""
        for action in self._actions:
            values = getattr(namespace, action.dest, None)
            if values == action.default:
                continue
            if '' in (values if isinstance(values, list) else [values]):
                name = '/'.join(action.option_strings)
                yield name or str(action.metavar or action.dest)

    def _has(self, name: str) -> bool:
        return any(
            option.startswith(name) for option in self._option_string_actions
        )


def not_empty(value: str) -> str:
    """Return the value of an option; refuse an empty one."""
    if not value:
        raise argparse.ArgumentTypeError('must not be empty')
    return value


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Write output of a command.

    :raises IsolateAggregatesError: if it cannot be written.
    """
    try:
        try:
            yield
        finally:
            # What is still in the buffer, also of the help, which exits.
            if sys.stdout:
                sys.stdout.flush()
    except OSError as exc:
        # That of the files a command was given has been reported.
        if exc.filename is not None:
            raise
        if exc.errno in (*_FULL, errno.EPIPE):
            # Python would try again at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if exc.errno not in _FULL:
            raise
        raise exception.IsolateAggregatesError(
            f'The output cannot be written: {exc.strerror}.'
        ) from exc


# How a command that has an option works without a cloud.
_WITHOUT_CLOUD = (
    ('--snapshot', 'use a cloud file with --snapshot'),
    ('--no-cloud', 'read only the file of --file with --no-cloud'),
)


class Command(command.Command):
    """A command that reports an invalid argument in one sentence."""

    # The default of cliff, "ignore", is unknown to argparse.
    conflict_handler = 'error'

    # The last paragraph of the help.
    epilog = ''

    # Whether OpenStackClient runs it, which takes the beginning of one of its
    # own options for that option, also after a command.
    is_in_client = False

    # Reports arguments that do not go together.
    _usage: argparse.ArgumentParser

    def get_epilog(self) -> str:
        # cliff reads the metadata of all installed packages, which takes as
        # long as to import a command, to name the one that has it.
        return self.epilog

    @property
    def without_cloud(self) -> str:
        """How to run the command without a cloud; empty if that cannot be."""
        options = self._usage._option_string_actions
        return next(
            (way for option, way in _WITHOUT_CLOUD if option in options), ''
        )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        self._usage = CommandParser.like(super().get_parser(prog_name))
        return self._usage

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :raises IsolateAggregatesError: if the output cannot be written.
        """
        with writing():
            return int(super().run(parsed_args))
