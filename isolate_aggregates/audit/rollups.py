# SPDX-License-Identifier: Apache-2.0
"""Finds rollup aggregates whose members are not those they stand for.

A cloud in which nothing was ever made a member of a rollup does without them,
and nothing is said of it.
"""

from collections.abc import Iterator

from isolate_aggregates.audit import repairs
from isolate_aggregates.audit.facts import Facts, named
from isolate_aggregates.audit.finding import Finding, Severity
from isolate_aggregates.sync import marks


def lagging(facts: Facts) -> Iterator[Finding]:
    """Find rollups that are no members of what they stand for yet."""
    missing: dict[str, set[str]] = {}
    in_use = bool(marks.marked_rollups(facts.plan.state.traits))
    for node in facts.plan.state.nodes:
        target = facts.targets[node.uuid]
        in_use |= not node.aggregates.isdisjoint(target.known)
        for uuid in target.rollups.keys() - node.aggregates:
            missing.setdefault(uuid, set()).add(target.host)
    if not in_use:
        return
    for uuid, hosts in missing.items():
        yield Finding(
            'rollup-lagging',
            Severity.INFO,
            f'rollup {_name(facts, uuid)}',
            f'does not have hosts {named(hosts)} yet',
            'queries are longer than need be; no server lands where it must '
            'not',
            repairs.SYNC,
            safe=True,
        )


def stale(facts: Facts) -> Iterator[Finding]:
    """Find hosts that are in a rollup which does not stand for them."""
    left: dict[str, set[str]] = {}
    for node in facts.plan.state.nodes:
        target = facts.targets[node.uuid]
        for uuid in (node.aggregates & target.known) - target.rollups.keys():
            left.setdefault(uuid, set()).add(target.host)
    for uuid, hosts in left.items():
        yield Finding(
            'rollup-stale',
            Severity.WARNING,
            f'rollup {_name(facts, uuid)}',
            f'still has hosts {named(hosts)}, which it does not stand for',
            'they may be kept from servers that could use them',
            repairs.SYNC,
            safe=True,
        )


def marks_left(facts: Facts) -> Iterator[Finding]:
    """Find marks of a sync that nothing has any more."""
    if facts.traits is None:
        return
    idle = set(facts.plan.old_marks)
    # Those that are on a host, or stand for a rollup with members, are told
    # with what they mark.
    idle -= facts.all_traits
    held = {u for p in facts.snapshot.providers for u in p.aggregates}
    idle -= {
        marks.of_rollup(uuid) for uuid in marks.marked_rollups(idle) & held
    }
    if idle:
        yield Finding(
            'marks-left',
            Severity.INFO,
            'Placement',
            f'has the traits {named(idle)}, which marked what is gone',
            'none but the clutter',
            repairs.SYNC,
            safe=True,
        )


def _name(facts: Facts, uuid: str) -> str:
    # All of them know the names of all rollups.
    names = facts.plan.targets[0].names
    return names.get(uuid, uuid)
