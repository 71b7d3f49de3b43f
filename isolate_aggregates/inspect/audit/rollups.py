# SPDX-License-Identifier: Apache-2.0
"""Finds rollup aggregates whose members are not those they stand for.

A cloud without members in any rollup does not use them, and has no findings.
"""

from collections.abc import Iterator

from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.inspect.audit import repairs
from isolate_aggregates.inspect.audit.cloud import AuditedCloud
from isolate_aggregates.inspect.audit.finding import Finding, Severity
from isolate_aggregates.operate.sync import marks
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.text import listed


def lagging(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find rollups that do not have all they stand for yet."""
    names = _names(cloud)
    in_use = bool(marks.marked_rollups(cloud.plan.snapshot.traits))
    missing: dict[str, set[str]] = {}
    for provider, after in _synced(cloud):
        in_use |= not provider.aggregates.isdisjoint(names)
        for uuid in (after - provider.aggregates) & names.keys():
            missing.setdefault(uuid, set()).add(provider.host or provider.name)
    if not in_use:
        return
    for uuid, hosts in missing.items():
        yield Finding(
            'rollup-lagging',
            Severity.INFO,
            f'rollup {names[uuid]}',
            f'does not have {listed(hosts)} yet',
            'queries are longer than necessary, but exclude the same hosts',
            repairs.SYNC,
            safe=True,
        )


def stale(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts that are in a rollup which does not stand for them."""
    names = _names(cloud)
    left: dict[str, set[str]] = {}
    for provider, after in _synced(cloud):
        # Nothing but rollups is ever taken away.
        for uuid in provider.aggregates - after:
            left.setdefault(uuid, set()).add(provider.host or provider.name)
    for uuid, hosts in left.items():
        yield Finding(
            'rollup-stale',
            Severity.WARNING,
            f'rollup {names.get(uuid, uuid)}',
            f'still has {listed(hosts)}, which it does not stand for',
            'they may be kept from servers that could use them',
            repairs.SYNC,
            safe=True,
        )


def _names(cloud: AuditedCloud) -> dict[str, str]:
    return {rollup.uuid: rollup.name for rollup in rollups(cloud.locks)}


def _synced(cloud: AuditedCloud) -> Iterator[tuple[Provider, frozenset[str]]]:
    """Yield each provider with the aggregates that a sync leaves it."""
    for provider in cloud.snapshot.providers:
        target = cloud.targets.get(provider.uuid)
        if target:
            yield provider, target.aggregates_after(provider.aggregates)


def marks_left(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find marks of a sync that nothing has any more."""
    if cloud.traits is None:
        return
    idle = set(cloud.plan.old_marks)
    # Those that are on a host, or stand for a rollup with members, are told
    # with what they mark.
    idle -= cloud.all_traits
    held = {u for p in cloud.snapshot.providers for u in p.aggregates}
    idle -= {
        marks.of_rollup(uuid) for uuid in marks.marked_rollups(idle) & held
    }
    if idle:
        yield Finding(
            'marks-left',
            Severity.INFO,
            'Placement',
            f'has the traits {listed(idle)}, which marked things that no '
            'longer exist',
            'no effect, they are only clutter',
            repairs.SYNC,
            safe=True,
        )
