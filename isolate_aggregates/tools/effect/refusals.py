# SPDX-License-Identifier: Apache-2.0
"""Finds the steps of a change that nova-api refuses."""

from collections.abc import Collection, Iterator
import dataclasses

from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.advice import outcome
from isolate_aggregates.tools.advice.commands import Command, Commands
from isolate_aggregates.tools.answers.requests import Requests
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.effect.formats.order import Order, safe
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
    servers = snapshot.servers.placed if snapshot.servers else ()
    occupied = {server.host for server in servers if server.host}
    for command in steps:
        [after] = outcome.outcomes(snapshot, (command,), filters)
        reasons = list(_reasons(command, snapshot, after, occupied))
        if reasons:
            yield Refusal(command, '; '.join(reasons))
        else:
            snapshot = after


def accepted(
    snapshot: Snapshot,
    steps: Commands,
    pipeline: Pipeline,
    filters: Pipeline,
    requests: Requests,
) -> tuple[Order, tuple[Refusal, ...]]:
    """Return the steps that Nova does not refuse, in a safe order.

    :param pipeline: The filters that decide, and those of Nova.
    :param requests: Builds the requests of servers.
    :returns: The order, and the other steps.
    """
    refused: tuple[Refusal, ...] = ()
    while True:
        order = safe(snapshot, steps, pipeline, filters, requests)
        more = tuple(refused_steps(snapshot, order.commands, filters))
        if not more:
            return order, refused
        refused += more
        out = {id(each.command) for each in more}
        steps = tuple(step for step in steps if id(step) not in out)


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
