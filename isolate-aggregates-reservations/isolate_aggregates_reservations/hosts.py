# SPDX-License-Identifier: Apache-2.0
"""Enables hosts for reservations, and disables them.

A host for reservations is a member of the pool, an aggregate with a lock
against ordinary servers, and has a reservation provider with a trait. The host
is added to the pool first and removed from it last, so that ordinary servers
are kept out all the time.
"""

from collections.abc import Collection, Iterator
from functools import partial

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_reservations import errors, names, pools, slots
from isolate_aggregates_reservations.compute import Node
from isolate_aggregates_reservations.slots import retried
from isolate_aggregates_reservations.state import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.placement import edits, generations, inventories


def enable_host(store: ReservationStore, name: str) -> ReservationHost:
    """Make a compute node a host for reservations, unless it is one.

    :param name: Its hypervisor hostname, or the name of its compute service.
    :raises ReservationHostError: if ordinary servers run there, or the
        aggregate is in use for another purpose; the host is then not added to
        the pool.
    """
    return enable(store, *read_enablable(store, name))


def enable(
    store: ReservationStore,
    state: ObservedState,
    node: Node,
    host: ReservationHost | None,
) -> ReservationHost:
    """Do what is missing until a host can have slots; see read_enablable."""
    pools.carry_out(_enabling(store, state, node, host))
    return store.read().hosts[node.name]


def to_enable(store: ReservationStore, name: str) -> list[pools.PoolChange]:
    """Return what is to be done to enable a host; see :func:`enable_host`."""
    return list(_enabling(store, *read_enablable(store, name)))


def _enabling(
    store: ReservationStore,
    state: ObservedState,
    node: Node,
    host: ReservationHost | None,
) -> Iterator[pools.PoolChange]:
    pool = state.pool
    joins = not (pool and node.service in pool.hosts)
    if pool is None:
        yield pools.PoolChange(
            f'create aggregate {store.pool} with a lock',
            partial(pools.lock, store, None),
        )
    elif pools.missing_metadata(pool):
        yield pools.PoolChange(
            f'lock aggregate {pool.name}', partial(pools.lock, store, pool)
        )
    if joins:
        yield pools.PoolChange(
            f'add it to aggregate {store.pool}',
            partial(pools.add, store, pool, node.service),
        )
    if not (pool and pools.is_mirrored(store, pool, node.uuid)):
        # Nova mirrors the membership to Placement, but does not retry.
        yield pools.PoolChange(
            f'add it to aggregate {store.pool} in Placement',
            partial(pools.mirror, store, pool, node.uuid),
        )
    if not (host and host.is_ready and host.is_marked):
        yield pools.PoolChange(
            'create its resource provider for slots',
            partial(_create_provider, store, node, host, joins),
        )


def read_enablable(
    store: ReservationStore, name: str
) -> tuple[ObservedState, Node, ReservationHost | None]:
    """Return what enabling needs; raise if the host cannot be enabled."""
    state = store.read()
    node = _find_node(state, name)
    provider = state.providers.get(node.name)
    if provider != node.uuid:
        raise errors.ReservationHostError(
            node.name,
            'has no resource provider in Placement yet; run this command '
            'again once its nova-compute has created one'
            if provider is None
            else 'has no resource provider in Placement, because that of an '
            f'earlier compute node has its name; run {_delete(provider)} '
            'once no server uses it',
        )
    host = state.hosts.get(node.name)
    if not (host and host.is_ready):
        _refuse_ordinary(store, node, host)
    _refuse_foreign(node, state.pool)
    if lease := _lease_of(state, node.service):
        leave = shell.command(
            shell.Kind.AGGREGATE_REMOVE_HOST, names=[lease.name, node.service]
        )
        raise errors.ReservationHostError(
            node.name,
            f'cannot join the pool {store.pool}, because it is in aggregate '
            f'{lease.name}, as hosts of a lease of Blazar are; wait until the '
            f'lease ends, or if the aggregate is left of one run {leave}',
        )
    if host and host.provider and not (host.is_ready or host.in_pool):
        # A host joins the pool before it gets its reservation provider.
        raise errors.ReservationHostError(
            node.name,
            f'cannot join the pool {store.pool}, because it has a reservation '
            'provider that was not created here: it may be a host of Blazar, '
            'which would reserve the same capacity; run '
            f'{_delete(host.provider)} if no Blazar uses it',
        )
    return state, node, host


