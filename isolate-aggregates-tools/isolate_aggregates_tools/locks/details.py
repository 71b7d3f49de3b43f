# SPDX-License-Identifier: Apache-2.0
"""Collects all details of a lock, an aggregate or a host."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import filter_sets
from isolate_aggregates.aggregates import Aggregate, Lock, tags
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters import loading
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX
from isolate_aggregates.text import named
from isolate_aggregates_tools import errors, marks
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.documents import Names
from isolate_aggregates_tools.locks import documents, reach
from isolate_aggregates_tools.locks.key_holders import (
    flavors_drawn_to,
    key_holders,
)
from isolate_aggregates_tools.locks.overview import (
    overview,
    usage_by_host,
)
from isolate_aggregates_tools.operate import names
from isolate_aggregates_tools.placement.provider import (
    Provider,
    helpers,
    nodes_by_host,
    trees,
)

_Details = documents.LockDetails | documents.Aggregate | documents.Host

KINDS = ('lock', 'aggregate', 'host')


class Details:
    """Finds locks, aggregates and hosts, and returns their details."""

    def __init__(
        self,
        cloud: Cloud,
        locks: Iterable[Lock],
        conf: cfg.ConfigOpts,
    ) -> None:
        self._cloud = cloud
        self._locks = tuple(locks)
        self._conf = conf
        self._sources = conf[ia_conf.GROUP].trait_sources

    def find(self, name: str, kind: str | None = None) -> _Details:
        """Return the details of the object with a name.

        :param name: The metadata key or the trait of a lock; the name, uuid or
            numeric id of an aggregate; or the name of a host or compute node.
        :param kind: One of :data:`KINDS`; None for any.
        """
        finders: dict[str, Callable[[str], Any]] = {
            'lock': self._lock,
            'aggregate': self._aggregate,
            'host': self._host,
        }
        kinds = (kind,) if kind else KINDS
        objects = {each: finders[each](name) for each in kinds}
        matches = [each for each in kinds if objects[each] is not None]
        what = kind or 'lock, aggregate or host'
        if not matches:
            origin = self._cloud.snapshot.origin
            raise errors.NotFound(what, name, origin, self._names(kinds))
        if len(matches) > 1:
            choices = [f'{name} --kind {each}' for each in matches]
            raise errors.NotUnique(what, name, choices)
        tell: dict[str, Callable[[Any], _Details]] = {
            'lock': self._of_lock,
            'aggregate': self._of_aggregate,
            'host': self._of_host,
        }
        [each] = matches
        return tell[each](objects[each])

    def _names(self, kinds: Collection[str]) -> Iterator[str]:
        """Yield the names of all objects of some kinds."""
        snapshot = self._cloud.snapshot
        if 'lock' in kinds:
            yield from (lock.name for lock in self._locks)
        if 'aggregate' in kinds:
            yield from (a.name for a in snapshot.aggregates)
        if 'host' in kinds:
            yield from (p.host for p in snapshot.providers if p.host)

    def _of_lock(self, lock: Lock) -> documents.LockDetails:
        [summary] = overview(self._cloud.snapshot, [lock])
        return documents.LockDetails(
            name=lock.name,
            aggregates=tuple(sorted(a.name for a in lock.aggregates)),
            hosts=summary.hosts,
            unusable_hosts=tuple(sorted(summary.unusable)),
            capacity=summary.capacity,
            **self._keys([lock]),
            problems=tuple(self._problems(lock.aggregates)),
        )

    def _of_aggregate(self, aggregate: Aggregate) -> documents.Aggregate:
        whole = Lock('', '', (aggregate,))
        [summary] = overview(self._cloud.snapshot, [whole])
        locks = self._on([aggregate])
        return documents.Aggregate(
            name=aggregate.name,
            uuid=aggregate.uuid,
            id=aggregate.id,
            availability_zone=zone_of(aggregate),
            metadata=dict(sorted(aggregate.metadata.items())),
            locks=tuple(lock.name for lock in locks),
            hosts=summary.hosts,
            unusable_hosts=tuple(sorted(summary.unusable)),
            capacity=summary.capacity,
            **self._keys(locks),
            sent_flavors=self._sent(aggregate),
            problems=tuple(self._problems([aggregate])),
        )

    def _of_host(self, host: str) -> documents.Host:
        snapshot = self._cloud.snapshot
        members = snapshot.index.by_host.get(host, ())
        locks = self._on(members)
        nodes = nodes_by_host(snapshot.providers).get(host, ())
        traits: set[str] = set().union(*(node.traits for node in nodes))
        below = [p for node in nodes for p in self._trees[node.uuid][1:]]
        return documents.Host(
            name=host,
            nodes=tuple(node.name for node in nodes),
            aggregates=tuple(sorted(a.name for a in members)),
            locks=tuple(lock.name for lock in locks),
            traits=tuple(sorted(t for t in traits if not marks.is_mark(t))),
            traits_below={
                provider.name: tuple(sorted(provider.traits))
                for provider in below
                if provider.traits
            },
            marked_traits=tuple(sorted(marks.marked_traits(traits))),
            capacity=dict(
                sorted(usage_by_host(snapshot).get(host, {}).items())
            ),
            **self._keys(locks),
            problems=(*self._stopped(host), *self._problems(members, host)),
        )

    @lazy_property
    def _trees(self) -> dict[str, list[Provider]]:
        return trees(self._cloud.snapshot.providers)

    @lazy_property
    def _helpers(self) -> Mapping[str, tuple[Provider, ...]]:
        return helpers(self._cloud.snapshot.providers)

    def _lock(self, name: str) -> Lock | None:
        for lock in self._locks:
            if name in (lock.name, lock.name.removeprefix(lock.family)):
                return lock
        return None

    def _aggregate(self, name: str) -> Aggregate | None:
        snapshot = self._cloud.snapshot
        try:
            return names.aggregate(snapshot.aggregates, name, snapshot.origin)
        except errors.NotFound:
            return None

    def _host(self, name: str) -> str | None:
        snapshot = self._cloud.snapshot
        hosts = {p.host for p in snapshot.providers if p.host}
        if name in hosts | snapshot.index.by_host.keys():
            return name
        for provider in snapshot.providers:
            if provider.host and provider.name == name:
                return provider.host
        return None

    def _on(self, aggregates: Iterable[Aggregate]) -> list[Lock]:
        """Return the locks on at least one of the aggregates."""
        uuids = {aggregate.uuid for aggregate in aggregates}
        return [
            lock
            for lock in self._locks
            if any(a.uuid in uuids for a in lock.aggregates)
        ]

    def _keys(self, locks: Iterable[Lock]) -> dict[str, Any]:
        """Return the flavors and images that open all of the locks.

        This is known only for locks that are opened by traits.
        """
        all_locks = list(locks)
        if not all_locks or any(
            lock.family != TRAIT_PREFIX for lock in all_locks
        ):
            return {'flavors': None, 'images': None}
        holders = [
            key_holders(
                self._cloud,
                lock.name.removeprefix(lock.family),
                self._sources,
            )
            for lock in all_locks
        ]
        unread = holders[0].unread
        return {
            'flavors': _in_all([[f.name for f in o.flavors] for o in holders]),
            'images': (f'not read: {unread}',)
            if unread
            else _in_all([[i.name for i in o.images] for o in holders]),
        }

    def _sent(self, aggregate: Aggregate) -> Names | None:
        """Return the flavors that metadata sends to an aggregate."""
        flavors = flavors_drawn_to(self._cloud, aggregate, self._conf)
        if flavors is None:
            return None
        return tuple(sorted(flavor.name for flavor in flavors))

    @lazy_property
    def _unenforced(self) -> Mapping[str, str]:
        """Why the locks of aggregates are not enforced, by their uuids."""
        filters = loading.load(self._conf)
        enabled = filter_sets.enabled(filters, self._conf)
        return {
            aggregate.uuid: unused.why
            for unused in filter_sets.unused_tags(
                filters, enabled, self._cloud.index
            )
            for aggregate in unused.aggregates
        }

    def _stopped(self, host: str) -> Iterator[str]:
        """Yield why the compute service of a host takes no servers."""
        snapshot = self._cloud.snapshot
        for hosts, state in (
            (snapshot.down_hosts, 'down'),
            (snapshot.disabled_hosts, 'disabled'),
        ):
            if host in hosts:
                yield f'the compute service of host {host} is {state}'

    def _problems(
        self, aggregates: Iterable[Aggregate], only: str | None = None
    ) -> Iterator[str]:
        nodes = nodes_by_host(self._cloud.snapshot.providers)
        for aggregate in aggregates:
            if why := self._unenforced.get(aggregate.uuid):
                yield f'aggregate {aggregate.name} is locked, but {why}'
            if not aggregate.hosts:
                yield f'aggregate {aggregate.name} has no hosts'
            for host in sorted(aggregate.hosts):
                if only not in (None, host):
                    continue
                if host not in nodes:
                    yield f'host {host} has no compute node in Placement'
                for node in nodes.get(host, ()):
                    yield from self._wrong(aggregate, host, node)

    def _wrong(
        self, aggregate: Aggregate, host: str, node: Provider
    ) -> Iterator[str]:
        """Yield why the locks of an aggregate do not work on a host.

        As in Placement, a host has a trait if any provider of its tree has it,
        or one that shares with it.
        """
        if aggregate.uuid not in node.aggregates:
            consequence = (
                'the locks of the aggregate have no effect there'
                if self._on([aggregate])
                else 'servers that are sent there cannot use it'
            )
            yield (
                f'host {host} is in aggregate {aggregate.name}, but its '
                f'resource provider {node.name} is not, so that {consequence}'
            )
        missing_traits = []
        for trait in sorted(tags.required_traits(aggregate)):
            serving = node, *self._helpers.get(node.uuid, ())
            holders = [p for p in serving if trait in p.traits]
            if not holders:
                missing_traits.append(trait)
            elif node not in holders:
                yield from self._below(host, holders, trait)
        if missing_traits:
            yield (
                f'host {host} lacks {", ".join(missing_traits)}, so that '
                f'servers for aggregate {aggregate.name} cannot use it'
            )

    def _below(
        self, host: str, holders: list[Provider], trait: str
    ) -> Iterator[str]:
        keys = key_holders(self._cloud, trait, self._sources)
        queries = reach.requests(trait, self._cloud.flavors, keys.images)
        if not keys.unread and reach.unreached(holders, trait, queries):
            names = named('provider', (p.name for p in holders))
            yield (
                f'host {host} has {trait} on {names}, and no flavor that '
                'requires it also requests any of their resources, so no '
                'server finds it there'
            )


def _in_all(lists: list[list[str]]) -> Names:
    first, *others = lists
    return tuple(
        sorted(n for n in first if all(n in other for other in others))
    )
