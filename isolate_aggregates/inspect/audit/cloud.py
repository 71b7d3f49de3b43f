# SPDX-License-Identifier: Apache-2.0
"""What an audit looks at: plain values, read beforehand."""

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any

from oslo_config import cfg

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock, tags
from isolate_aggregates.cloud.cloud import Cloud
from isolate_aggregates.cloud.saved import SnapshotCloud
from isolate_aggregates.cloud.servers import Servers
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.cloud.track import Track, untracked
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.loading import LoadedFilter
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.operate.sync import plan
from isolate_aggregates.operate.sync.snapshot import read
from isolate_aggregates.operate.sync.target import Target
from isolate_aggregates.placement.provider import (
    Provider,
    nodes_by_host,
    trees,
)
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX


@dataclasses.dataclass(frozen=True)
class AuditedCloud:
    """A cloud and its configuration at one moment.

    :param snapshot: Aggregates, resource providers, flavors and images.
    :param filters: The request filters that are configured, on or off.
    :param mirrored: The filters that repeat what Nova itself adds.
    :param enabled: The names of those that are switched on.
    :param nova: The newest microversion of Nova; None if it is not known.
    :param placement: The newest microversion of Placement; None if it is not
        known.
    :param traits: All traits that Placement knows; None if only the standard
        ones and those that some provider has are known.
    :param resource_classes: Names of all resource classes; None if only those
        that some provider has are known.
    :param servers: The servers; None if they are not checked.
    :param nova_releases: The releases of Nova that it may be, oldest first;
        none if that is not known.
    """

    snapshot: Snapshot
    filters: tuple[LoadedFilter, ...]
    mirrored: tuple[LoadedFilter, ...]
    enabled: frozenset[str]
    nova: str | None = None
    placement: str | None = None
    traits: frozenset[str] | None = None
    resource_classes: frozenset[str] | None = None
    servers: Servers | None = None
    nova_releases: tuple[int, ...] = ()

    @classmethod
    def read(
        cls,
        cloud: Cloud,
        conf: cfg.ConfigOpts,
        servers: bool = False,
        track: Track = untracked,
    ) -> 'AuditedCloud':
        """Read a cloud, and return it together with its configuration.

        :param conf: A configuration with our options registered.
        :param servers: Whether to read the servers of all projects too.
        :raises IsolateAggregatesError: if anything cannot be read.
        """
        return cls.of(conf=conf, **vars(cloud.survey(servers, track)))

    @classmethod
    def of(
        cls, snapshot: Snapshot, conf: cfg.ConfigOpts, **more: Any
    ) -> 'AuditedCloud':
        """Return a cloud together with its configuration.

        :param conf: A configuration with our options registered.
        :param more: What else is known, by the names of the fields.
        :raises ConfigError: if the configuration cannot work.
        :raises FilterError: if a filter is missing or cannot be loaded.
        """
        filters = loading.load(conf)
        return cls(
            snapshot,
            filters,
            loading.mirrored(conf),
            loading.enabled(filters, conf),
            **more,
        )

    @property
    def index(self) -> AggregateIndex:
        """The index of the host aggregates."""
        return self.snapshot.index

    @functools.cached_property
    def pipeline(self) -> Pipeline:
        """The filters that are switched on, and those of Nova itself."""
        return Pipeline((*self.running, *self.mirrored))

    @property
    def running(self) -> tuple[LoadedFilter, ...]:
        """The filters that are switched on."""
        return tuple(f for f in self.filters if f.name in self.enabled)

    @functools.cached_property
    def locks(self) -> tuple[Lock, ...]:
        """All locks that the configured filters know of."""
        return Pipeline(self.filters).locks(self.index)

    @functools.cached_property
    def locked(self) -> frozenset[str]:
        """Uuids of the aggregates with some lock."""
        return frozenset(
            a.uuid for lock in self.locks for a in lock.aggregates
        )

    @functools.cached_property
    def plan(self) -> plan.SyncPlan:
        """What a sync would do."""
        known = read(SnapshotCloud(self.snapshot))
        if self.traits is not None:
            known = dataclasses.replace(known, traits=self.traits)
        return plan.make(known, self.locks)

    @functools.cached_property
    def targets(self) -> Mapping[str, Target]:
        """What a sync gives each compute node, by uuid of the provider."""
        return {target.provider: target for target in self.plan.targets}

    @functools.cached_property
    def isolating(self) -> tuple[LoadedFilter, ...]:
        """The filters that say that they read traits of aggregates."""
        return tuple(f for f in self.filters if f.reads(TRAIT_PREFIX))

    @functools.cached_property
    def images_open(self) -> bool:
        """Whether the traits of an image open isolated aggregates."""
        return not self.isolating or any(
            'image' in loaded.key_sources for loaded in self.isolating
        )

    @functools.cached_property
    def nodes(self) -> Mapping[str, tuple[Provider, ...]]:
        """The compute nodes by the name of their compute service."""
        return nodes_by_host(self.snapshot.providers)

    @functools.cached_property
    def trees(self) -> Mapping[str, tuple[Provider, ...]]:
        """The providers of each tree, by the uuid of its root."""
        found = trees(self.snapshot.providers)
        return {root: tuple(tree) for root, tree in found.items()}

    @functools.cached_property
    def all_traits(self) -> frozenset[str]:
        """Every trait that some provider has."""
        return frozenset().union(*(p.traits for p in self.snapshot.providers))

    @functools.cached_property
    def required_by(self) -> Mapping[str, tuple[Aggregate, ...]]:
        """The aggregates that require a trait, by trait."""
        found: dict[str, list[Aggregate]] = {}
        for aggregate in self.snapshot.aggregates:
            for trait in tags.required_traits(aggregate):
                found.setdefault(trait, []).append(aggregate)
        return {trait: tuple(members) for trait, members in found.items()}

    def tree_of(self, node: Provider) -> tuple[Provider, ...]:
        """Return all providers of the tree of a compute node."""
        return self.trees[node.uuid]
