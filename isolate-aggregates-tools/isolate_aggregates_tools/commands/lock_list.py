# SPDX-License-Identifier: Apache-2.0
"""``lock list``: the locks, and the room behind them."""

import argparse
from collections.abc import Iterable, Sequence
import functools

import os_resource_classes as orc

from isolate_aggregates import filter_sets
from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.commands import lock_documents as documents
from isolate_aggregates_tools.documents import Aggregate
from isolate_aggregates_tools.locks.overview import LockOverview, overview
from isolate_aggregates_tools.locks.usage import Usage

_CLASSES = (orc.VCPU, orc.PCPU, orc.MEMORY_MB, orc.DISK_GB)


class ListLocks(output.ReportLister):
    """Show all locks, and the hosts and the capacity behind each.

    A host counts for every lock it is behind. Capacity is that of the hosts'
    own resource providers, as Placement counts it. As json or yaml: one
    document with the names of aggregates and hosts and all resource classes.
    As csv or value: free and used amounts in separate columns. The table has
    dedicated CPUs (PCPU) only if there are any.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        with clouds.opened(self.app, args, remembers=True) as cloud:
            locks = filter_sets.locks(self.app.conf, cloud.index)
            entries = overview(cloud.capacities, locks) if locks else ()
            clouds.warn_if_unguarded(cloud, self.app.conf)
        people = args.formatter == 'table'
        amounts = _amounts if people else _numbers
        # Few clouds have dedicated CPUs. Programs want the same columns.
        classes = [
            rc
            for rc in _CLASSES
            if not people
            or rc != orc.PCPU
            or any(rc in entry.capacity for entry in entries)
        ]
        usage = () if people else [f'{rc} used' for rc in classes]
        columns = ('Lock', 'Aggregates', 'Hosts', *classes, *usage)
        rows = [
            (
                entry.lock.name,
                len(entry.lock.aggregates),
                _hosts(entry) if people else len(entry.hosts),
                *amounts([entry.capacity.get(rc) for rc in classes]),
            )
            for entry in entries
        ]
        return output.Report(
            document=functools.partial(_document, entries),
            columns=columns,
            rows=rows,
            nothing='No aggregate is locked.',
        )


def _document(entries: Iterable[LockOverview]) -> documents.Locks:
    return documents.Locks(
        locks=tuple(
            documents.ListedLock(
                name=entry.lock.name,
                aggregates=tuple(
                    Aggregate(name=a.name, uuid=a.uuid)
                    for a in entry.lock.aggregates
                ),
                hosts=entry.hosts,
                unusable_hosts=tuple(sorted(entry.unusable)),
                capacity=entry.capacity,
            )
            for entry in entries
        )
    )


def _hosts(entry: LockOverview) -> int | str:
    number, unusable = len(entry.hosts), len(entry.unusable)
    if not unusable:
        return number
    return f'{number}, {unusable} down or disabled'


def _amounts(usages: Sequence[Usage | None]) -> Iterable[str]:
    for usage in usages:
        yield f'{usage.free} of {usage.total} free' if usage else '-'


def _numbers(usages: Sequence[Usage | None]) -> Iterable[int | None]:
    yield from (usage.free if usage else None for usage in usages)
    yield from (usage.used if usage else None for usage in usages)
