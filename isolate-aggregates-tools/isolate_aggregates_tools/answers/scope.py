# SPDX-License-Identifier: Apache-2.0
"""Who is asked about, and which hosts a change of a cloud can matter to."""

from collections.abc import Callable, Iterable, Iterator
import dataclasses
import itertools
from typing import NamedTuple

import os_traits

from isolate_aggregates.aggregates import Aggregate, domains
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools import filter_keys
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.provider import (
    MAX_INT,
    Inventory,
    Provider,
)

# Servers of any flavor without extra specs, also of one that does not exist
# yet.
ANY_FLAVOR = Flavor('', vcpus=1, ram=1)
# The most projects that are asked about.
_PROJECTS = 20
# Nova's host filter that compares properties with metadata.
OF_IMAGES = 'AggregateImagePropertiesIsolation'
# Nova's own filters of projects.
_TENANT_FILTERS = ('tenant_aggregate', 'AggregateMultiTenancyIsolation')
_ENDLESS = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB')


class Asker(NamedTuple):
    """Servers that are alike, by the names of what they are made of.

    :param flavor: The name of the flavor; empty for any without extra specs.
    :param image: The name of the image; None for one without keys.
    :param project: The id of the project; None for one that owns nothing.
    """

    flavor: str
    image: str | None
    project: str | None

    @property
    def is_plain(self) -> bool:
        """Whether neither the image nor the project opens anything."""
        return self.image is None and self.project is None


def identity(thing: Flavor | Image) -> str:
    """Return what a flavor or an image is known by, whatever its name."""
    return thing.id or thing.name


def flavors(snapshot: Snapshot) -> tuple[Flavor, ...]:
    """Return the flavors to ask about."""
    return (*snapshot.flavors, ANY_FLAVOR)


def images(snapshot: Snapshot, pipeline: Pipeline) -> Iterator[Image | None]:
    """Yield the images to ask about: one of each kind that matters."""
    yield None
    declaration = pipeline.image_properties
    compared = (
        {key for each in snapshot.aggregates for key in each.metadata}
        if any(entry.name == OF_IMAGES for entry in pipeline.filters)
        else ()
    )
    kinds = set()
    for image in snapshot.images:
        kind = frozenset(
            (key, value)
            for key, value in image.properties.items()
            if key.startswith(xs.TRAIT_PREFIX)
            or declaration.has(key)
            or key in compared
        )
        if kind and (kind, image.owner) not in kinds:
            kinds.add((kind, image.owner))
            yield image


def projects(
    aggregates: Iterable[Aggregate], pipeline: Pipeline
) -> tuple[str | None, ...]:
    """Return the projects to ask about: those that aggregates name."""
    return first_projects(named_projects(aggregates, pipeline))


def first_projects(named: Iterable[str]) -> tuple[str | None, ...]:
    """Return the projects to ask about, of those that are named."""
    return (None, *sorted({*named})[:_PROJECTS])


def project_prefixes(*pipelines: Pipeline) -> tuple[str, ...]:
    """Return the prefixes of the metadata keys that name projects."""
    entries = [entry for some in pipelines for entry in some.filters]
    prefixes = (
        prefix
        for entry in entries
        for prefix in filter_keys.of_projects(entry.request_filter)
    )
    by_nova = any(entry.name in _TENANT_FILTERS for entry in entries)
    return tuple(
        dict.fromkeys((*prefixes, *([domains.TENANTS] if by_nova else [])))
    )


def named_projects(
    aggregates: Iterable[Aggregate], pipeline: Pipeline
) -> frozenset[str]:
    """Return the ids of all projects that aggregates name."""
    return frozenset().union(*map(project_naming(pipeline), aggregates))


