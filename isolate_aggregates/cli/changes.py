# SPDX-License-Identifier: Apache-2.0
"""What commands that change a cloud have in common."""

import abc
import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.cli import consent, output, progress
from isolate_aggregates.cloud.live import LiveCloud
from isolate_aggregates.operate import plan as plans
from isolate_aggregates.operate.plan import Plan

LOG = logging.getLogger(__name__)


class ChangeCommand(consent.Asking, output.ReportLister):
    """Makes the changes of a plan, or shows them.

    If it is repeated, it makes the missing changes. If a change cannot be
    made, the others are made and the exit status is 1; so it is if other
    commands repeatedly undo changes while it runs.
    """

    @abc.abstractmethod
    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        """Return what is to be done."""

    def again(
        self, cloud: LiveCloud, args: argparse.Namespace, done: Plan
    ) -> Plan:
        """Return what is to be done after a plan was carried out.

        That is nothing, unless others changed the same thing meanwhile.

        :param cloud: The cloud, of which nothing was read yet.
        """
        return Plan()

    def remains(
        self, cloud: LiveCloud, plan: Plan
    ) -> Iterable[tuple[bool, str]]:
        """Yield what to know afterwards, and whether it is left to do.

        :param cloud: The cloud, as it was or as it is.
        """
        return ()

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Make the changes."""
        outcome = self._outcome(parsed_args)
        cloud, plan = self._cloud, self._plan
        self._problems = plan.problems
        self._is_needed = bool(plan.steps)
        self._rows, self._error = outcome.rows, outcome.error
        for problem in plan.problems:
            LOG.warning('%s.', _sentence(problem))
        remains = self._told(cloud, plan)
        self._notes = [
            *plan.notes,
            *(say for left, say in remains if not left),
        ]
        self._left = [say for left, say in remains if left]
        return ('Change', 'Result'), self._rows

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, 1 if something could not be done, or 3 if nothing was.
        """
        code = super().run(parsed_args)
        if self._error:
            raise self._error
        return int(bool(self._problems)) or code

    def document(self) -> dict[str, Any]:
        """Return what was done and what is left."""
        return {
            'changes': [
                {'change': change, 'result': result}
                for change, result in self._rows
            ],
            'notes': list(self._notes),
            'left': list(self._left),
            'problems': list(self._problems),
        }

    def before(self) -> Iterable[str]:
        """Yield what was not done."""
        if not self._is_needed and not self._problems:
            yield 'Nothing to do.'
        elif self.is_left:
            yield 'Nothing was changed.'

    def after(self) -> Iterable[str]:
        """Yield what to know, and what is left to do."""
        for note in self._notes:
            yield f'Note: {note}.'
        for left in self._left:
            yield f'Left to do: {left}.'

    def _told(self, cloud: LiveCloud, plan: Plan) -> list[tuple[bool, str]]:
        if self._error:
            return []
        try:
            return list(self.remains(cloud, plan))
        except exception.IsolateAggregatesError as exc:
            # What was done is told first here as well.
            self._error = exc
            return []

    def _outcome(self, args: argparse.Namespace) -> plans.Outcome:
        def find() -> list[str]:
            self._cloud = self._unread_cloud()
            self._plan = self.plan(self._cloud, args)
            return [step.what for step in self._plan.steps]

        if not self.agrees(args, find(), find):
            return plans.Outcome(
                [(step.what, consent.PLANNED) for step in self._plan.steps]
            )
        return plans.carry_out(
            self._plan,
            lambda done: self.again(self._unread_cloud(), args, done),
            progress.changing,
        )

    def _unread_cloud(self) -> LiveCloud:
        """Return the cloud, of which nothing was read yet."""
        return LiveCloud(self.app.conf, self.app.connect)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
