# SPDX-License-Identifier: Apache-2.0
"""Carries out commands on a snapshot, in memory."""

from collections.abc import Collection, Iterable, Iterator
import dataclasses
import functools
import itertools
import operator
from typing import Any

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.mirrored.nova_api import changes as refusals
from isolate_aggregates_tools.operate.sync import plan, projects
from isolate_aggregates_tools.operate.sync.snapshot import read
from isolate_aggregates_tools.repairs.commands import SYNC, Command, Commands


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A step that Nova refuses.

    :param reason: Why, without a full stop.
    """

    command: Command
    reason: str


def refused_steps(
    snapshot: Snapshot, steps: Commands, filters: Pipeline
) -> Iterator[Refusal]:
    """Yield the steps that Nova refuses, if they are made in this order.

    A step that is refused changes nothing.

    :param filters: All configured filters, whose locks ``sync`` maintains.
    """
    occupied = snapshot.servers.by_host if snapshot.servers else ()
    for place, command in enumerate(steps):
        reasons = list(_reasons(command, snapshot, filters, occupied))
        if reasons:
            yield Refusal(command, '; '.join(reasons))
        elif place + 1 < len(steps):
            snapshot = after(snapshot, (command,), filters)


def _reasons(
    command: Command,
    snapshot: Snapshot,
    filters: Pipeline,
    occupied: Collection[str],
) -> Iterator[str]:
    """Yield why Nova refuses what a command changes."""
    for old, new in _changed(command, snapshot, filters):
        if old is new or old == new:
            continue
        if isinstance(new, Aggregate):
            others = functools.partial(
                filter,
                functools.partial(operator.is_not, old),
                snapshot.aggregates,
            )
            yield from refusals.of_aggregate(old, new, others, occupied)
        elif isinstance(new, Flavor):
            yield from refusals.of_flavor(old, new)


def _changed(
    command: Command, snapshot: Snapshot, filters: Pipeline
) -> Iterator[tuple[Any, Any]]:
    """Yield what a command changes or appends, as it was and is."""
    if isinstance(command.change, changes.Alteration):
        yield from command.change.pairs(snapshot)
        return
    later = after(snapshot, (command,), filters)
    for before, now in (
        (snapshot.aggregates, later.aggregates),
        (snapshot.flavors, later.flavors),
    ):
        if len(now) >= len(before):
            yield from itertools.zip_longest(before, now)


def outcomes(
    snapshot: Snapshot, commands: Commands, filters: Pipeline
) -> Iterator[Snapshot]:
    """Yield the snapshot after each command."""
    for command in commands:
        snapshot = (
            synced(snapshot, filters)
            if (command,) == SYNC
            else command.change(snapshot)
        )
        yield snapshot


def after(
    snapshot: Snapshot, commands: Iterable[Command], filters: Pipeline
) -> Snapshot:
    """Return the snapshot after all of some commands."""
    for is_sync, group in itertools.groupby(
        commands, lambda each: (each,) == SYNC
    ):
        if is_sync:
            snapshot = synced(snapshot, filters)
        else:
            snapshot = changes.made(snapshot, (c.change for c in group))
    return snapshot


def planned(
    snapshot: Snapshot, filters: Pipeline, before: Snapshot | None = None
) -> plan.SyncPlan:
    """Return the changes that ``sync`` would make.

    :param before: The cloud before a change that led to this one.
    """
    key = planned, *map(id, filters.filters)
    if key not in snapshot.remembered:
        state = dataclasses.replace(
            read(SnapshotCloud(snapshot)),
            index=snapshot.index,
            known_memberships=before.index.aggregates_of
            if before and _has_same_members(before, snapshot)
            else None,
        )
        # The filters are kept, so that no others get their identity.
        snapshot.remembered[key] = (
            filters.filters,
            plan.make(state, filters.locks(snapshot.index)),
        )
    sync_plan: plan.SyncPlan
    _, sync_plan = snapshot.remembered[key]
    return sync_plan


def _has_same_members(one: Snapshot, other: Snapshot) -> bool:
    """Return whether the aggregates of two clouds have the same hosts."""
    return [(each.uuid, each.hosts) for each in one.aggregates] == [
        (each.uuid, each.hosts) for each in other.aggregates
    ]


def synced(
    snapshot: Snapshot, filters: Pipeline, before: Snapshot | None = None
) -> Snapshot:
    """Return the snapshot after ``sync``.

    :param before: The cloud before a change that led to this one.
    """
    # It is asked for again and again.
    key = synced, *map(id, filters.filters)
    if key not in snapshot.remembered:
        sync_plan = planned(snapshot, filters, before)
        later = applied(snapshot, sync_plan)
        snapshot.remembered[key] = filters.filters, later
        if not sync_plan.differences:
            # With the same locks, sync has nothing more to do.
            later.remembered[key] = filters.filters, later
    result: Snapshot
    _, result = snapshot.remembered[key]
    return result


def applied(snapshot: Snapshot, sync_plan: plan.SyncPlan) -> Snapshot:
    """Return the snapshot after a plan of ``sync`` was carried out."""
    if sync_plan.differences:
        snapshot = dataclasses.replace(
            snapshot,
            aggregates=projects.updated(
                snapshot.aggregates, sync_plan.differences
            ),
        )
    outcomes = sync_plan.outcomes
    if not outcomes:
        return snapshot
    return dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(provider, **outcomes[provider.uuid]._asdict())
            if provider.uuid in outcomes
            else provider
            for provider in snapshot.providers
        ),
    )


def made(
    snapshot: Snapshot,
    steps: Commands,
    filters: Pipeline,
) -> tuple[Commands, tuple[Refusal, ...], Snapshot]:
    """Make the steps of a change that Nova does not refuse, in their order.

    :returns: These steps, the others, and the cloud after the change.
    """
    refused = tuple(refused_steps(snapshot, steps, filters))
    out = {id(each.command) for each in refused}
    steps = tuple(step for step in steps if id(step) not in out)
    return steps, refused, after(snapshot, steps, filters)


def unknown(snapshot: Snapshot, after: Snapshot) -> Iterator[str]:
    """Yield what is not known of refusals, if the servers are not."""
    if snapshot.servers is not None:
        return
    zones = {each.uuid: zone_of(each) for each in snapshot.aggregates}
    hosts = {each.uuid: each.hosts for each in snapshot.aggregates}
    for each in after.aggregates:
        known = each.uuid in zones
        zone = zone_of(each)
        if (known and zones[each.uuid] != zone and each.hosts) or (
            zone and hosts.get(each.uuid, frozenset()) != each.hosts
        ):
            yield (
                f'whether there are servers on the hosts of aggregate '
                f'{each.name}. Nova refuses to change the availability zone '
                'of a host with servers.'
            )