def _lease_of(state: ObservedState, service: str) -> Aggregate | None:
    """Return the lease for which Blazar has taken a host out of the pool.

    Blazar leaves hosts in the pool if it reserves only parts of them.
    """
    if state.pool and service in state.pool.hosts:
        return None
    for lease in state.leases:
        if service in lease.hosts:
            return lease
    return None


@retried
def disable_host(store: ReservationStore, name: str) -> None:
    """Disable a host for reservations, unless it is an ordinary one.

    :raises ReservationHostError: if reservations have slots there, or it may
        be a host of Blazar.
    """
    pools.carry_out(to_disable(store, name))


def to_disable(store: ReservationStore, name: str) -> list[pools.PoolChange]:
    state, root, host = _read_disablable(store, name)
    actions = []
    if host and host.provider:
        actions.append(
            pools.PoolChange(
                'delete its resource provider for slots',
                partial(_delete_provider, store, host),
            )
        )
    pool = state.pool
    if pool is None:
        return actions
    service = host and _leaves_pool(state, host) and host.service
    if service:
        actions.append(
            pools.PoolChange(
                f'remove it from aggregate {pool.name}',
                partial(store.compute.remove_host, pool, service),
            )
        )
    if service or pools.is_mirrored(store, pool, root):
        actions.append(
            pools.PoolChange(
                f'remove it from aggregate {pool.name} in Placement',
                partial(pools.remove_mirrored, store, pool, root),
            )
        )
    return actions


def _read_disablable(
    store: ReservationStore, name: str
) -> tuple[ObservedState, str, ReservationHost | None]:
    """Return what disabling needs; raise if the host cannot be disabled.

    :returns: The state, the uuid of the compute node, and the host; None for
        an ordinary one.
    """
    state = store.read()
    host = state.find_host(name)
    if host is None:
        # _find_node raises NotFound if there is none.
        return state, _find_node(state, name).uuid, None
    if host.slots:
        _refuse_slots(host, _ending(store, state, host))
    _refuse_unknown(host, state.pool)
    return state, host.root, host


def _leaves_pool(state: ObservedState, host: ReservationHost) -> bool:
    """Return whether disabling a host removes its service from the pool.

    Other nodes of the service may still be for reservations.
    """
    return host.in_pool and not any(
        other.service == host.service and other.provider
        for other in state.hosts.values()
        if other.name != host.name
    )


def _ending(
    store: ReservationStore, state: ObservedState, host: ReservationHost
) -> frozenset[str]:
    """Return the reservations on a host that have ended but are not over."""
    now = store.now()
    records = state.records.reservations
    return frozenset(
        name
        for name in host.slots
        if name in records and records[name].has_ended(now)
    )


def _refuse_slots(host: ReservationHost, ending: Collection[str]) -> None:
    """Refuse to disable a host with slots.

    :param ending: The reservations that have ended but are not over.
    """
    ways = []
    living = host.slots.keys() - ending
    if ending:
        whose = text.plural(len(ending), 'its', 'their')
        ways.append(
            f'run {shell.Kind.RESERVATION_RECONCILE} until {whose} servers '
            'are deleted'
        )
    if living:
        leave = shell.command(
            shell.Kind.RESERVATION_REPAIR, *shell.option('--from', host.name)
        )
        ways.append(
            f'run {leave} and migrate the servers that are still there, or '
            f'run {shell.Kind.RESERVATION_END} with each of them'
        )
    what = [
        f'{state}{text.named("reservation", some)}'
        for state, some in (('the ended ', ending), ('', living))
        if some
    ]
    raise errors.ReservationHostError(
        host.name, f'has slots of {" and of ".join(what)}; {"; ".join(ways)}'
    )


