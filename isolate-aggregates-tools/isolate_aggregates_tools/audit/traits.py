# SPDX-License-Identifier: Apache-2.0
"""Compares the traits that aggregates require with those of the hosts."""

from collections.abc import Collection, Iterator, Mapping

import os_resource_classes as orc
import os_traits

from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.request.extra_specs import (
    RESERVATION_TRAIT,
    TRAIT_PREFIX,
)
from isolate_aggregates.text import listed, named, plural
from isolate_aggregates_tools import marks, ranges
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.locking_traits import opposite
from isolate_aggregates_tools.locks import reach
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair

_LEAK = 'servers that require the trait may also land on {hosts}'

# The most hosts for which a command is suggested.
_FEW = 5


def missing_on_hosts(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts without a trait that their aggregate requires."""
    for aggregate in cloud.snapshot.aggregates:
        for trait in sorted(tags.required_traits(aggregate)):
            without = {
                node: host
                for host in aggregate.hosts
                for node in cloud.nodes.get(host, ())
                if trait not in node.traits
                and not _holders(cloud, node, trait)
            }
            by_keeper: dict[tuple[str, bool], dict[Provider, str]] = {}
            for node, host in without.items():
                contrary = opposite(trait, node.traits)
                keeper = contrary, _is_of_ironic(cloud.nodes[host])
                by_keeper.setdefault(keeper, {})[node] = host
            for keeper, some in sorted(by_keeper.items(), reverse=True):
                yield _missing(cloud, aggregate, trait, some, *keeper)


def _missing(
    cloud: AuditedCloud,
    aggregate: Aggregate,
    trait: str,
    without: Mapping[Provider, str],
    contrary: str,
    is_ironic: bool,
) -> Finding:
    """Return the finding about hosts that lack a trait.

    :param contrary: The trait that they have and that contradicts it; empty
        if there is none.
    :param is_ironic: Whether Ironic keeps their traits.
    """
    hosts = set(without.values())
    # A compute service for bare metal has many nodes.
    names = {
        host if without.keys() >= set(nodes) else f'{host} ({node.name})'
        for node, host in without.items()
        for nodes in (cloud.nodes[host],)
    }
    # Sync does not change some traits, for example those of nova-compute.
    by_sync = all(
        trait in (cloud.plan.target(node).traits or ()) for node in without
    )
    return Finding(
        'trait-missing',
        Severity.ERROR,
        f'aggregate {aggregate.name}',
        f'requires trait {trait}, which is missing in Placement on '
        + ranges.folded(names, None)
        + (f', where another program keeps {contrary}' if contrary else ''),
        _consequence(cloud, plural(len(names), 'it', 'them')),
        (_leave(aggregate, hosts),)
        if contrary
        else _of_ironic(aggregate, trait, without)
        if is_ironic
        else _give(aggregate, trait, hosts, by_sync),
        about=About.of(hosts=hosts, aggregates=[aggregate.name]),
    )


def _consequence(cloud: AuditedCloud, hosts: str) -> str:
    """Return what a missing trait does, which is for others if none locks."""
    missed = 'servers that require the trait do not find'
    if any(f.name in cloud.enabled for f in cloud.isolating):
        return (
            f'no server can land on {hosts}: {missed} it, and all others are '
            'kept out'
        )
    return f'{missed} {hosts}; no enabled filter keeps others out'


def _of_ironic(
    aggregate: Aggregate, trait: str, without: Mapping[Provider, str]
) -> tuple[Repair, ...]:
    """Return how nodes of Ironic leave an aggregate, or get a trait.

    Inspection may keep the trait: it says what a machine is.
    """
    give = commands.shown(commands.add_node_traits(without, trait))
    have = plural(len(without), 'the node has', 'the nodes have')
    return (
        _leave(aggregate, set(without.values())),
        Repair(
            text=f'{give}, if {have} what the trait means; this lets servers '
            'that require it land there'
        ),
    )


def _give(
    aggregate: Aggregate, trait: str, hosts: Collection[str], by_sync: bool
) -> tuple[Repair, ...]:
    """Return how to give hosts a trait, or how to do without it."""
    if trait == RESERVATION_TRAIT:
        return (Repair(commands.enable_reservations(hosts)),)
    if by_sync:
        return (Repair(commands.SYNC, safe=True),)
    # Only nova-compute can give them the trait.
    unset = Repair(commands.unset(aggregate, TRAIT_PREFIX + trait))
    if len(hosts) > _FEW:
        return (unset,)
    return (Repair(commands.remove_hosts(aggregate, hosts)), unset)


def _leave(aggregate: Aggregate, hosts: Collection[str]) -> Repair:
    """Return how hosts leave an aggregate whose trait they must not get."""
    if len(hosts) <= _FEW:
        return Repair(commands.remove_hosts(aggregate, hosts))
    return Repair(
        text=f'remove these {len(hosts)} hosts from aggregate '
        f'{aggregate.name}; this lets servers use them that do not require '
        'the trait'
    )


def _is_of_ironic(nodes: Collection[Provider]) -> bool:
    """Return whether the compute nodes of a service are nodes of Ironic.

    Only such a service has several. One that takes no servers now, as in
    maintenance, may have no inventories.
    """
    return len(nodes) > 1 or any(map(_is_bare_metal, nodes))


def _is_bare_metal(node: Provider) -> bool:
    """Return whether a compute node is a node of Ironic."""
    return bool(node.inventories) and all(map(orc.is_custom, node.inventories))


def out_of_reach(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts with a required trait on a provider no server uses."""
    images = cloud.snapshot.images if cloud.images_open else ()
    for trait, requiring in sorted(cloud.required_by.items()):
        below: dict[str, tuple[Provider, ...]] = {}
        for host in sorted({host for a in requiring for host in a.hosts}):
            for node in cloud.nodes.get(host, ()):
                if trait in node.traits:
                    continue
                if holders := _holders(cloud, node, trait):
                    below[host] = (*below.get(host, ()), *holders)
        requests = (
            list(reach.requests(trait, cloud.snapshot.flavors, images))
            if below
            else []
        )
        hosts = [
            host
            for host, holders in below.items()
            if reach.unreached(holders, trait, requests)
        ]
        if hosts:
            where = {p.name for host in hosts for p in below[host]}
            yield Finding(
                'trait-out-of-reach',
                Severity.ERROR,
                f'trait {trait}',
                f'on {listed(hosts)}, only {named("provider", where)} '
                f'{plural(len(where), "has", "have")} it, and no flavor that '
                'requires it also requests any of their resources',
                'no server that requires it can land there: Placement looks '
                'for a trait only on providers whose resources are requested',
                about=About.of(
                    hosts=hosts, aggregates=(a.name for a in requiring)
                ),
            )


def outside_aggregates(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts with a required trait outside the requiring aggregates."""
    for trait, requiring in sorted(cloud.required_by.items()):
        inside = {host for a in requiring for host in a.hosts}
        outside = [
            (node, holder)
            for node, holder in cloud.holders.get(trait, ())
            if node.host not in inside
        ]
        if os_traits.is_custom(trait):
            for node, holder in outside:
                yield _outside(cloud, node, trait, requiring, holder)
        elif outside:
            hosts = {node.host or '' for node, _ in outside}
            yield _standard_outside(trait, requiring, hosts)


def _outside(
    cloud: AuditedCloud,
    node: Provider,
    trait: str,
    requiring: tuple[Aggregate, ...],
    holder: Provider,
) -> Finding:
    where = '' if holder is node else f', on its provider {holder.name},'
    has_mark = trait in marks.marked_traits(holder.traits)
    return Finding(
        'trait-outside',
        Severity.WARNING,
        f'host {node.host}',
        f'has trait {trait}{where} but is in none of the aggregates that '
        f'require it: {listed(a.name for a in requiring)}',
        _LEAK.format(hosts='it'),
        (
            Repair(commands.SYNC, safe=True)
            if has_mark
            else Repair(commands.remove_trait(holder, trait)),
        ),
        about=About.of(
            hosts=[node.host or ''], aggregates=(a.name for a in requiring)
        ),
    )


def _standard_outside(
    trait: str, requiring: tuple[Aggregate, ...], hosts: set[str]
) -> Finding:
    """Return one finding for all hosts, as nova-compute restores the trait."""
    few = len(hosts) <= _FEW
    return Finding(
        'trait-outside',
        Severity.WARNING,
        f'trait {trait}',
        f'is on {listed(hosts)}, which {plural(len(hosts), "is", "are")} in '
        'none of the aggregates that require it: '
        f'{listed(a.name for a in requiring)}; require a CUSTOM_ trait '
        'instead',
        _LEAK.format(hosts='them'),
        (Repair(commands.add_hosts(requiring[0], hosts)),) if few else (),
        about=About.of(hosts=hosts, aggregates=(a.name for a in requiring)),
    )


def left_by_sync(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find traits set by ``sync`` that no aggregate requires any more."""
    synced = marks.marked_traits(cloud.snapshot.provider_traits)
    if synced <= cloud.required_by.keys():
        return
    for host, nodes in sorted(cloud.nodes.items()):
        for node in nodes:
            synced_traits = marks.marked_traits(node.traits)
            for trait in sorted(synced_traits - cloud.required_by.keys()):
                yield Finding(
                    'trait-left',
                    Severity.INFO,
                    f'host {host}',
                    f'has trait {trait} from a sync, and no aggregate '
                    'requires it any more',
                    'servers that require the trait still find the host',
                    (Repair(commands.SYNC, safe=True),),
                    about=About.of(hosts=[host]),
                )


def _holders(
    cloud: AuditedCloud, node: Provider, trait: str
) -> tuple[Provider, ...]:
    return tuple(p for p in cloud.serving(node) if trait in p.traits)
