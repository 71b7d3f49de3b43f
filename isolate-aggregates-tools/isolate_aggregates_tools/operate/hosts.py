# SPDX-License-Identifier: Apache-2.0
"""Finds the compute nodes of hosts in Nova and Placement."""

from collections.abc import Iterable, Iterator

from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.compute.client import ComputeNode


def nodes(
    cloud: LiveCloud, hosts: Iterable[str]
) -> tuple[tuple[ComputeNode, ...], tuple[str, ...]]:
    """Return the compute nodes of hosts that have a resource provider.

    :returns: The nodes, sorted by host and name, and one sentence for each
        host or node that is missing in Nova or Placement.
    """
    host_names = frozenset(hosts)
    names = cloud.provider_names
    by_host: dict[str, list[ComputeNode]] = {host: [] for host in host_names}
    for node in _all_nodes(cloud):
        if node.host in host_names:
            by_host[node.host].append(node)
    matches = [node for some in by_host.values() for node in some]
    problems = [
        f'host {host}: Nova lists no compute node for it; start nova-compute '
        'there, or remove the host from the aggregate'
        for host in sorted(host_names)
        if not by_host[host]
    ]
    problems += [
        f'host {node.host}: Placement has no resource provider for its '
        f'compute node {node.name}; check the log of nova-compute there'
        for node in _sorted(matches)
        if node.uuid not in names
    ]
    in_placement = [node for node in matches if node.uuid in names]
    return tuple(_sorted(in_placement)), tuple(problems)


def _all_nodes(cloud: LiveCloud) -> Iterator[ComputeNode]:
    nodes = cloud.nova.compute_nodes()
    if nodes is not None:
        yield from nodes
        return
    # Nova is too old to return uuids. A provider has the name of its node,
    # which is also that of the host, except for bare metal.
    for uuid, name in cloud.provider_names.items():
        yield ComputeNode(uuid, name, name)


def _sorted(nodes: Iterable[ComputeNode]) -> list[ComputeNode]:
    return sorted(nodes, key=lambda node: (node.host, node.name))


def node_label(node: ComputeNode) -> str:
    """Return the name of a compute node for messages."""
    if node.name == node.host:
        return f'host {node.host}'
    return f'host {node.host} (node {node.name})'
