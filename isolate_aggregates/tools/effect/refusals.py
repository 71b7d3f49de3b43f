# SPDX-License-Identifier: Apache-2.0
"""Leaves out the steps of a change that nova-api refuses."""

from collections.abc import Iterator

from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.advice import outcome
from isolate_aggregates.tools.advice.commands import Commands
from isolate_aggregates.tools.advice.refusals import Refusal, refused_steps
from isolate_aggregates.tools.cloud.snapshot import Snapshot


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
    *_, after = snapshot, *outcome.outcomes(snapshot, steps, filters)
    return steps, refused, after


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
