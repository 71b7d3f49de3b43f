# SPDX-License-Identifier: Apache-2.0
"""Leaves out the steps of a change that nova-api refuses."""

from collections.abc import Iterator

from oslo_config import cfg

from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.advice import outcome
from isolate_aggregates.tools.advice.commands import Commands
from isolate_aggregates.tools.advice.refusals import Refusal, refused_steps
from isolate_aggregates.tools.answers.requests import Requests
from isolate_aggregates.tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.effect.formats.order import Order, safe
from isolate_aggregates.tools.mirrored import chain


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


def made(
    snapshot: Snapshot,
    steps: Commands,
    conf: cfg.ConfigOpts,
    filters: Pipeline,
) -> tuple[Order, tuple[Refusal, ...], Snapshot]:
    """Make the steps of a change that Nova does not refuse.

    :returns: The order, the other steps, and the cloud after the change.
    """
    order, refused = accepted(
        snapshot,
        steps,
        chain.as_in_nova(conf),
        filters,
        Requests(SnapshotCloud(snapshot), conf),
    )
    states = outcome.outcomes(
        snapshot, order.commands if refused else steps, filters
    )
    *_, after = snapshot, *states
    return order, refused, after


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
