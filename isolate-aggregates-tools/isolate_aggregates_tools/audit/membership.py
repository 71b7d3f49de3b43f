# SPDX-License-Identifier: Apache-2.0
"""Finds hosts whose aggregates differ between Nova and Placement.

Placement uses only its own memberships, so no lock of the aggregate applies to
a host that is not a member there. See `Aggregates in Placement
<https://docs.openstack.org/nova/latest/admin/aggregates.html#aggregates-in-placement>`_.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.text import listed, named, plural
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.diagnosis import renamed_hosts, unmapped_hosts
from isolate_aggregates_tools.placement.provider import Provider, trees
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair

# A database that ignores case keeps the spelling of whoever was first.
_RESPELL = Repair(
    text='if sync does not help, the database of Placement ignores case, as '
    'MariaDB does: write the uuid there as Nova does ("UPDATE '
    'placement_aggregates SET uuid = LOWER(uuid)")',
    is_tried=False,
)


def no_compute_nodes(cloud: AuditedCloud) -> Iterator[Finding]:
    """Report that Placement has no compute nodes to compare with."""
    if cloud.nodes:
        return
    yield Finding(
        'no-compute-nodes',
        Severity.WARNING,
        'the cloud',
        'it has no compute node with a resource provider',
        'hosts were not checked',
    )


def not_in_placement(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts that are in an aggregate only in Nova."""
    for aggregate in cloud.snapshot.aggregates:
        outside = {
            host: nodes
            for host in aggregate.hosts
            if (
                nodes := [
                    node
                    for node in cloud.nodes.get(host, ())
                    if aggregate.uuid not in node.aggregates
                ]
            )
        }
        if outside:
            yield _not_in_placement(cloud, aggregate, outside)


def _not_in_placement(
    cloud: AuditedCloud,
    aggregate: Aggregate,
    outside: Mapping[str, Sequence[Provider]],
) -> Finding:
    """Return the finding on hosts, some of whose nodes may be members.

    :param outside: The compute nodes that are no members, by host.
    """
    is_locked = aggregate.uuid in cloud.locked
    spellings = _other_spellings(
        cloud, aggregate, (each for some in outside.values() for each in some)
    )
    # Without hyphens it is another aggregate in each database.
    differs_in_case = any('-' in spelling for spelling in spellings)
    partly = {
        host: f'{host} ({named("node", (node.name for node in nodes))})'
        for host, nodes in outside.items()
        if len(nodes) < len(cloud.nodes[host])
    }
    return Finding(
        'not-in-placement',
        Severity.ERROR if is_locked else Severity.WARNING,
        f'aggregate {aggregate.name}',
        'does not have '
        f'{listed(partly.get(host, host) for host in outside)} in Placement'
        + (
            ' until sync adds them, as Nova adds only one node of a compute '
            'service'
            if partly
            else ''
        )
        + (
            f'; there its uuid is written {listed(spellings)}'
            if spellings
            else ''
        ),
        'the aggregate is locked, but any server may land on them'
        if is_locked
        else 'servers that are sent to the aggregate cannot land on them',
        (
            Repair(commands.SYNC, safe=True),
            *([_RESPELL] if differs_in_case else ()),
        ),
        about=About.of(hosts=outside, aggregates=[aggregate.name]),
    )


def _other_spellings(
    cloud: AuditedCloud, aggregate: Aggregate, nodes: Iterable[Provider]
) -> list[str]:
    """Return how the uuid is written where it is another aggregate."""
    # A cloud file has the spelling as a name.
    names = cloud.snapshot.placement_aggregates
    written = {names.get(u, u) for node in nodes for u in node.aggregates}
    return sorted(
        each
        for each in written
        if each.replace('-', '').lower() == aggregate.uuid.replace('-', '')
    )


