# SPDX-License-Identifier: Apache-2.0
"""Finds rollup aggregates with missing or surplus members.

A cloud in which no rollup has members does not use rollups; it has no
findings.
"""

from collections.abc import Iterator

from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.text import listed, named
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair


def lagging(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find rollups with missing members."""
    names = _names(cloud)
    # Of a dict, "isdisjoint" would look at all keys.
    uuids = frozenset(names)
    in_use = bool(marks.marked_rollups(cloud.plan.snapshot.traits)) or any(
        not provider.aggregates.isdisjoint(uuids)
        for provider in cloud.snapshot.providers
        if not provider.parent
    )
    if not in_use:
        return
    hosts_by_rollup: dict[str, set[str]] = {}
    for provider, after in cloud.synced:
        for rollup in (after - provider.aggregates) & names.keys():
            hosts_by_rollup.setdefault(rollup, set()).add(
                provider.host or provider.name
            )
    for rollup, hosts in hosts_by_rollup.items():
        yield Finding(
            'rollup-lagging',
            Severity.INFO,
            f'rollup {names[rollup]}',
            f'does not have {listed(hosts)} yet',
            'long queries do not exclude these; IsolatedAggregatesFilter does',
            (Repair(commands.SYNC, safe=True),),
            about=About.of(hosts=hosts),
        )


def stale(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts that are in a rollup that must not contain them."""
    names = _names(cloud)
    hosts_by_rollup: dict[str, set[str]] = {}
    for provider, after in cloud.synced:
        if provider.is_sharing:
            continue
        # Sync removes only memberships of rollups.
        for rollup in provider.aggregates - after:
            hosts_by_rollup.setdefault(rollup, set()).add(
                provider.host or provider.name
            )
    for rollup, hosts in hosts_by_rollup.items():
        yield Finding(
            'rollup-stale',
            Severity.WARNING,
            f'rollup {names.get(rollup, rollup)}',
            'still contains hosts that are in none of the aggregates it '
            f'replaces: {listed(hosts)}',
            'they may be excluded for servers that could use them',
            (Repair(commands.SYNC, safe=True),),
            about=About.of(hosts=hosts),
        )


def shared(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find sharing providers in rollups, to which they must not belong."""
    names = _names(cloud)
    for provider, after in cloud.synced:
        surplus = provider.aggregates - after
        if surplus and provider.is_sharing:
            where = {names.get(rollup, rollup) for rollup in surplus}
            yield Finding(
                'rollup-shared',
                Severity.ERROR,
                f'resource provider {provider.name}',
                f'shares its resources and is in {named("rollup", where)}; '
                'rollups are for compute nodes only',
                'Placement gives its resources to servers on all hosts of '
                'the rollup, although they may not reach it',
                (Repair(commands.SYNC, safe=True),),
            )


def _names(cloud: AuditedCloud) -> dict[str, str]:
    return {rollup.uuid: rollup.name for rollup in rollups(cloud.locks)}


def marks_left(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find marks of ``sync`` that are no longer in use."""
    if cloud.traits is None:
        return
    idle = set(cloud.plan.old_marks)
    # Marks on a host, and marks of a rollup with members, are reported with
    # the host or the rollup.
    idle -= cloud.snapshot.provider_traits
    memberships = {u for p in cloud.snapshot.providers for u in p.aggregates}
    idle -= {
        marks.of_rollup(uuid)
        for uuid in marks.marked_rollups(idle) & memberships
    }
    if idle:
        yield Finding(
            'marks-left',
            Severity.INFO,
            'Placement',
            f'has the traits {listed(idle)}, which marked things that no '
            'longer exist',
            'they do nothing',
            (Repair(commands.SYNC, safe=True),),
        )
