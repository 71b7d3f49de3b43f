# SPDX-License-Identifier: Apache-2.0
"""The base class of commands that change a cloud."""

import abc
import argparse
from collections.abc import Iterable, Sequence
from typing import Any, cast

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.tools.cli import (
    base,
    consent,
    documents,
    output,
    preview,
    progress,
)
from isolate_aggregates.tools.cloud.file import cloud_file
from isolate_aggregates.tools.cloud.file.planning import PlanningCloud
from isolate_aggregates.tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.operate import plan as plans
from isolate_aggregates.tools.operate.plan import Plan

LOG = logging.getLogger(__name__)


class ChangeCommand(preview.Previewing, output.ReportLister):
    """Makes the changes of a plan, or shows them.

    When repeated, it makes the changes that are missing. If a change cannot be
    made, the others are still made, and the exit status is 1. The status is
    also 1 if other commands repeatedly undo changes while it runs. With a
    cloud file the changes are only shown.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        self._usage = parser
        return parser

    @abc.abstractmethod
    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        """Return the changes to make."""

    def again(
        self, cloud: LiveCloud, args: argparse.Namespace, previous: Plan
    ) -> Plan:
        """Return the changes to make after a plan was carried out.

        There are none unless another client changed the same objects.

        :param cloud: The cloud; its data must not have been read before.
        """
        return Plan()

    def remains(
        self, cloud: LiveCloud, plan: Plan
    ) -> Iterable[tuple[bool, str]]:
        """Yield notes for the user, each with whether it is left to do.

        :param cloud: The cloud; its data may be from before the changes.
        """
        return ()

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        outcome = self._outcome(parsed_args)
        cloud, plan = self._cloud, self._plan
        self._problems = plan.problems
        self._is_needed = bool(plan.steps)
        self._rows, self._error = outcome.rows, outcome.error
        if isinstance(self._error, KeyboardInterrupt):
            consent.warn_of_interruption()
        for problem in plan.problems:
            LOG.warning('%s.', _sentence(problem))
        remains = self._remaining_notes(cloud, plan)
        self._notes = [
            *plan.notes,
            *(note for is_to_do, note in remains if not is_to_do),
        ]
        self._to_do = [note for is_to_do, note in remains if is_to_do]
        return ('Change', 'Result'), self._rows

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, 1 if a change could not be made, or 3 if the changes were
            only shown.
        """
        base.check_live(self._usage, parsed_args, 'yes', 'domain')
        self._file: Snapshot | None = None
        if parsed_args.snapshot:
            self._file = cloud_file.load(parsed_args.snapshot)
            base.apply_settings(self.app.conf, self._file)
            parsed_args.dry_run = True
        code = super().run(parsed_args)
        if self._error:
            raise self._error
        return int(bool(self._problems)) or code

    def document(self) -> documents.Changes:
        return documents.Changes(
            changes=tuple(
                documents.Change(change=change, result=result)
                for change, result in self._rows
            ),
            notes=tuple(self._notes),
            left=tuple(self._to_do),
            problems=self._problems,
            effect=self.effect_document(),
        )

    def before(self) -> Iterable[str]:
        """Yield a line if nothing was changed."""
        if not self._is_needed and not self._problems:
            yield 'Nothing to do.'
        elif self.is_undone:
            yield 'Nothing was changed.'

    def after(self) -> Iterable[str]:
        """Yield the notes, and what is left to do."""
        for note in self._notes:
            yield f'Note: {note}.'
        for note in self._to_do:
            yield f'Left to do: {note}.'
        if self.is_undone:
            yield from self.effect_lines()

    def _remaining_notes(
        self, cloud: LiveCloud, plan: Plan
    ) -> list[tuple[bool, str]]:
        if self._error:
            return []
        try:
            return list(self.remains(cloud, plan))
        except exception.IsolateAggregatesError as exc:
            # The changes are shown before the error is raised.
            self._error = exc
            return []

    def _outcome(self, args: argparse.Namespace) -> plans.Outcome:
        def find() -> list[str]:
            self._cloud = self._unread_cloud()
            self._plan = self.plan(self._cloud, args)
            return [step.what for step in self._plan.steps]

        def effect() -> list[str]:
            return self.preview(args, self._plan.change, self._unread_cloud())

        if not self.agrees(args, find(), find, effect):
            return plans.Outcome(
                [(step.what, consent.PLANNED) for step in self._plan.steps]
            )
        return plans.carry_out(
            self._plan,
            lambda plan: self.again(self._unread_cloud(), args, plan),
            progress.changing,
        )

    def _unread_cloud(self) -> LiveCloud:
        """Return the cloud without cached data."""
        if self._file:
            return cast('LiveCloud', PlanningCloud(self._file))
        return LiveCloud(self.app.conf, self.app.connect)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