def through_a_child(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts that share what is shared with one of their child providers.

    Placement looks for sharing providers by the aggregates of a whole tree.
    """
    sharing: dict[str, list[Provider]] = {}
    for provider in cloud.snapshot.providers:
        if provider.is_sharing:
            for uuid in provider.aggregates:
                sharing.setdefault(uuid, []).append(provider)
    if not sharing:
        return
    for root, *children in trees(cloud.snapshot.providers).values():
        for child in children if root.host else ():
            others = {
                provider.name
                for uuid in child.aggregates - root.aggregates
                for provider in sharing.get(uuid, ())
                if provider not in (root, *children)
            }
            if others:
                yield Finding(
                    'shared-through-child',
                    Severity.INFO,
                    f'host {root.host}',
                    f'only its {named("provider", [child.name])} is in an '
                    f'aggregate with {listed(sorted(others))}',
                    'Placement offers what is shared there to all servers of '
                    'the host',
                    about=About.of(hosts=[root.host or '']),
                )


def not_in_nova(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find compute nodes that are in a host aggregate only in Placement.

    Sharing providers, and Placement aggregates without a host aggregate, are
    ignored, because Nova does not manage them.
    """
    aggregates = {a.uuid: a for a in cloud.snapshot.aggregates}
    # Most nodes are in aggregates of their host only.
    known = cloud.index.aggregates_of
    elsewhere = [
        (host, node)
        for host, nodes in cloud.nodes.items()
        for node in nodes
        if not node.aggregates <= known.get(host, frozenset())
    ]
    for host, node in sorted(elsewhere, key=lambda each: each[0]):
        for uuid in sorted(node.aggregates & aggregates.keys()):
            if host not in aggregates[uuid].hosts:
                yield Finding(
                    'not-in-nova',
                    Severity.WARNING,
                    f'host {host}',
                    'Placement has it in aggregate '
                    f'{aggregates[uuid].name}, but Nova does not',
                    'it is reserved for the servers of that aggregate, or '
                    'offered to them',
                    _either(cloud, aggregates[uuid], node),
                    about=About.of(
                        hosts=[host], aggregates=[aggregates[uuid].name]
                    ),
                )


def _either(
    cloud: AuditedCloud, aggregate: Aggregate, node: Provider
) -> tuple[Repair, ...]:
    """Return how to add a host in Nova, and how to remove it in Placement."""
    add = Repair(commands.add_hosts(aggregate, [node.host or '']))
    leave = Repair(commands.leave_aggregate(node, aggregate.uuid))
    # A host behind a lock stays behind it unless the operator decides.
    return (add, leave) if aggregate.uuid in cloud.locked else (leave, add)


def without_compute_node(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts in aggregates without a compute node in Placement."""
    if not cloud.nodes:
        return
    # Other findings are about these.
    others = {each.old for each in renamed_hosts.renamed(cloud.snapshot)}
    others |= unmapped_hosts.unmapped(cloud.snapshot).keys()
    by_host = cloud.index.by_host
    for host in sorted(by_host.keys() - cloud.nodes.keys() - others):
        for aggregate in by_host[host]:
            yield Finding(
                'host-without-compute-node',
                Severity.WARNING,
                f'aggregate {aggregate.name}',
                f'its host {host} has no compute node in Placement',
                'no server can land there, and a host that later gets this '
                'name is in the aggregate at once',
                (Repair(commands.remove_hosts(aggregate, [host])),),
                about=About.of(hosts=[host], aggregates=[aggregate.name]),
            )


def renamed(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts that aggregates have by the name that they had before."""
    for each in renamed_hosts.renamed(cloud.snapshot):
        names = [aggregate.name for aggregate in each.aggregates]
        yield Finding(
            'host-renamed',
            Severity.ERROR,
            f'host {each.new}',
            f'seems to be host {each.old} with another name: {each.old} is '
            f'{"down" if each.is_down else "gone"}, and '
            f'{named("aggregate", names)} '
            f'{plural(len(names), "has", "have")} only that name',
            f'the locks of {listed(names)} do not apply to it, and servers '
            'that are sent there do not find it',
            (Repair(each.commands),),
            about=About.of(hosts=[each.old, each.new], aggregates=names),
        )
