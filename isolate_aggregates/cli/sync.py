# SPDX-License-Identifier: Apache-2.0
"""``sync``: make Placement agree with the host aggregates."""

import argparse
import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
from typing import Any

from oslo_log import log as logging
import tqdm

from isolate_aggregates.cli import base, output, periodic
from isolate_aggregates.cloud.clouds import Cloud, LiveCloud
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.operate.sync import apply, state
from isolate_aggregates.operate.sync import plan as plans
from isolate_aggregates.operate.sync.target import Change

# Exit statuses, beside 2 for arguments that make no sense.
DONE = 0
FAILED = 1
TO_DO = 3

LOG = logging.getLogger(__name__)


class SyncPlacement(output.ReportLister):
    """Make Placement agree with the host aggregates and their tags.

    The resource providers of the hosts of each aggregate become members of it
    in Placement, get the traits that it requires, and become members of the
    rollups that stand for it. What sync has put there and is not wanted any
    more is taken away; what others put there stays. Without --apply it is only
    shown. As json or yaml: one document with the problems too.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--apply', action='store_true', help='Do it, and show what changed'
        )
        parser.add_argument(
            '--watch',
            type=base.positive,
            metavar='<seconds>',
            help='Do it again and again, with so many seconds between, and '
            'write a line for each change; implies --apply',
        )
        for part, what in (
            (plans.Part.MIRROR, 'mirror host aggregates into Placement'),
            (plans.Part.TRAITS, 'put or take away traits'),
            (plans.Part.ROLLUPS, 'maintain rollups'),
        ):
            parser.add_argument(
                f'--no-{part.value}',
                action='append_const',
                const=part,
                dest='without',
                help=f'Do not {what}',
            )
        base.add_snapshot_argument(parser)
        self._usage = parser
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Do it once, or again and again; return the exit status."""
        if parsed_args.snapshot and (parsed_args.apply or parsed_args.watch):
            self._usage.error(
                'a cloud file is not changed: leave out --apply and --watch, '
                'or --snapshot'
            )
        if parsed_args.watch:
            self._watch(parsed_args)
            return DONE
        super().run(parsed_args)
        if self._outcome and not self._outcome.is_complete:
            return FAILED
        return TO_DO if self._plan.changes and not self._outcome else DONE

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Find out what is to be changed, and change it if that is asked."""
        self._outcome: apply.Outcome | None = None
        with base.opened(self.app, parsed_args) as cloud:
            self._plan = self._plan_for(cloud, parsed_args)
            for problem in self._plan.problems:
                LOG.warning('%s.', problem)
            if parsed_args.apply and isinstance(cloud, LiveCloud):
                self._outcome = _carry_out(self._plan, cloud)
                _report(self._outcome)
        return (
            ('Host', 'Provider', 'Change', 'Why'),
            [
                (c.host, c.provider, f'{c.action} {c.subject}', c.why)
                for c in self._changes
            ],
        )

    @property
    def _changes(self) -> Sequence[Change]:
        done = self._outcome
        return self._plan.changes if done is None else done.changes

    def document(self) -> dict[str, Any]:
        """Return changes and problems."""
        done = self._outcome
        return {
            'applied': done is not None,
            'changes': [dataclasses.asdict(c) for c in self._changes],
            'problems': list(self._plan.problems),
            'failures': done.failures if done else [],
        }

    def after(self) -> Iterable[str]:
        """Yield how many changes there are, by kind."""
        changes = self._changes
        counts = collections.Counter(change.action for change in changes)
        providers = len({change.provider for change in changes})
        if not changes:
            yield 'Nothing was changed.' if self._outcome else 'Nothing to do.'
            return
        kinds = ', '.join(f'{kind} {n}' for kind, n in sorted(counts.items()))
        done = 'changed' if self._outcome else 'to be changed with --apply'
        yield f'Resource providers {done}: {providers} ({kinds}).'

    def _plan_for(self, cloud: Cloud, args: argparse.Namespace) -> plans.Plan:
        if isinstance(cloud, LiveCloud):
            found = state.read(cloud.nova, cloud.placement, _reading)
        else:
            found = state.of_snapshot(cloud.snapshot)
        locks = Pipeline(loading.load(self.app.conf)).locks(found.index)
        without = args.without or ()
        return plans.make(
            found, locks, [p for p in plans.Part if p not in without]
        )

    def _watch(self, args: argparse.Namespace) -> None:
        connection = self.app.connect()
        seen: frozenset[str] = frozenset()

        def once(stopped: Callable[[], bool]) -> None:
            nonlocal seen
            cloud = LiveCloud(self.app.conf, lambda: connection)
            plan = self._plan_for(cloud, args)
            for problem in plan.problems:
                if problem not in seen:
                    LOG.warning('%s.', problem)
            seen = frozenset(plan.problems)
            outcome = _carry_out(plan, cloud, stopped)
            for c in outcome.changes:
                self.app.stdout.write(
                    f'{c.host}, {c.provider}: {c.action} {c.subject}; '
                    f'{c.why}\n'
                )
            self.app.stdout.flush()
            _report(outcome)

        periodic.watch(once, args.watch)


def _carry_out(
    plan: plans.Plan,
    cloud: LiveCloud,
    stopped: Callable[[], bool] = lambda: False,
) -> apply.Outcome:
    return apply.carry_out(
        plan, cloud.placement, cloud.nova.aggregates, _changing, stopped
    )


def _report(outcome: apply.Outcome) -> None:
    """Log what could not be done."""
    for name in sorted(outcome.skipped):
        LOG.warning('resource provider %s: is gone meanwhile.', name)
    for failure in outcome.failures:
        LOG.error('%s', failure)
    if outcome.failures and outcome.untried:
        LOG.error(
            'After so many failures in a row %d resource providers were not '
            'even tried.',
            outcome.untried,
        )


def _reading(found: Iterator[Any], total: int) -> Iterable[Any]:
    return _progress(found, total, 'Reading resource providers')


def _changing(found: Iterator[Any], total: int) -> Iterable[Any]:
    return _progress(found, total, 'Changing resource providers')


def _progress(found: Iterator[Any], total: int, doing: str) -> Iterable[Any]:
    """Show progress to a person; a pipe or a log gets none."""
    return tqdm.tqdm(found, doing, total, unit='', leave=False, disable=None)
