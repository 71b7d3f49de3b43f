# SPDX-License-Identifier: Apache-2.0
"""Finds the commands that nova-api refuses."""

from collections.abc import Collection, Iterator
import dataclasses

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.advice import outcome
from isolate_aggregates.tools.advice.commands import Command, Commands
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.mirrored.nova_api import changes


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
    for command in steps:
        [after] = outcome.outcomes(snapshot, (command,), filters)
        reasons = list(_reasons(command, snapshot, after, occupied))
        if reasons:
            yield Refusal(command, '; '.join(reasons))
        else:
            snapshot = after


def _reasons(
    command: Command,
    before: Snapshot,
    after: Snapshot,
    occupied: Collection[str],
) -> Iterator[str]:
    """Yield why Nova refuses what a command changes."""
    if before is after:
        return
    old = {each.uuid: each for each in before.aggregates}
    for new in after.aggregates:
        was = old.get(new.uuid)
        if was != new:
            others = [each for each in before.aggregates if each is not was]
            yield from changes.of_aggregate(was, new, others, occupied)
    flavors = {each.id: each for each in before.flavors}
    for flavor in after.flavors:
        if flavors.get(flavor.id) != flavor:
            yield from changes.of_flavor(flavors.get(flavor.id), flavor)