def project_naming(
    pipeline: Pipeline,
) -> Callable[[Aggregate], frozenset[str]]:
    """Return what returns the ids of the projects that an aggregate names."""
    filters = [entry.request_filter for entry in pipeline.filters]
    prefixes = project_prefixes(pipeline)
    owner_keys = {
        filter_keys.of_reservations(each).owner_key for each in filters
    }

    def named(aggregate: Aggregate) -> frozenset[str]:
        return frozenset(
            project.strip()
            for key, value in aggregate.metadata.items()
            if key in owner_keys or (prefixes and key.startswith(prefixes))
            for project in value.split(',')
        ) - {''}

    return named


def completed(snapshot: Snapshot, hosts: Iterable[str]) -> Snapshot:
    """Return the snapshot with a compute node for each host.

    A host that has none yet may get one at any time.
    """
    missing = sorted(set(hosts) - {p.host for p in snapshot.providers})
    if not missing:
        return snapshot
    return dataclasses.replace(
        snapshot,
        providers=(
            *snapshot.providers,
            *(
                Provider(
                    uuid=f'compute node of {host}',
                    name=host,
                    host=host,
                    inventories={
                        name: Inventory(MAX_INT) for name in _ENDLESS
                    },
                    aggregates=snapshot.index.aggregates_of.get(
                        host, frozenset()
                    ),
                )
                for host in missing
            ),
        ),
    )


def affected(before: Snapshot, after: Snapshot) -> frozenset[str] | None:
    """Return the hosts whose use a change may affect; None for all."""
    if (
        before.flavors is not after.flavors
        or before.images is not after.images
        or before.traits is not after.traits
    ):
        return None
    hosts: set[str] = set()
    for old, new in changed_aggregates(before, after):
        for aggregate in filter(None, (old, new)):
            hosts |= aggregate.hosts
    for was, now in zip(before.providers, after.providers, strict=True):
        if was is not now and was.host:
            hosts.add(was.host)
    return frozenset(hosts)


def decided_alike(before: Snapshot, after: Snapshot) -> bool:
    """Return whether requests of equal flavors are decided alike.

    They are if only flavors, or providers, differ, and these neither in which
    hosts they are nor in whether Placement excludes them as disabled.
    """
    return all(
        getattr(before, field.name) is getattr(after, field.name)
        for field in dataclasses.fields(Snapshot)
        if field.name not in ('flavors', 'providers', 'traits')
    ) and all(
        was is now or (was and now and _node(was) == _node(now))
        for was, now in itertools.zip_longest(
            before.providers, after.providers
        )
    )


def _node(provider: Provider) -> tuple[str | None, bool]:
    is_disabled = os_traits.COMPUTE_STATUS_DISABLED in provider.traits
    return provider.host, is_disabled


def changed_aggregates(
    before: Snapshot, after: Snapshot
) -> Iterator[tuple[Aggregate | None, Aggregate | None]]:
    """Yield the aggregates that differ, as they were and as they are."""
    was, now = (
        {aggregate.uuid: aggregate for aggregate in snapshot.aggregates}
        for snapshot in (before, after)
    )
    for uuid in dict.fromkeys((*was, *now)):
        old, new = was.get(uuid), now.get(uuid)
        if old is not new:
            yield old, new


def among(snapshot: Snapshot, hosts: frozenset[str]) -> Snapshot:
    """Return the snapshot without the compute nodes of other hosts."""
    uuids: set[str] = set()
    providers = []
    for provider in snapshot.providers:
        # Parents come before their children.
        if (
            provider.parent in uuids
            if provider.parent
            else not provider.host or provider.host in hosts
        ):
            uuids.add(provider.uuid)
            providers.append(provider)
    return dataclasses.replace(
        snapshot,
        providers=tuple(providers),
        aggregates=tuple(
            aggregate
            if aggregate.hosts <= hosts
            else dataclasses.replace(aggregate, hosts=aggregate.hosts & hosts)
            for aggregate in snapshot.aggregates
        ),
        traits=snapshot.traits.union(*(p.traits for p in snapshot.providers)),
    )
