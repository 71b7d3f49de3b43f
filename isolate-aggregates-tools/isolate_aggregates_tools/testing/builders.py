# SPDX-License-Identifier: Apache-2.0
"""Test data for filters: requests with all parts, providers and clouds.

Ids and uuids are derived from names, as in a cloud file, so that they are the
same in each run. Use :func:`dataclasses.replace` to set other fields.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import types

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.derived import derived_uuid
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates.testing import builders
from isolate_aggregates.testing.builders import canonical_uuid
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import ComputeService
from isolate_aggregates_tools.placement import names
from isolate_aggregates_tools.placement.provider import (
    MAX_INT,
    Inventory,
    Provider,
)
from isolate_aggregates_tools.request import Request

# Parents before children.
Tree = tuple[Provider, ...]

# The default inventories of a compute node, enough for a few servers.
_COMPUTE_NODE = types.MappingProxyType(
    {'VCPU': 16, 'MEMORY_MB': 32768, 'DISK_GB': 500}
)
# The minimum values of the fields of an inventory.
_LEAST = types.MappingProxyType(
    {'total': 1, 'reserved': 0, 'min_unit': 1, 'max_unit': 1, 'step_size': 1}
)


def make_request(
    flavor: Flavor | None = None,
    image: Image | None = None,
    *,
    project_id: str | None = 'demo',
    scheduler_hints: Mapping[str, str | Iterable[str]] | None = None,
    requested_host: ComputeHost | None = None,
) -> Request:
    """Return a request for one server.

    :param flavor: The flavor; None for that of :func:`make_flavor`.
    :param image: The image; None for a server without one.
    :param project_id: The id of the project of the server.
    :param scheduler_hints: The scheduler hints, with one or several values
        each.
    :param requested_host: The requested host, from the method
        ``requested_host(name)`` of a snapshot.
    """
    plain = builders.make_request(
        flavor,
        image,
        project_id=project_id,
        scheduler_hints=scheduler_hints,
        requested_host=requested_host,
    )
    return Request(
        **{
            each.name: getattr(plain, each.name)
            for each in dataclasses.fields(plain)
        }
    )


def make_provider(
    name: str,
    *,
    inventories: Mapping[str, int | Inventory] | None = None,
    usages: Mapping[str, int] | None = None,
    traits: Iterable[str] = (),
    aggregates: Iterable[Aggregate | str] = (),
    uuid: str | None = None,
) -> Provider:
    """Return a resource provider that is not a compute node.

    :param name: Its name.
    :param inventories: Inventories by resource class; a number is the total.
    :param usages: Used amounts by resource class.
    :param traits: Its traits.
    :param aggregates: The aggregates it is a member of in Placement. Those
        without a host aggregate are given by uuid.
    :param uuid: Its uuid; None to derive one from the name.
    :raises ValueError: if Placement would reject it: a trait or resource class
        is invalid, a value of an inventory is out of range, there is usage
        without an inventory, or its uuid or that of an aggregate is invalid.
    """
    provider = Provider(
        uuid=derived_uuid('provider', name)
        if uuid is None
        else canonical_uuid(f'provider {name}', uuid),
        name=name,
        inventories={
            resource_class: Inventory(amount)
            if isinstance(amount, int)
            else amount
            for resource_class, amount in (inventories or {}).items()
        },
        usages=dict(usages or {}),
        traits=frozenset(traits),
        aggregates=frozenset(
            canonical_uuid(f'an aggregate of provider {name}', aggregate)
            if isinstance(aggregate, str)
            else aggregate.uuid
            for aggregate in aggregates
        ),
    )
    _check(provider)
    return provider


def make_compute_node(
    name: str,
    *,
    host: str | None = None,
    inventories: Mapping[str, int | Inventory] | None = None,
    usages: Mapping[str, int] | None = None,
    traits: Iterable[str] = (),
    aggregates: Iterable[Aggregate | str] = (),
    uuid: str | None = None,
) -> Provider:
    """Return the root provider of a host.

    :param name: Its name.
    :param host: Its compute service; None for one with the same name.
    :param inventories: Inventories by resource class; a number is the total.
        None for 16 VCPU, 32768 MEMORY_MB and 500 DISK_GB.
    :param usages: Used amounts by resource class.
    :param traits: Its traits.
    :param aggregates: Aggregates it is a member of in Placement, besides the
        host aggregates of its host: :func:`make_snapshot` adds those.
    :param uuid: Its uuid; None to derive one from the name.
    """
    provider = make_provider(
        name,
        inventories=_COMPUTE_NODE if inventories is None else inventories,
        usages=usages,
        traits=traits,
        aggregates=aggregates,
        uuid=uuid,
    )
    return dataclasses.replace(provider, host=host or name)


def make_tree(root: Provider, *children: Provider | Tree) -> Tree:
    """Return a provider tree.

    :param root: Its root.
    :param children: The direct children of the root, or trees of them.
    """
    return (root, *_below(root, children))


def make_snapshot(
    aggregates: Iterable[Aggregate] = (),
    providers: Iterable[Provider | Tree] = (),
    *,
    flavors: Iterable[Flavor] = (),
    images: Iterable[Image] = (),
    mirror: bool = True,
    origin: str = 'test',
    traits: Iterable[str] = (),
    resource_classes: Iterable[str] = (),
    services: Iterable[ComputeService] | None = None,
) -> Snapshot:
    """Return a cloud.

    :param aggregates: The host aggregates.
    :param providers: The root providers, or whole trees.
    :param flavors: The flavors.
    :param images: The images.
    :param mirror: Whether Nova has mirrored the host aggregates to Placement.
        Then each host of an aggregate must have a compute node.
    :param origin: The name of the cloud in messages.
    :param traits: Further custom traits that exist, for those that no provider
        has. Standard traits always exist.
    :param resource_classes: Further custom resource classes that exist, for
        those without an inventory. Standard classes always exist.
    :param services: The compute services; if unknown, all are up and enabled.
    :raises ValueError: if an aggregate has an unknown host, two providers or
        two aggregates have the same uuid, or a trait or resource class is
        invalid.
    """
    aggregates = tuple(aggregates)
    flat = _flat(providers)
    _check_distinct('aggregates', aggregates)
    _check_distinct('providers', flat)
    if mirror:
        _check_hosts(aggregates, flat)
        flat = tuple(_mirrored(provider, aggregates) for provider in flat)
    snapshot = Snapshot(
        origin=origin,
        aggregates=aggregates,
        providers=flat,
        flavors=tuple(flavors),
        images=tuple(images),
        services=None if services is None else tuple(services),
    )
    return declare(snapshot, traits, resource_classes)


def declare(
    snapshot: Snapshot,
    traits: Iterable[str] = (),
    resource_classes: Iterable[str] = (),
) -> Snapshot:
    """Return a cloud with more traits and resource classes.

    :param traits: Traits that exist, for those that no provider has.
    :param resource_classes: Resource classes that exist, for those without an
        inventory.
    :raises ValueError: if a trait or resource class is invalid.
    """
    traits, resource_classes = set(traits), set(resource_classes)
    _check_names(snapshot.origin, traits, resource_classes)
    return dataclasses.replace(
        snapshot,
        traits=snapshot.traits | traits,
        resource_classes=snapshot.resource_classes | resource_classes,
    )


def _flat(providers: Iterable[Provider | Tree]) -> Tree:
    return tuple(
        provider
        for item in providers
        for provider in ((item,) if isinstance(item, Provider) else item)
    )


def _below(
    parent: Provider, children: Iterable[Provider | Tree]
) -> Iterator[Provider]:
    for child in children:
        root, *rest = _flat([child])
        yield dataclasses.replace(root, parent=parent.uuid)
        yield from rest


def _mirrored(provider: Provider, aggregates: Iterable[Aggregate]) -> Provider:
    own = {a.uuid for a in aggregates if provider.host in a.hosts}
    return dataclasses.replace(provider, aggregates=provider.aggregates | own)


def _check_distinct(
    kind: str, things: Iterable[Aggregate] | Iterable[Provider]
) -> None:
    names = collections.defaultdict(list)
    for thing in things:
        names[thing.uuid].append(thing.name)
    for uuid, same in names.items():
        if len(same) > 1:
            raise ValueError(
                f'the {kind} {" and ".join(same)} have the same uuid {uuid}'
            )


def _check_names(
    where: str, traits: Iterable[str], resource_classes: Iterable[str]
) -> None:
    """Reject misspelled names, with which a test would prove nothing."""
    problems = (
        *map(names.wrong_trait, sorted(traits)),
        *map(names.wrong_resource_class, sorted(resource_classes)),
    )
    for problem in filter(None, problems):
        raise ValueError(f'{where}: {problem}')


def _check(provider: Provider) -> None:
    """Reject a provider that Placement would reject."""
    where = f'provider {provider.name}'
    classes = {*provider.inventories, *provider.usages}
    _check_names(where, provider.traits, classes)
    for resource_class in sorted(classes - provider.inventories.keys()):
        raise ValueError(
            f'{where}: {resource_class} is used but has no inventory'
        )
    for resource_class, inventory in provider.inventories.items():
        for field, least in _LEAST.items():
            value = getattr(inventory, field)
            if not least <= value <= MAX_INT:
                raise ValueError(
                    f'{where}: the {field} of {resource_class} must be from '
                    f'{least} to {MAX_INT}, not {value}'
                )


def _check_hosts(aggregates: Iterable[Aggregate], providers: Tree) -> None:
    """Reject misspelled hosts, with which a test would prove nothing."""
    hosts = {provider.host for provider in providers}
    for aggregate in aggregates:
        unknown = sorted(aggregate.hosts - hosts)
        if unknown:
            raise ValueError(
                f'aggregate {aggregate.name} has {", ".join(unknown)}, but '
                'no compute node is of such a host'
            )
