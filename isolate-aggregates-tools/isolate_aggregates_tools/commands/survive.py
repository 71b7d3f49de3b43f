# SPDX-License-Identifier: Apache-2.0
"""``survival list``: shows which servers have nowhere to go if hosts fail."""

import argparse
from collections.abc import Iterable
import functools

from isolate_aggregates import filter_sets
from isolate_aggregates.aggregates import Lock
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.operate import names
from isolate_aggregates_tools.room import shown
from isolate_aggregates_tools.room.survival import Survival, survival


class ShowSurvival(output.ReportLister):
    """Show which servers have nowhere to go if any hosts fail.

    The servers of failing hosts are placed on the others, within their locks,
    zones, server groups, reservations and capacity. The worst hosts come
    first. The exit status is 4 if a server may have nowhere to go. As json or
    yaml: one document with all servers.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--failures',
            type=base.positive,
            default=1,
            metavar='<number>',
            help='How many hosts fail at the same time; default: 1',
        )
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            '--lock',
            metavar='<lock>',
            help='Let only hosts behind this lock fail: its metadata key or '
            'its trait',
        )
        which.add_argument(
            '--aggregate',
            metavar='<aggregate>',
            help='Let only hosts of this aggregate fail: its name, uuid or '
            'number',
        )
        base.add_snapshot_argument(parser)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        with clouds.opened(self.app, args, remembers=True) as cloud:
            snapshot, releases = clouds.read_all(cloud)
        found = survival(
            snapshot,
            self.app.conf,
            args.failures,
            self._hosts(snapshot, args),
            releases,
        )
        return output.Report(
            document=functools.partial(shown.survival_document, found),
            columns=shown.SURVIVAL_COLUMNS,
            rows=shown.survival_rows(found),
            before=shown.survival_lines(found),
            after=_after(found, None if args.long else shown.MOST),
            status=ExitStatus.DONE if found.is_survived else ExitStatus.NO,
        )

    def _hosts(
        self, snapshot: Snapshot, args: argparse.Namespace
    ) -> frozenset[str] | None:
        """Return the hosts that may fail; None for all."""
        if args.aggregate:
            return names.aggregate(
                snapshot.aggregates, args.aggregate, snapshot.origin
            ).hosts
        if args.lock:
            locks = filter_sets.locks(self.app.conf, snapshot.index)
            lock = _lock(locks, args.lock, snapshot.origin)
            return frozenset(h for a in lock.aggregates for h in a.hosts)
        return None


def _after(found: Survival, most: int | None) -> Iterable[str]:
    """Yield the servers of the worst case, and the room behind locks."""
    yield from shown.stranded_lines(found, most)
    yield from shown.margin_lines(found, most)
    for sentence in found.not_known:
        yield f'Not known: {sentence}.'
    if found.not_evaluated:
        yield (
            'Not evaluated: servers in cells that are down: '
            f'{found.not_evaluated}.'
        )


def _lock(locks: Iterable[Lock], name: str, place: str) -> Lock:
    locks = tuple(locks)
    for lock in locks:
        if name in (lock.name, lock.name.removeprefix(TRAIT_PREFIX)):
            return lock
    raise errors.NotFound('lock', name, place, [lock.name for lock in locks])
