# SPDX-License-Identifier: Apache-2.0
"""Arguments that are invalid are named in one sentence."""

import argparse
from collections.abc import Sequence
import itertools
import sys
import textwrap
from typing import Any, NoReturn, TypeVar

from cliff import command

from isolate_aggregates.cli import terminal
from isolate_aggregates.text import meant

_P = TypeVar('_P', bound='Parser')


class HelpFormatter(argparse.HelpFormatter):
    """Breaks no word, such as an option, at its hyphens."""

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
    def like(cls: type[_P], made: argparse.ArgumentParser) -> _P:
        """Return a parser of the same arguments.

        :param made: What cliff has made.
        """
        # Ours beneath cliff's, which keeps lines apart.
        formatters: tuple[Any, ...] = made.formatter_class, HelpFormatter
        formatter: Any = type('Formatter', formatters, {})
        return cls(
            prog=made.prog,
            description=made.description,
            epilog=made.epilog,
            formatter_class=formatter,
            allow_abbrev=made.allow_abbrev,
            parents=[made],
            add_help=False,
        )

    def error(self, message: str) -> NoReturn:
        """End with 2, and say why.

        :param message: What is wrong.
        """
        said = f'{self.prog}: {message}. See {self.prog} --help.'
        if sys.stderr.isatty():
            said = terminal.folded(said)
        self.exit(2, f'{said}\n')


def refuse(
    parser: argparse.ArgumentParser, option: str, otherwise: str = ''
) -> NoReturn:
    """End with 2 for an option that a parser does not have.

    :param otherwise: What to say if no other one seems to be meant.
    """
    known = meant(option, parser._option_string_actions, '--')
    parser.error(f'there is no option {option}{known or otherwise}')


class CommandParser(Parser):
    """The parser of a command, which knows all options there are."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments; end with 2 if there is no such option.

        argparse looks for required ones first, and so never names an option
        that is written wrong.
        """
        for argument in itertools.takewhile('--'.__ne__, args or ()):
            name = argument.partition('=')[0]
            if name.startswith('--') and not self._has(name):
                refuse(self, name)
        return super().parse_known_args(args, namespace)

    def _has(self, name: str) -> bool:
        return any(one.startswith(name) for one in self._option_string_actions)


class Command(command.Command):
    """A command that names what is wrong with its arguments."""

    # The only one that parsers outside cliff know too.
    conflict_handler = 'error'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        return CommandParser.like(super().get_parser(prog_name))
