# SPDX-License-Identifier: Apache-2.0
"""Carries out commands on a snapshot, in memory."""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.advice.commands import SYNC, Commands
from isolate_aggregates.tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.operate.sync import plan, projects
from isolate_aggregates.tools.operate.sync.snapshot import read


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


def synced(snapshot: Snapshot, filters: Pipeline) -> Snapshot:
    """Return the snapshot after ``sync``."""
    return applied(
        snapshot,
        plan.make(
            read(SnapshotCloud(snapshot)), filters.locks(snapshot.index)
        ),
    )


def applied(snapshot: Snapshot, sync_plan: plan.SyncPlan) -> Snapshot:
    """Return the snapshot after a plan of ``sync`` was carried out."""
    if sync_plan.differences:
        snapshot = dataclasses.replace(
            snapshot,
            aggregates=projects.updated(
                snapshot.aggregates, sync_plan.differences
            ),
        )
    targets = {target.provider: target for target in sync_plan.pending}
    if not targets:
        return snapshot
    return dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(
                provider,
                traits=targets[provider.uuid].traits_after(provider.traits),
                aggregates=targets[provider.uuid].aggregates_after(
                    provider.aggregates
                ),
            )
            if provider.uuid in targets
            else provider
            for provider in snapshot.providers
        ),
    )
