# SPDX-License-Identifier: Apache-2.0
"""Reads the state of Nova and Placement that sync needs."""

from collections.abc import Mapping
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex, tags
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.cloud.cloud import Cloud, Track, untracked
from isolate_aggregates_tools.domains import Projects
from isolate_aggregates_tools.placement.provider import Below, Provider


@dataclasses.dataclass(frozen=True)
class SyncSnapshot:
    """The state of Nova and Placement.

    :param nodes: The compute nodes that have a resource provider, with their
        traits and aggregates.
    :param problems: Inconsistencies, one sentence each.
    :param others: The other root providers that are members of aggregates, for
        example sharing providers.
    :param below: The child providers of compute nodes, and the providers that
        share with them, with a trait that an aggregate requires. Servers that
        use such a provider meet the requirement.
    :param domains: The projects of domains of aggregates, by id of the
        domain; None if a domain does not exist. Unknown ones are missing.
    :param unread: Why the domains could not be read; empty if they were.
    :param known_memberships: The uuids of the aggregates of each host, if they
        are known before.
    """

    index: AggregateIndex
    nodes: tuple[Provider, ...]
    traits: frozenset[str]
    problems: tuple[str, ...] = ()
    others: tuple[Provider, ...] = ()
    below: Below = dataclasses.field(default_factory=dict)
    domains: Projects = dataclasses.field(default_factory=dict)
    unread: str = ''
    known_memberships: Mapping[str, frozenset[str]] | None = None

    @property
    def memberships(self) -> Mapping[str, frozenset[str]]:
        """The uuids of the aggregates of each host."""
        if self.known_memberships is None:
            return self.index.aggregates_of
        return self.known_memberships


def read(cloud: Cloud, track: Track = untracked) -> SyncSnapshot:
    """Read the state of a cloud."""
    index = AggregateIndex(cloud.aggregates())
    known: Projects = {}
    unread = ''
    try:
        # After the aggregates, see projects.py.
        known = cloud.domain_projects(tools_domains.of_all(tuple(index)))
    except exception.IsolateAggregatesError as exc:
        unread = f'projects of domains cannot be updated: {exc}'
    roots = cloud.roots(track)
    traits = cloud.traits()
    others = [root for root in roots if root.host is None]
    return SyncSnapshot(
        index=index,
        nodes=tuple(root for root in roots if root.host is not None),
        traits=traits,
        problems=tuple(
            _stray(root.name)
            for root in others
            if marks.marked_traits(root.traits)
        ),
        others=tuple(root for root in others if root.aggregates),
        below=cloud.holders_below(traits & tags.all_required(index)),
        domains=known,
        unread=unread,
    )


def _stray(name: str) -> str:
    return (
        f'resource provider {name}: has traits that sync added, but Nova '
        'lists no compute node for it, so they stay; check that its cell can '
        'be reached, or delete the provider if the host is gone'
    )
