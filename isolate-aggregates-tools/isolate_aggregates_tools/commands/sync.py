# SPDX-License-Identifier: Apache-2.0
"""``sync``: updates Placement from the host aggregates and their tags."""

import argparse
import collections
from collections.abc import Callable, Iterable
import functools
import itertools
import logging
import time

from isolate_aggregates import filter_sets
from isolate_aggregates_tools.cli import (
    base,
    output,
    periodic,
    preview,
    progress,
)
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.commands import sync_documents as documents
from isolate_aggregates_tools.ledger import recording
from isolate_aggregates_tools.operate.sync import apply, projects
from isolate_aggregates_tools.operate.sync import plan as plans
from isolate_aggregates_tools.operate.sync.snapshot import read
from isolate_aggregates_tools.repairs import outcome

LOG = logging.getLogger(__name__)


class SyncPlacement(preview.Previewing, output.ReportLister):
    """Update Placement from the host aggregates and their tags.

    The resource providers of the hosts of each aggregate become members of it
    in Placement, get the traits that it requires, and become members of the
    rollups that stand for it. Traits and memberships that sync added and that
    are no longer needed are removed; all others stay. The exit status is 3 if
    changes are only shown. As json or yaml: one document with the problems
    too.
    """

    columns = ('Host', 'Provider', 'Change', 'Why')

    _logged_problems: frozenset[str] = frozenset()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--watch',
            type=base.positive,
            metavar='<seconds>',
            help='Repeat at this interval, and write a line for each change; '
            'implies --yes',
        )
        for part, what in (
            (plans.Part.MIRROR, 'mirror host aggregates into Placement'),
            (plans.Part.TRAITS, 'add or remove traits'),
            (plans.Part.ROLLUPS, 'maintain rollups'),
            (plans.Part.DOMAINS, 'update the projects of domains'),
        ):
            parser.add_argument(
                f'--no-{part.value}',
                action='append_const',
                const=part,
                dest='without',
                help=f'Do not {what}',
            )
        parser.add_argument(
            '--forget',
            action='store_true',
            help='Remove rollups and marks, and keep traits and memberships; '
            'use it before you uninstall isolate-aggregates, but after you '
            'have switched it off in nova-scheduler',
        )
        base.add_output_argument(
            parser,
            'With --yes or --watch, write the time of each successful sync to '
            'this file, for exporter --sync-textfile or for Node exporter',
        )
        recording.add_argument(parser, 'With --watch: ')
        base.add_snapshot_argument(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Sync once, or repeatedly; return the exit status."""
        base.check_live(self._usage, parsed_args, 'yes', 'watch')
        if parsed_args.output:
            if parsed_args.forget or not (
                parsed_args.yes or parsed_args.watch
            ):
                self._usage.error(
                    '--output needs --yes or --watch, and cannot be '
                    'combined with --forget'
                )
            base.check_metrics_client()
            from isolate_aggregates_tools.metrics import last_sync

            last_sync.check(parsed_args.output)
        if parsed_args.ledger and not parsed_args.watch:
            self._usage.error('--ledger needs --watch')
        if parsed_args.watch:
            for other in ('forget', 'dry_run'):
                if getattr(parsed_args, other):
                    name = other.replace('_', '-')
                    self._usage.error(
                        f'--{name} cannot be combined with --watch'
                    )
            self._watch(parsed_args)
            return 0
        return super().run(parsed_args)

    def report(self, args: argparse.Namespace) -> output.Report:
        """Plan the changes, and make them if the user agrees."""
        # With a cloud file, changes can only be shown.
        args.dry_run = args.dry_run or bool(args.snapshot)

        plan: plans.SyncPlan

        def find() -> list[str]:
            nonlocal plan
            with clouds.opened(self.app, args) as cloud:
                plan = self._plan_for(cloud, args)
            return plan.sentences

        def effect() -> list[str]:
            change = functools.partial(outcome.applied, sync_plan=plan)
            with clouds.opened(self.app, args) as cloud:
                return self.preview(
                    args,
                    lambda: preview.loaded('change')(self.app, change, cloud),
                )

        result: apply.SyncResult | None = None
        if self.agrees(args, find(), find, effect):
            result = self._carry_out(plan, clouds.live_cloud(self.app))
            _report(result)
            if result.is_complete:
                _note_success(args.output)
        # A mark that is left in Placement does no harm.
        self.is_undone = self.is_undone and bool(plan.changes or plan.tags)
        made = result or plan
        return output.Report(
            document=lambda: documents.Sync(
                applied=result is not None,
                changes=tuple(made.changes),
                tags=tuple(made.tags),
                problems=tuple(plan.problems),
                failures=tuple(result.failures) if result else (),
                effect=self.effect_document(),
            ),
            columns=self.columns,
            rows=[
                *(
                    ('', '', f'{c.action} {c.subject} ({c.aggregate})', c.why)
                    for c in made.tags
                ),
                *(
                    (c.host, c.provider, f'{c.action} {c.subject}', c.why)
                    for c in made.changes
                ),
            ],
            after=itertools.chain(
                _counts(plan, result), () if result else self.effect_lines()
            ),
            status=ExitStatus.DONE
            if result is None or result.is_complete
            else ExitStatus.ERROR,
        )

    def _plan_for(
        self, cloud: Cloud, args: argparse.Namespace
    ) -> plans.SyncPlan:
        """Plan the changes; log problems that the last plan did not have."""
        snapshot = read(cloud, progress.reading)
        locks = filter_sets.locks(self.app.conf, snapshot.index)
        without = args.without or ()
        plan = plans.make(
            snapshot,
            locks,
            [p for p in plans.Part if p not in without],
            args.forget,
        )
        problems = [*plan.problems, *filter(None, [snapshot.unread])]
        for problem in problems:
            if problem not in self._logged_problems:
                LOG.warning('%s.', problem)
        self._logged_problems = frozenset(problems)
        return plan

    def _carry_out(
        self,
        plan: plans.SyncPlan,
        cloud: LiveCloud,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> apply.SyncResult:
        # Before the rollups, which depend on the tags of aggregates.
        tags, failures = projects.carry_out(
            plan.differences, cloud.nova, cloud.domain_projects
        )
        result = apply.carry_out(
            plan,
            cloud.placement,
            cloud.aggregates,
            functools.partial(filter_sets.locks, self.app.conf),
            progress.changing,
            is_stopped,
        )
        result.tags += tags
        result.failures += failures
        if plan.snapshot.unread and plans.Part.DOMAINS in plan.parts:
            result.failures.append(plan.snapshot.unread)
        return result

    def _watch(self, args: argparse.Namespace) -> None:
        from isolate_aggregates_tools.cloud.live.provider_memory import (
            ProviderMemory,
        )

        # Fail now if there are no credentials.
        self.app.connect()
        memory = ProviderMemory()

        def once(is_stopped: Callable[[], bool]) -> None:
            cloud = clouds.live_cloud(self.app, memory=memory)
            try:
                plan = self._plan_for(cloud, args)
                result = self._carry_out(plan, cloud, is_stopped)
            finally:
                record(cloud)
            for tag in result.tags:
                self.app.stdout.write(f'{tag}; {tag.why}\n')
            for c in result.changes:
                self.app.stdout.write(f'{c}; {c.why}\n')
            self.app.stdout.flush()
            _report(result)
            if result.is_complete:
                _note_success(args.output)

        with recording.recording(
            args.ledger, self.app.conf, args.watch
        ) as record:
            periodic.watch(once, args.watch)


def _counts(
    plan: plans.SyncPlan, result: apply.SyncResult | None
) -> Iterable[str]:
    """Yield the number of changes by kind.

    :param result: What was made; None if the changes are only shown.
    """
    made = result or plan
    counts = collections.Counter(change.action for change in made.changes)
    providers = len({change.provider for change in made.changes})
    if not result:
        for mark in plan.old_marks:
            yield f'To be deleted: trait {mark}, {plans.IDLE}.'
    tagged = len({tag.aggregate for tag in made.tags})
    if tagged:
        verb = 'updated' if result else 'to be updated'
        yield f'Aggregates with tags {verb}: {tagged}.'
    if not made.changes:
        if not plan.old_marks and not tagged:
            yield 'Nothing was changed.' if result else 'Nothing to do.'
        return
    kinds = ', '.join(f'{kind} {n}' for kind, n in sorted(counts.items()))
    verb = 'changed' if result else 'to be changed'
    yield f'Resource providers {verb}: {providers} ({kinds}).'


def _note_success(path: str | None) -> None:
    """Write the time of a success to the file of ``--output``, if given."""
    if path:
        from isolate_aggregates_tools.metrics import last_sync

        last_sync.write(path, time.time())


def _report(result: apply.SyncResult) -> None:
    """Log the changes that could not be made."""
    for name in sorted(result.skipped):
        LOG.warning('resource provider %s was deleted meanwhile.', name)
    for failure in result.failures:
        LOG.error('%s', failure)
    if result.failures and result.untried:
        LOG.error(
            'Because of too many failures in a row, %d resource providers '
            'were not tried.',
            result.untried,
        )
