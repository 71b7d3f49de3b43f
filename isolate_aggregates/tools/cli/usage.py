# SPDX-License-Identifier: Apache-2.0
"""Parsers that report an invalid argument in one sentence."""

import argparse
from collections.abc import Sequence
import itertools
import sys
import textwrap
from typing import Any, NoReturn, TypeVar

from cliff import command

from isolate_aggregates.text import meant
from isolate_aggregates.tools.cli import terminal

_P = TypeVar('_P', bound='Parser')


class HelpFormatter(argparse.HelpFormatter):
    """Wraps text, but never at the hyphens of an option."""

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
        # cliff's formatter, which keeps line breaks, overrides ours.
        formatters: tuple[Any, ...] = parser.formatter_class, HelpFormatter
        formatter: Any = type('Formatter', formatters, {})
        return cls(
            prog=parser.prog,
            description=parser.description,
            epilog=parser.epilog,
            formatter_class=formatter,
            allow_abbrev=parser.allow_abbrev,
            parents=[parser],
            add_help=False,
        )

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with status 2."""
        line = f'{self.prog}: {message}. See {self.prog} --help.'
        if sys.stderr.isatty():
            line = terminal.folded(line)
        self.exit(2, f'{line}\n')


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
        return super().parse_known_args(args, namespace)

    def _has(self, name: str) -> bool:
        return any(
            option.startswith(name) for option in self._option_string_actions
        )


class Command(command.Command):
    """A command that reports an invalid argument in one sentence."""

    # The default of cliff, "ignore", is unknown to argparse.
    conflict_handler = 'error'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return CommandParser.like(super().get_parser(prog_name))
