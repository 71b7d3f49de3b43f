# SPDX-License-Identifier: Apache-2.0
"""Recognizes hosts that are mapped to no cell of Nova."""

from collections.abc import Mapping

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.provider import Provider


def unmapped(snapshot: Snapshot) -> Mapping[str, Provider]:
    """Return the hosts that Nova lists without a compute node.

    Nova lists the compute services of each cell, but a compute node only if
    its host is mapped to a cell. Placement does not know of cells. See
    ``nova/api/openstack/compute/hypervisors.py``.

    :returns: The resource provider of each, by name of the compute service.
        It has the same name, at least up to the domain, and is no compute
        node that Nova lists.
    """
    nodes = {provider.host for provider in snapshot.providers}
    hosts = [s.host for s in snapshot.services or () if s.host not in nodes]
    if not hosts:
        return {}
    unlisted: dict[str, list[Provider]] = {}
    for provider in snapshot.providers:
        if not (provider.host or provider.parent or provider.is_sharing):
            unlisted.setdefault(_short(provider.name), []).append(provider)
    found = {}
    for host in sorted(hosts):
        alike = unlisted.get(_short(host), [])
        same = [each for each in alike if each.name == host] or alike
        if len(same) == 1:
            found[host] = same[0]
    return found


def _short(host: str) -> str:
    return host.partition('.')[0]
