# SPDX-License-Identifier: Apache-2.0
"""Asks for confirmation before a command changes a cloud.

Every command that changes a cloud shows the changes, asks, and makes them.
With ``--yes`` it does not ask, and with ``--dry-run`` it only shows them.
Without a terminal and without ``--yes``, it changes nothing. If changes were
needed and not made, the exit status is 3. If no changes are needed, it does
not ask.

The user may take hours to answer. So after a yes, the command plans again, and
if it finds changes that it has not shown, it asks again.
"""

import argparse
from collections.abc import Callable, Sequence
import logging
from typing import Any

from isolate_aggregates.text import escaped
from isolate_aggregates_tools.cli import terminal
from isolate_aggregates_tools.cli.exit_status import ExitStatus

LOG = logging.getLogger(__name__)

# The result of a change that was not made.
PLANNED = 'would be done'

_YES = ('y', 'yes')
# The most changes that a question lists.
_MOST = 20


def warn_of_interruption() -> None:
    """Log that the last change may or may not have been made."""
    LOG.warning(
        'Interrupted: it is unknown whether the last change was made. Run the '
        'command again; it does what is missing.'
    )


class Confirming:
    """A mixin for commands that change nothing without confirmation.

    It must precede the base class of the command.
    """

    app: Any
    # Changes are needed and were not made.
    is_undone = False
    # The changes are being made.
    is_agreed = False
    # The changes were shown, and the answer was no.
    is_declined = False
    # The changes that were found last.
    changes: Sequence[str] = ()
    # The output contains more than the changes.
    shows_more = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
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
            '--yes',
            action='store_true',
            help='Make the changes without asking',
        )
        return parser

    def agrees(
        self,
        args: argparse.Namespace,
        changes: Sequence[str],
        plan_again: Callable[[], Sequence[str]],
        preview: Callable[[], Sequence[str]] = tuple,
    ) -> bool:
        """Return whether to make changes, after asking if necessary.

        :param changes: The changes, such as ``add trait CUSTOM_A to host1``.
            If there are none, it does not ask and returns whether ``--yes``
            was given.
        :param plan_again: Plans the changes again. The caller must make those
            that its last call returned.
        :param preview: Returns lines on the effect of the changes that were
            planned last.
        """
        if args.yes:
            self.is_agreed = True
            return True
        if not changes:
            return False
        self.is_undone = True
        self.changes = changes
        if args.dry_run:
            preview()
            return False
        if not terminal.is_attended(self.app.stdin, self.app.stderr):
            self._say(
                'Nothing was changed: there is no terminal to ask for '
                'confirmation. Use --yes to make the changes.\n'
            )
            return False
        self._say('To be done:\n')
        while self._confirms(changes, preview()):
            previous, changes = changes, plan_again()
            self.changes = changes
            if set(changes) <= set(previous):
                self.is_undone = False
                self.is_agreed = True
                return True
            self._say('The cloud has changed meanwhile. Now to be done:\n')
        self.is_declined = True
        return False

    def goes_ahead(
        self,
        args: argparse.Namespace,
        plan: Callable[[], Sequence[str]],
        preview: Callable[[], Sequence[str]] = tuple,
    ) -> bool:
        """Return the same, without planning what ``--yes`` agrees to."""
        if args.yes:
            self.is_agreed = True
            return True
        return self.agrees(args, plan(), plan, preview)

    def _confirms(self, changes: Sequence[str], effect: Sequence[str]) -> bool:
        """Show changes and ask; return whether the answer is yes."""
        for change in changes[:_MOST]:
            self._say(f'  {escaped(change)}\n')
        if len(changes) > _MOST:
            more = len(changes) - _MOST
            self._say(f'  and {more} more, which --dry-run shows\n')
        for line in effect:
            self._say(f'{escaped(line)}\n')
        self._say('Make these changes? [y/N] ')
        self.app.stderr.flush()
        answer = self.app.stdin.readline()
        if answer.strip().lower() in _YES:
            return True
        # At the end of the input, the cursor is still on the line of the
        # question.
        end = '' if answer else '\n'
        self._say(f'{end}Nothing was changed.\n')
        return False

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Any,
    ) -> int:
        """Write the output, except a table of changes just declined."""
        is_table = parsed_args.formatter == 'table'
        if self.is_declined and is_table and not self.shows_more:
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

        :returns: The status of the command, or 3 instead of 0 if changes were
            needed and not made.
        """
        try:
            code: int = super().run(parsed_args)  # type: ignore[misc]
        except KeyboardInterrupt:
            if self.is_agreed:
                warn_of_interruption()
            raise
        return code or (ExitStatus.LEFT if self.is_undone else 0)
