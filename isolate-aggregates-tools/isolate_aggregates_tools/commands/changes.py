# SPDX-License-Identifier: Apache-2.0
"""The base class of commands that change a cloud."""

import abc
import argparse
from collections.abc import Iterable
import functools
import logging
from typing import cast

from isolate_aggregates import exception
from isolate_aggregates_tools.cli import (
    base,
    consent,
    output,
    preview,
    progress,
)
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.file.planning import PlanningCloud
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import change_documents as documents
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.operate import plan as plans
from isolate_aggregates_tools.operate.plan import Plan

LOG = logging.getLogger(__name__)


class ChangeCommand(preview.Previewing, output.ReportLister):
    """Makes the changes of a plan, or shows them.

    When repeated, it makes the changes that are missing. If a change cannot be
    made, the others are still made, and the exit status is 1. The status is
    also 1 if other commands repeatedly undo changes while it runs. With a
    cloud file the changes are only shown.
    """

    columns = ('Change', 'Result')

    # The options that need a live cloud.
    live_options: tuple[str, ...] = ('yes',)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
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
        self, cloud: LiveCloud, plan: Plan, args: argparse.Namespace
    ) -> Iterable[tuple[bool, str]]:
        """Yield notes for the user, each with whether it is left to do.

        :param cloud: The cloud; its data may be from before the changes.
        """
        return ()

    def document(
        self, changes: documents.Changes, plan: Plan, args: argparse.Namespace
    ) -> documents.Changes:
        """Return the document of the changes that a plan makes."""
        return changes

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, 1 if a change could not be made, or 3 if the changes were
            only shown.
        """
        base.check_live(self._usage, parsed_args, *self.live_options)
        code = super().run(parsed_args)
        if self.reported.error:
            raise self.reported.error
        return code

    def report(self, args: argparse.Namespace) -> output.Report:
        saved: Snapshot | None = None
        if args.snapshot:
            saved = cloud_file.load(args.snapshot)
            clouds.apply_settings(self.app.conf, saved)
            args.dry_run = True
        cloud, plan, outcome = self._outcome(args, saved)
        error = outcome.error
        if isinstance(error, KeyboardInterrupt):
            consent.warn_of_interruption()
        for problem in plan.problems:
            LOG.warning('%s.', _sentence(problem))
        remains: list[tuple[bool, str]] = []
        if not error:
            try:
                remains = list(self.remains(cloud, plan, args))
            except exception.IsolateAggregatesError as exc:
                # The changes are shown before the error is raised.
                error = exc
        notes = [
            *plan.notes,
            *(note for is_to_do, note in remains if not is_to_do),
        ]
        to_do = [note for is_to_do, note in remains if is_to_do]
        changes = documents.Changes(
            changes=tuple(
                documents.Change(change=change, result=result)
                for change, result in outcome.rows
            ),
            notes=tuple(notes),
            left=tuple(to_do),
            problems=plan.problems,
            effect=self.effect_document(),
        )
        return output.Report(
            document=functools.partial(self.document, changes, plan, args),
            columns=self.columns,
            rows=outcome.rows,
            before=self._heading(plan),
            after=self._after(notes, to_do),
            status=ExitStatus.ERROR if plan.problems else ExitStatus.DONE,
            error=error,
        )

    def _heading(self, plan: Plan) -> Iterable[str]:
        """Yield a line if nothing was changed."""
        if not plan.steps and not plan.problems:
            yield 'Nothing to do.'
        elif self.is_undone:
            yield 'Nothing was changed.'

    def _after(
        self, notes: Iterable[str], to_do: Iterable[str]
    ) -> Iterable[str]:
        """Yield the notes, what is left to do, and the effect of a plan."""
        for note in notes:
            yield f'Note: {note}.'
        for note in to_do:
            yield f'Left to do: {note}.'
        if self.is_undone:
            yield from self.effect_lines()

    def _outcome(
        self, args: argparse.Namespace, saved: Snapshot | None
    ) -> tuple[LiveCloud, Plan, plans.Outcome]:
        """Make the changes if the user agrees.

        :param saved: The cloud of a cloud file; None for the live one.
        :returns: The cloud that the last plan was made for, the plan, and
            what became of it.
        """

        def unread() -> LiveCloud:
            """Return the cloud without cached data."""
            if saved:
                return cast('LiveCloud', PlanningCloud(saved))
            return LiveCloud(self.app.conf, self.app.connect)

        cloud: LiveCloud
        plan: Plan

        def find() -> list[str]:
            nonlocal cloud, plan
            cloud = unread()
            plan = self.plan(cloud, args)
            return [step.what for step in plan.steps]

        def effect() -> list[str]:
            return self.preview(
                args,
                lambda: preview.loaded('change')(
                    self.app, plan.change, unread()
                ),
            )

        if not self.agrees(args, find(), find, effect):
            outcome = plans.Outcome(
                [(step.what, consent.PLANNED) for step in plan.steps]
            )
        else:
            outcome = plans.carry_out(
                plan,
                lambda done: self.again(unread(), args, done),
                progress.changing,
            )
        return cloud, plan, outcome


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
