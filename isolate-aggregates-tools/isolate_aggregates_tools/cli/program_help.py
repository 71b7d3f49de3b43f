# SPDX-License-Identifier: Apache-2.0
"""The help of the program: commands grouped by task, and global options."""

import argparse
from collections.abc import Callable, Iterable, Iterator
import dataclasses
import itertools
import sys
from typing import Any, NoReturn

import autopage.argparse
from cliff import help

from isolate_aggregates import exception
from isolate_aggregates_tools.cli import usage
from isolate_aggregates_tools.cli.exit_status import ExitStatus

# The beginnings of command names, by task.
_TASKS = (
    ('Start with', ('lock create', 'key add', 'explain', 'audit', 'sync')),
    (
        'See which servers may use which hosts',
        (
            *('candidate', 'check', 'capacity', 'decision', 'matrix'),
            'report',
        ),
    ),
    ('Isolate hosts', ('lock', 'key', 'provider', 'effect', 'filter')),
    (
        'Maintain isolation',
        (
            *('test', 'rehearse', 'survival', 'relocation', 'exporter'),
            *('snapshot', 'ledger'),
        ),
    ),
    ('Reserve hosts', ('reservation',)),
    # Includes commands of other packages.
    ('Others', ('',)),
)
_COLUMN = 30


class HelpFormatter(usage.HelpFormatter):
    """Has room for the names of commands."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_COLUMN)


@dataclasses.dataclass(frozen=True)
class Line:
    """A command in the help."""

    name: str
    description: str


def lines(commands: Iterable[tuple[str, Any]]) -> Iterator[Line]:
    """Yield the commands that a command manager of cliff has."""
    for name, entry_point in commands:
        description = entry_point.load()(None, None).get_description()
        yield Line(name, description.split('\n')[0])


class Parser(usage.Parser):
    """Parses the global options, and shows the help of the program."""

    commands: Callable[[], Iterable[Line]] = tuple
    # The help was asked for, perhaps in place of the value of an option.
    is_help = False

    def error(self, message: str) -> NoReturn:
        """Print the error; if the help was asked for, print that."""
        if self.is_help:
            show(self, sys.stdout)
            self.exit(ExitStatus.DONE)
        super().error(message)

    def format_help(self) -> str:
        """Return the commands grouped by task, followed by the options."""
        formatter = HelpFormatter(self.prog)
        formatter.add_usage(
            '%(prog)s [options] <command> [options of the command]', [], []
        )
        formatter.add_text(self.description)
        add_commands(formatter, self.commands())
        formatter.add_text(f'{self.prog} help <command> shows its options.')
        options = argparse.ArgumentParser(
            formatter_class=self.formatter_class,
            usage=argparse.SUPPRESS,
            parents=[self],
            add_help=False,
        )
        return f'{formatter.format_help()}\n{options.format_help()}'


def add_commands(
    formatter: argparse.HelpFormatter, commands: Iterable[Line]
) -> None:
    """Add a section for each task."""
    ordered = sorted(commands, key=_place)
    for task, some in itertools.groupby(ordered, lambda line: _place(line)[0]):
        formatter.start_section(_TASKS[task][0])
        formatter.add_arguments(
            argparse.Action(
                [], '', metavar=line.name, help=line.description.rstrip('.')
            )
            for line in some
        )
        formatter.end_section()


def _place(line: Line) -> tuple[int, int, str]:
    """Return the sort key of a command; its first item is the task.

    The task is the one with the longest beginning of the name.
    """
    _, task, number = max(
        (len(start), task, number)
        for task, (_, starts) in enumerate(_TASKS)
        for number, start in enumerate(starts)
        if line.name.startswith(start)
    )
    return task, number, line.name


class HelpCommand(help.HelpCommand):
    """Show all commands, or the options of one."""

    error_status = ExitStatus.INVALID

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show the help; its name is invalid if anything else fails."""
        try:
            with usage.writing():
                return int(super().run(parsed_args))
        except exception.IsolateAggregatesError:
            self.error_status = ExitStatus.ERROR
            raise

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Show the help, in a pager on a terminal."""
        if parsed_args.cmd:
            start = ' '.join(parsed_args.cmd)
            some = [
                line
                for line in lines(self.app.command_manager)
                if line.name.startswith(f'{start} ')
            ]
            if not some:
                # In place of an unknown name, cliff lists similar ones.
                self.app.command_manager.find_command(parsed_args.cmd)
                return super().take_action(parsed_args)
            formatter = HelpFormatter('')
            add_commands(formatter, some)
            self.app.stdout.write(formatter.format_help())
            return 0
        show(self.app.parser, self.app.stdout)
        return 0


def show(parser: argparse.ArgumentParser, stdout: Any) -> None:
    """Show the help of the program, in a pager on a terminal."""
    pager = autopage.argparse.help_pager(stdout)
    with usage.writing(), pager as out:
        autopage.argparse.use_color_for_parser(parser, pager.to_terminal())
        parser.print_help(out)
