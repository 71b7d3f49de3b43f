# SPDX-License-Identifier: Apache-2.0
"""``complete``: prints a script for a shell that completes commands.

The script is static, so that a TAB does not start the program. That of cliff
is only for bash.
"""

import argparse
from collections.abc import Callable
from typing import Any

from isolate_aggregates_tools.cli import usage

_SHELLS = ('bash', 'fish', 'zsh')
_PROGRAM = 'isolate-aggregates'


class Complete(usage.Command):
    """Print a script that completes commands and options in a shell.

    For bash, for example, write it to
    ~/.local/share/bash-completion/completions/isolate-aggregates.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'shell', choices=_SHELLS, help='The shell to complete in'
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        # No other command needs it.
        import shtab

        kinds: dict[Any, Any] = {
            'config_dir': shtab.DIRECTORY,
            '<directory>': shtab.DIRECTORY,
            '<file>': shtab.FILE,
            '<path>': shtab.FILE,
        }

        def with_files(
            parser: argparse.ArgumentParser,
        ) -> argparse.ArgumentParser:
            """Return a parser whose files are completed, too."""
            for action in parser._actions:
                kind = kinds.get(action.dest) or kinds.get(action.metavar)
                if kind:
                    # The name that shtab reads.
                    action.complete = kind  # type: ignore[attr-defined]
            return parser

        parser = _tree(self.app, with_files)
        self.app.stdout.write(shtab.complete(parser, parsed_args.shell) + '\n')


_Parsers = Callable[[argparse.ArgumentParser], argparse.ArgumentParser]


def _tree(app: Any, prepared: _Parsers) -> argparse.ArgumentParser:
    """Return one parser with those of all commands below it."""
    root = argparse.ArgumentParser(
        prog=_PROGRAM,
        parents=[prepared(app.parser)],
        add_help=False,
        conflict_handler='resolve',
    )
    levels: dict[tuple[str, ...], Any] = {(): root.add_subparsers()}
    for name, entry_point in sorted(app.command_manager):
        command = entry_point.load()(app, None)
        *before, last = name.split()
        place: tuple[str, ...] = ()
        for word in before:
            parent = levels[place]
            place = (*place, word)
            if place not in levels:
                # Only what has a help is proposed.
                level = parent.add_parser(word, help=f'Commands of {word}')
                levels[place] = level.add_subparsers()
        levels[place].add_parser(
            last,
            help=command.get_description().split('\n')[0],
            parents=[prepared(command.get_parser(f'{_PROGRAM} {name}'))],
            add_help=False,
        )
    return root
