# SPDX-License-Identifier: Apache-2.0
"""The help of the program: commands grouped by task, and global options."""

import argparse
from collections.abc import Iterable
import itertools
from typing import Any

import autopage.argparse
from cliff import help

from isolate_aggregates.tools.cli import usage

# The beginnings of command names, by task.
_TASKS = (
    (
        'See which servers may use which hosts',
        ('candidates', 'explain', 'capacity', 'matrix', 'report', 'query'),
    ),
    (
        'Isolate hosts',
        ('lock', 'unlock', 'grant', 'revoke', 'list', 'show', 'filter list'),
    ),
    (
        'Maintain isolation',
        ('audit', 'sync', 'limit', 'exporter', 'snapshot'),
    ),
    ('Reserve hosts', ('reservation',)),
    # Includes commands of other packages.
    ('Others', ('',)),
)
_COLUMN = 28


class Parser(usage.Parser):
    """Parses the global options, and shows the help of the program."""

    # All commands by name, as cliff's command manager yields them.
    commands: Iterable[tuple[str, Any]] = ()

    def format_help(self) -> str:
        """Return the commands grouped by task, followed by the options."""
        formatter = usage.HelpFormatter(self.prog, max_help_position=_COLUMN)
        formatter.add_usage(
            '%(prog)s [options] <command> [options of the command]', [], []
        )
        formatter.add_text(self.description)
        for task, lines in itertools.groupby(
            _lines(self.commands), lambda line: _place(line)[0]
        ):
            formatter.start_section(_TASKS[task][0])
            formatter.add_arguments(lines)
            formatter.end_section()
        formatter.add_text(f'{self.prog} help <command> shows its options.')
        options = argparse.ArgumentParser(
            formatter_class=self.formatter_class,
            usage=argparse.SUPPRESS,
            parents=[self],
            add_help=False,
        )
        return f'{formatter.format_help()}\n{options.format_help()}'


def _lines(commands: Iterable[tuple[str, Any]]) -> list[argparse.Action]:
    """Return the names and help lines of commands, in order."""
    lines = []
    for name, entry_point in commands:
        command = entry_point.load()(None, None)
        summary = command.get_description().split('\n')[0].rstrip('.')
        lines.append(argparse.Action([], '', metavar=name, help=summary))
    return sorted(lines, key=_place)


def _place(line: argparse.Action) -> tuple[int, int, str]:
    """Return the sort key of a command; its first item is the task.

    The task is the one with the longest beginning of the name.
    """
    name = str(line.metavar)
    _, task, number = max(
        (len(start), task, number)
        for task, (_, starts) in enumerate(_TASKS)
        for number, start in enumerate(starts)
        if name.startswith(start)
    )
    return task, number, name


class HelpCommand(help.HelpCommand):
    """Show all commands, or the options of one."""

    error_status = 2

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Show the help, in a pager on a terminal."""
        if parsed_args.cmd:
            return super().take_action(parsed_args)
        show(self.app.parser, self.app.stdout)
        return 0


def show(parser: argparse.ArgumentParser, stdout: Any) -> None:
    """Show the help of the program, in a pager on a terminal."""
    pager = autopage.argparse.help_pager(stdout)
    with pager as out:
        autopage.argparse.use_color_for_parser(parser, pager.to_terminal())
        parser.print_help(out)
