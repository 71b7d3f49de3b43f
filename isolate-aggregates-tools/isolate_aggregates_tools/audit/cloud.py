# SPDX-License-Identifier: Apache-2.0
"""The input of an audit, read before any check runs."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_config import cfg

from isolate_aggregates import filter_sets
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import LoadedFilter, Pipeline
from isolate_aggregates.filters.required_metadata import required_metadata
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX
from isolate_aggregates_tools import filter_keys
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.cloud import (
    Cloud,
    Survey,
    Track,
    untracked,
)
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.diagnosis.causes import Causes
from isolate_aggregates_tools.diagnosis.spelling.known import KnownNames
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.operate.sync import plan
from isolate_aggregates_tools.operate.sync.snapshot import read
from isolate_aggregates_tools.placement.provider import (
    Provider,
    below,
    helpers,
    nodes_by_host,
)
from isolate_aggregates_tools.repairs import outcome
from isolate_aggregates_tools.reservation_review import Review


@dataclasses.dataclass(frozen=True, kw_only=True)
class AuditedCloud(Survey):
    """The state and the configuration of a cloud.

    :param reservations: None if they are not known.
    """

    conf: cfg.ConfigOpts
    filters: tuple[LoadedFilter, ...]
    mirrors: tuple[LoadedFilter, ...]
    enabled: frozenset[str]
    reservations: Review | None = None

    @classmethod
    def read(
        cls,
        cloud: Cloud,
        conf: cfg.ConfigOpts,
        servers: bool = False,
        track: Track = untracked,
    ) -> 'AuditedCloud':
        """Read a cloud, optionally with the servers of all projects."""
        return cls.of(conf=conf, **vars(cloud.survey(servers, track)))

    @classmethod
    def of(
        cls, snapshot: Snapshot, conf: cfg.ConfigOpts, **more: Any
    ) -> 'AuditedCloud':
        """Return a cloud with its configuration."""
        filters = loading.load(conf)
        return cls(
            snapshot,
            conf=conf,
            filters=filters,
            mirrors=chain.mirrored(conf),
            enabled=filter_sets.enabled(filters, conf),
            **more,
        )

    def after(self, snapshot: Snapshot) -> 'AuditedCloud':
        """Return the cloud after a change."""
        traits = self.traits
        changed = dataclasses.replace(
            self,
            snapshot=snapshot,
            traits=None if traits is None else traits | snapshot.all_traits,
        )
        if snapshot.providers is self.snapshot.providers:
            vars(changed).update(
                nodes=self.nodes, _below=self._below, _helpers=self._helpers
            )
        return changed

    @property
    def index(self) -> AggregateIndex:
        return self.snapshot.index

    @property
    def required_by(self) -> Mapping[str, tuple[Aggregate, ...]]:
        return self.snapshot.required_by

    @lazy_property
    def pipeline(self) -> Pipeline:
        """The enabled filters, and those of Nova itself."""
        return Pipeline((*self.running, *self.mirrors))

    @property
    def running(self) -> tuple[LoadedFilter, ...]:
        """The enabled filters."""
        return tuple(f for f in self.filters if f.name in self.enabled)

    @lazy_property
    def names(self) -> KnownNames:
        """The names with which others are compared."""
        servers = self.servers.placed if self.servers else ()
        return KnownNames(
            self.snapshot,
            self.pipeline,
            Pipeline(self.filters),
            frozenset(server.project_id for server in servers),
        )

    @lazy_property
    def causes(self) -> Causes:
        """Finds why requests have no host, whatever is in use."""
        return Causes(self.snapshot, self.pipeline, self.names, self.traits)

    @lazy_property
    def requests(self) -> Requests:
        """Builds the requests of servers, which it may not have read."""
        snapshot = self.snapshot
        if self.servers is not None:
            # Servers may have images that others do not see.
            snapshot = dataclasses.replace(
                snapshot,
                servers=self.servers,
                images=tuple(self.servers.images.values()),
            )
        return Requests(SnapshotCloud(snapshot), self.conf, self.nova_releases)

    @lazy_property
    def required_metadata(self) -> frozenset[str]:
        """The keys of metadata that flavors require."""
        return frozenset(
            requirement.key
            for flavor in self.snapshot.flavors
            for requirement in required_metadata(flavor.extra_specs)
        )

    @lazy_property
    def locks(self) -> tuple[Lock, ...]:
        """All locks that the configured filters define."""
        return Pipeline(self.filters).locks(self.index)

    @lazy_property
    def locked(self) -> frozenset[str]:
        """The uuids of the aggregates with at least one lock."""
        return frozenset(
            a.uuid for lock in self.locks for a in lock.aggregates
        )

    @lazy_property
    def plan(self) -> plan.SyncPlan:
        """The changes that ``sync`` would make."""
        if self.traits in (None, self.snapshot.all_traits):
            return outcome.planned(self.snapshot, Pipeline(self.filters))
        state = read(SnapshotCloud(self.snapshot))
        return plan.make(
            dataclasses.replace(state, traits=self.traits), self.locks
        )

    @lazy_property
    def synced(self) -> tuple[tuple[Provider, frozenset[str]], ...]:
        """What ``sync`` changes, with its aggregates afterwards."""
        outcomes = self.plan.outcomes
        return tuple(
            (each, outcomes[each.uuid].aggregates)
            for each in (self.snapshot.providers if outcomes else ())
            if each.uuid in outcomes
        )

    @lazy_property
    def isolating(self) -> tuple[LoadedFilter, ...]:
        """The filters that read the traits that aggregates require."""
        return tuple(
            f for f in self.filters if filter_sets.reads(f, TRAIT_PREFIX)
        )

    @lazy_property
    def images_open(self) -> bool:
        """Whether the traits of images open isolated aggregates."""
        return not self.isolating or any(
            'image' in filter_keys.sources(entry.request_filter)
            for entry in self.isolating
        )

    @lazy_property
    def nodes(self) -> Mapping[str, tuple[Provider, ...]]:
        """The compute nodes by name of the compute service."""
        return nodes_by_host(self.snapshot.providers)

    @lazy_property
    def _below(self) -> Mapping[str, tuple[Provider, ...]]:
        return below(self.snapshot.providers)

    @lazy_property
    def _helpers(self) -> Mapping[str, tuple[Provider, ...]]:
        return helpers(self.snapshot.providers)

    @lazy_property
    def requiring(self) -> Mapping[str, Aggregate]:
        """The aggregates that require a trait, by uuid."""
        return {
            aggregate.uuid: aggregate
            for aggregates in self.required_by.values()
            for aggregate in aggregates
        }

    @lazy_property
    def holders(self) -> Mapping[str, list[tuple[Provider, Provider]]]:
        """The compute nodes, by trait that aggregates require.

        Each with a provider of its tree that has the trait.
        """
        found: dict[str, list[tuple[Provider, Provider]]] = {}
        for _, nodes in sorted(self.nodes.items()):
            for node in nodes:
                for provider in self.tree_of(node):
                    for trait in provider.traits & self.required_by.keys():
                        found.setdefault(trait, []).append((node, provider))
        return found

    @lazy_property
    def known_traits(
        self,
    ) -> dict[
        tuple[int, int], tuple[Flavor | None, Image | None, frozenset[str]]
    ]:
        """What flavors and images are known to require, by identity."""
        return {}

    def tree_of(self, node: Provider) -> tuple[Provider, ...]:
        """Return all providers of the tree of a compute node."""
        return node, *self._below.get(node.uuid, ())

    def serving(self, node: Provider) -> tuple[Provider, ...]:
        """Return all providers that servers on a compute node may use.

        Beside its tree, these are the providers that share with it.
        """
        return node, *self._helpers.get(node.uuid, ())
