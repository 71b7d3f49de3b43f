# SPDX-License-Identifier: Apache-2.0
"""Makes hosts ones for reservations, and ordinary ones again.

A host for reservations is in the pool, an aggregate that is locked to
ordinary servers, and has a reservation provider with a trait. The fence comes
first and goes last.
"""

from collections.abc import Iterable

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.placement import inventories, providers
from isolate_aggregates.reservations import names, rooms, slots
from isolate_aggregates.reservations.compute import Node
from isolate_aggregates.reservations.site import Site
from isolate_aggregates.reservations.world import Host, World

_NAMES_IN_A_SENTENCE = 5


def enable_host(site: Site, name: str) -> Host:
    """Make a compute node a host for reservations, unless it is one.

    :param site: The cloud.
    :param name: Its hypervisor hostname, or the name of its compute service.
    :returns: The host.
    :raises NotFound: if Nova has no such compute node.
    :raises ReservationHostError: if ordinary servers run there; it is then
        not in the pool, unless it was before.
    :raises ServiceError: if it can not be done; run again, it completes.
    """
    world = site.read()
    node = _node(world, name)
    if node.name not in world.providers:
        raise exception.ReservationHostError(
            node.name, 'has no resource provider in Placement yet'
        )
    found = world.hosts.get(node.name)
    if not (found and found.is_ready):
        _refuse_ordinary(site, node, found)
    pool = _locked_pool(site, world.pool)
    joins = node.service not in pool.hosts
    if joins:
        _join(site, pool, node.service)
    # Nova tells Placement, but does not try twice.
    providers.change_aggregates(
        site.placement, node.uuid, lambda before: before | {pool.uuid}
    )
    if not (found and found.is_ready):
        try:
            # Now that no others come.
            _refuse_ordinary(site, node, found)
        except exception.ReservationHostError:
            if joins:
                _leave(site, pool, node.service, node.uuid)
            raise
        _create_provider(site, node, found)
    return site.read().hosts[node.name]


def disable_host(site: Site, name: str) -> None:
    """Make a host for reservations an ordinary one again, unless it is one.

    :param site: The cloud.
    :param name: Its hypervisor hostname, or the name of its compute service.
    :raises NotFound: if there is no such host.
    :raises ReservationHostError: if reservations have slots there.
    :raises ServiceError: if it can not be done; run again, it completes.
    """
    _disable(site, name)


@slots.retried
def _disable(site: Site, name: str) -> None:
    world = site.read()
    host = _host(world, name)
    if host is None:
        # An ordinary one, if there is such a host at all.
        node = _node(world, name)
        if world.pool:
            _unmirror(site, world.pool, node.uuid)
        return
    if host.slots:
        raise exception.ReservationHostError(
            host.name,
            f'has slots of {_list("reservation", host.slots)}; end them, or '
            'move them away with repair after disabling the compute service',
        )
    if host.provider:
        _close(site, host)
        try:
            inventories.delete_provider(site.placement, host.provider)
        except exception.ServiceConflict:
            raise exception.ReservationHostError(
                host.name, 'has a reservation provider that is in use'
            ) from None
    if world.pool and host.in_pool and host.service:
        _leave(site, world.pool, host.service, host.root)
    elif world.pool:
        _unmirror(site, world.pool, host.root)


def list_hosts(site: Site) -> list[Host]:
    """Return the hosts in the pool and those with reservation providers.

    :param site: The cloud.
    :returns: The hosts by name; those in the pool that were not enabled, or
        not in full, are not ``is_enabled``.
    :raises ServiceError: if it can not be read.
    """
    return list(site.read().hosts.values())


def _close(site: Site, host: Host) -> None:
    """Take the trait, so that nobody puts slots there any more.

    It is taken at the generation at which there were none, and whoever wants
    to put some there does so at a generation at which it had the trait.
    """
    if not host.is_ready or host.provider is None:
        return
    path = f'/resource_providers/{host.provider}/traits'
    site.placement.send(
        'PUT',
        path,
        {
            'resource_provider_generation': host.generation,
            'traits': [],
        },
    )


def _node(world: World, name: str) -> Node:
    """Return a compute node by either of its names."""
    for found in world.nodes:
        if found.name == name:
            return found
    served = [found for found in world.nodes if found.service == name]
    if len(served) > 1:
        raise exception.NotUnique(
            'compute service', name, [found.name for found in served]
        )
    if not served:
        raise exception.NotFound('compute node', name, 'Nova')
    return served[0]


def _host(world: World, name: str) -> Host | None:
    if name in world.hosts:
        # Nova need not know it any more.
        return world.hosts[name]
    served = [node for node in world.nodes if node.service == name]
    return world.hosts.get(served[0].name) if len(served) == 1 else None


def _refuse_ordinary(site: Site, node: Node, host: Host | None) -> None:
    found = rooms.ordinary_consumers(
        site, node.uuid, host.provider if host else None
    )
    if found:
        raise exception.ReservationHostError(
            node.name,
            f'runs servers without a reservation ({_list("", found)}); '
            'move or delete them first',
        )


def _locked_pool(site: Site, pool: Aggregate | None) -> Aggregate:
    """Return the pool, made and locked if need be."""
    providers.create_trait(site.placement, names.TRAIT)
    if pool is None:
        site.compute.create_aggregate(site.pool)
        pool = site.read_pool()
        if pool is None:
            raise exception.NotFound('aggregate', site.pool, 'Nova')
    lacks = {
        key: value
        for key, value in names.POOL_METADATA.items()
        if pool.metadata.get(key) != value
    }
    if lacks:
        site.compute.set_metadata(pool, lacks)
    return pool


def _join(site: Site, pool: Aggregate, service: str) -> None:
    try:
        site.compute.add_host(pool, service)
    except exception.ServiceConflict:
        now = site.read_pool()
        if now is None or service not in now.hosts:
            raise
        # Somebody else was faster.


def _leave(site: Site, pool: Aggregate, service: str, root: str) -> None:
    site.compute.remove_host(pool, service)
    _unmirror(site, pool, root)


def _unmirror(site: Site, pool: Aggregate, root: str) -> None:
    try:
        providers.change_aggregates(
            site.placement, root, lambda before: before - {pool.uuid}
        )
    except exception.ServiceNotFound:
        # A compute node that is gone.
        return


def _create_provider(site: Site, node: Node, host: Host | None) -> None:
    """Make the reservation provider with its trait."""
    uuid = host.provider if host else None
    if uuid is None:
        uuid = names.provider_uuid(node.uuid)
        inventories.create_provider(
            site.placement, names.provider(node.name), uuid, node.uuid
        )
    try:
        providers.change_traits(
            site.placement, uuid, lambda before: before | {names.TRAIT}
        )
    except exception.ServiceNotFound:
        raise exception.ReservationHostError(
            node.name,
            f'can not get the resource provider {names.provider(node.name)}, '
            'as there is another of that name',
        ) from None


def _list(kind: str, found: Iterable[str]) -> str:
    """Name some things in a sentence."""
    everything = sorted(found)
    shown = ', '.join(everything[:_NAMES_IN_A_SENTENCE])
    more = len(everything) - _NAMES_IN_A_SENTENCE
    if more > 0:
        shown += f' and {more} more'
    if not kind:
        return shown
    return f'{kind}{"s" if len(everything) > 1 else ""} {shown}'