def _refuse_unknown(host: ReservationHost, pool: Aggregate | None) -> None:
    """Refuse to disable a host that was not enabled here.

    Blazar's reservation providers have the same name, and no trait.
    """
    is_ours = (
        host.in_pool and pool and names.POOL_METADATA.keys() & pool.metadata
    )
    if not host.is_ready and not is_ours:
        raise errors.ReservationHostError(
            host.name,
            'was not enabled here and is in no locked pool, so it may be a '
            f'host of Blazar; {pools.advice(pool)}',
        )


def list_hosts(store: ReservationStore) -> list[ReservationHost]:
    """Return the hosts in the pool and those with reservation providers.

    :returns: The hosts, sorted by name. A host that is in the pool without
        having been enabled completely has a false ``is_enabled``.
    """
    return list(store.read().hosts.values())


def _delete_provider(store: ReservationStore, host: ReservationHost) -> None:
    """Delete the reservation provider of a host.

    First its trait, so that no more slots are added: it is removed with the
    generation at which there were no slots, and slots are written only with a
    generation at which the provider had the trait. So one of two concurrent
    writers fails.
    """
    assert host.provider
    if host.is_ready:
        generations.replace(
            store.placement, host.provider, 'traits', [], host.generation
        )
    try:
        inventories.delete_provider(store.placement, host.provider)
    except exception.ServiceConflict:
        raise errors.ReservationHostError(
            host.name,
            'has a reservation provider that was just used; run the command '
            'again, which names what is there',
        ) from None


def _find_node(state: ObservedState, name: str) -> Node:
    """Find a compute node by its hypervisor hostname or compute service."""
    for node in state.nodes:
        if node.name == name:
            return node
    nodes = [node for node in state.nodes if node.service == name]
    if len(nodes) > 1:
        raise tools_errors.NotUnique(
            'compute service', name, [node.name for node in nodes]
        )
    if not nodes:
        raise tools_errors.NotFound(
            'compute node',
            name,
            'Nova',
            advice=f'run {shell.Kind.HYPERVISOR_LIST}',
        )
    return nodes[0]


def _refuse_ordinary(
    store: ReservationStore, node: Node, host: ReservationHost | None
) -> None:
    consumers = store.ordinary_consumers(
        node.uuid, host.provider if host else None
    )
    if consumers:
        raise errors.ordinary_servers(node.name, consumers)


def _refuse_foreign(node: Node, pool: Aggregate | None) -> None:
    """Refuse to lock a pool that may belong to Blazar's own plugins."""
    if pool and pools.may_be_blazars(pool):
        raise errors.ReservationHostError(
            node.name,
            f'cannot join the pool {pool.name}, which has hosts but no lock: '
            'it may belong to Blazar, and the lock would keep out the servers '
            f'of Blazar; {pools.advice(pool)}',
        )

        # Another client added it first.


def _create_provider(
    store: ReservationStore,
    node: Node,
    host: ReservationHost | None,
    has_joined: bool,
) -> None:
    """Create the reservation provider of a host, or let it leave the pool.

    :param has_joined: Whether it has just joined the pool.
    """
    try:
        # Check again: a server may have come before the host joined.
        _refuse_ordinary(store, node, host)
        _provide(store, node, host.provider if host else None)
    except errors.ReservationHostError:
        if has_joined:
            pool = pools.existing(store)
            pools.remove(store, pool, node.service, node.uuid)
        raise


def _provide(store: ReservationStore, node: Node, uuid: str | None) -> None:
    edits.create_trait(store.placement, names.TRAIT)
    name = names.provider(node.name)
    if uuid is None:
        uuid = names.provider_uuid(node.uuid)
        inventories.create_provider(store.placement, name, uuid, node.uuid)
    try:
        slots.mark(store.placement, uuid)
        edits.change_traits(
            store.placement, uuid, lambda before: before | {names.TRAIT}
        )
    except exception.ServiceNotFound:
        find = shell.command(
            shell.Kind.PROVIDER_LIST, *shell.option('--name', name)
        )
        raise errors.ReservationHostError(
            node.name,
            f'cannot get the resource provider {name}, because another '
            f'provider has that name; run {find}, and '
            f'{shell.Kind.PROVIDER_DELETE} with it if nothing uses it',
        ) from None


def _delete(provider: str) -> str:
    return shell.command(shell.Kind.PROVIDER_DELETE, names=[provider])
