# SPDX-License-Identifier: Apache-2.0
"""The one convention of commands that change a cloud.

They show what they would do, ask, and do it. With ``--yes`` they do not ask,
with ``--dry-run`` they only show it. Without a terminal to ask on and without
``--yes`` nothing is done. Whenever something was to be done and was not, the
exit status is 3. With nothing to be done they do not ask, and do nothing.

A question may wait for hours. So after a yes it is found out again what would
be done, and if that is more, they ask again.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from isolate_aggregates.cli import terminal
from isolate_aggregates.text import escaped

# The exit status if something was to be done and was not.
NOT_DONE = 3

# What a command says of a change that was not made.
PLANNED = 'would be done'

_YES = ('y', 'yes')
# How many changes a question lists.
_MOST = 20


class Asking:
    """A command that does nothing without consent.

    Comes before the base class of the command.
    """

    app: Any
    # What --dry-run would show was not done.
    is_left = False
    # It was shown, and the answer was no.
    is_declined = False
    # Whether the output has more than what would be done.
    shows_more = False
    # What --yes was called once.
    old_yes: str | None = None

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser: argparse.ArgumentParser = super().get_parser(  # type: ignore[misc]
            prog_name
        )
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            '--dry-run',
            action='store_true',
            help='Only show what would be done',
        )
        group.add_argument(
            '--yes', action='store_true', help='Do it without asking'
        )
        if self.old_yes:
            group.add_argument(
                self.old_yes,
                action='store_true',
                dest='yes',
                help=argparse.SUPPRESS,
            )
        return parser

    def agrees(
        self,
        args: argparse.Namespace,
        changes: Sequence[str],
        afresh: Callable[[], Sequence[str]],
    ) -> bool:
        """Tell whether to make changes; ask if need be.

        :param changes: What would be done, such as ``add trait CUSTOM_A to
            host1``; if there is nothing, nothing is asked, and only
            ``--yes`` agrees.
        :param afresh: Finds out again what would be done. What is done then
            must be what it has found last.
        """
        if args.yes:
            return True
        if not changes:
            return False
        self.is_left = True
        if args.dry_run:
            return False
        if not terminal.is_attended(self.app.stdin, self.app.stderr):
            self._say(
                'Nothing was changed: there is no terminal to ask on. Give '
                '--yes to make the changes.\n'
            )
            return False
        self._say('To be done:\n')
        while self._is_wanted(changes):
            shown, changes = changes, afresh()
            if set(changes) <= set(shown):
                self.is_left = False
                return True
            self._say('The cloud has changed meanwhile. Now to be done:\n')
        self.is_declined = True
        return False

    def _is_wanted(self, changes: Sequence[str]) -> bool:
        """Show changes, and tell whether the answer is yes."""
        for change in changes[:_MOST]:
            self._say(f'  {escaped(change)}\n')
        if len(changes) > _MOST:
            more = len(changes) - _MOST
            self._say(f'  and {more} more, which --dry-run shows\n')
        self._say('Do it? [y/N] ')
        self.app.stderr.flush()
        answer = self.app.stdin.readline()
        if answer.strip().lower() in _YES:
            return True
        # The end of input leaves the cursor beside the question.
        end = '' if answer else '\n'
        self._say(f'{end}Nothing was changed.\n')
        return False

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Any,
    ) -> int:
        """Write the output, but not to a person what was just declined."""
        is_known = self.is_declined and parsed_args.formatter == 'table'
        if is_known and not self.shows_more:
            return 0
        return int(
            super().produce_output(  # type: ignore[misc]
                parsed_args, column_names, data
            )
        )

    def _say(self, text: str) -> None:
        error = self.app.stderr
        error.write(terminal.folded(text) if error.isatty() else text)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, or 3 if something was to be done and was not.
        """
        code: int = super().run(parsed_args)  # type: ignore[misc]
        return code or (NOT_DONE if self.is_left else 0)
