# SPDX-License-Identifier: Apache-2.0
"""Enables hosts for reservations, and disables them.

A host for reservations is a member of the pool, an aggregate with a lock
against ordinary servers, and has a reservation provider with a trait. The host
is added to the pool first and removed from it last, so that ordinary servers
are kept out all the time.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
import contextlib
import dataclasses
from functools import partial
import logging

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.reservations import errors, names, slots
from isolate_aggregates.reservations.compute import Node
from isolate_aggregates.reservations.slots import retried
from isolate_aggregates.reservations.state import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.tools import errors as tools_errors
from isolate_aggregates.tools.placement import edits, generations, inventories

LOG = logging.getLogger(__name__)

_DELETE = 'openstack resource provider delete'


@dataclasses.dataclass(frozen=True)
class Action:
    """One change of a host or the pool, which can be repeated.

    :param words: What it does, in the imperative.
    """

    words: str
    carry_out: Callable[[], object]


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
    _carry_out(_enabling(store, state, node, host))
    return store.read().hosts[node.name]


def to_enable(store: ReservationStore, name: str) -> list[Action]:
    """Return what is to be done to enable a host; see :func:`enable_host`."""
    return list(_enabling(store, *read_enablable(store, name)))


def _carry_out(actions: Iterable[Action]) -> None:
    for action in actions:
        action.carry_out()


def _enabling(
    store: ReservationStore,
    state: ObservedState,
    node: Node,
    host: ReservationHost | None,
) -> Iterator[Action]:
    pool = state.pool
    joins = not (pool and node.service in pool.hosts)
    if pool is None:
        yield Action(
            f'create aggregate {store.pool} with a lock',
            partial(_lock_pool, store, None),
        )
    elif missing_metadata(pool):
        yield Action(
            f'lock aggregate {pool.name}', partial(_lock_pool, store, pool)
        )
    if joins:
        yield Action(
            f'add it to aggregate {store.pool}',
            partial(_add_to_pool, store, pool, node.service),
        )
    if not (pool and _is_mirrored(store, pool, node.uuid)):
        # Nova mirrors the membership to Placement, but does not retry.
        yield Action(
            f'add it to aggregate {store.pool} in Placement',
            partial(_mirror, store, pool, node.uuid),
        )
    if not (host and host.is_ready and host.is_marked):
        yield Action(
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
            f'earlier compute node has its name; run {_DELETE} {provider} '
            'once no server uses it',
        )
    host = state.hosts.get(node.name)
    if not (host and host.is_ready):
        _refuse_ordinary(store, node, host)
    _refuse_foreign(node, state.pool)
    if lease := _lease_of(state, node.service):
        raise errors.ReservationHostError(
            node.name,
            f'cannot join the pool {store.pool}, because it is in aggregate '
            f'{lease.name}, as hosts of a lease of Blazar are; wait until the '
            'lease ends, or if the aggregate is left of one run openstack '
            f'aggregate remove host {lease.name} {node.service}',
        )
    if host and host.provider and not (host.is_ready or host.in_pool):
        # A host joins the pool before it gets its reservation provider.
        raise errors.ReservationHostError(
            node.name,
            f'cannot join the pool {store.pool}, because it has a reservation '
            'provider that was not created here: it may be a host of Blazar, '
            f'which would reserve the same capacity; run {_DELETE} '
            f'{host.provider} if no Blazar uses it',
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
    _carry_out(to_disable(store, name))


def to_disable(store: ReservationStore, name: str) -> list[Action]:
    state, root, host = _read_disablable(store, name)
    actions = []
    if host and host.provider:
        actions.append(
            Action(
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
            Action(
                f'remove it from aggregate {pool.name}',
                partial(store.compute.remove_host, pool, service),
            )
        )
    if service or _is_mirrored(store, pool, root):
        actions.append(
            Action(
                f'remove it from aggregate {pool.name} in Placement',
                partial(_remove_mirrored, store, pool, root),
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
    host = _find_host(state, name)
    if host is None:
        # _find_node raises NotFound if there is none.
        return state, _find_node(state, name).uuid, None
    _refuse_slots(host)
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


def _refuse_slots(host: ReservationHost) -> None:
    if host.slots:
        owners = text.named('reservation', host.slots)
        raise errors.ReservationHostError(
            host.name,
            f'has slots of {owners}; run reservation repair --from '
            f'{host.name} and migrate the servers that are still there, or '
            'run reservation end with each of them',
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
            f'host of Blazar; {_pool_advice(pool)}',
        )


def _pool_advice(pool: Aggregate | None) -> str:
    """Return what to do about a pool that may be Blazar's."""
    name = pool.name if pool else '<pool>'
    return (
        'set [blazar:physical:host] aggregate_freepool_name to another name, '
        'or if no Blazar uses it run openstack aggregate set --property '
        f'{names.POOL_KEY}=true {name}'
    )


def delete_pool(store: ReservationStore) -> None:
    """Delete the pool and the trait of reservation providers.

    :raises InvalidRequest: if the pool has hosts or other metadata, or there
        are reservations.
    """
    _carry_out(to_delete_pool(store))
    with contextlib.suppress(exception.ServiceConflict):
        # Another pool may have hosts.
        inventories.delete_class(store.placement, names.MARKER)


def to_delete_pool(
    store: ReservationStore, disabled: Collection[str] = ()
) -> list[Action]:
    """Return what is to be done to delete the pool.

    :param disabled: The names of hosts to regard as disabled already.
    """
    state = store.read()
    _refuse_use(state, disabled)
    actions = []
    if pool := state.pool:
        # Safe if a host is added meanwhile: Nova refuses to delete an
        # aggregate that has hosts.
        actions.append(
            Action(
                f'delete aggregate {pool.name} with its lock',
                partial(store.compute.delete_aggregate, pool),
            )
        )
    if names.TRAIT in edits.known_traits(store.placement):
        actions.append(
            Action(
                f'delete trait {names.TRAIT}',
                partial(edits.delete_trait, store.placement, names.TRAIT),
            )
        )
    return actions


def _refuse_use(state: ObservedState, disabled: Collection[str]) -> None:
    pool = state.pool
    if pool is None:
        return
    hosts_to_disable = [_find_host(state, name) for name in disabled]
    services = {
        host.service
        for host in state.hosts.values()
        if host.provider and host not in hosts_to_disable
    }
    lost_services = {
        host.service for host in hosts_to_disable if host and host.service
    } - services
    problem = _reason_to_keep(state, pool, pool.hosts - lost_services)
    if problem:
        raise tools_errors.InvalidRequest(
            f'Pool {pool.name} cannot be deleted, because it {problem}.'
        )


def _reason_to_keep(
    state: ObservedState, pool: Aggregate, hosts: Collection[str]
) -> str | None:
    if hosts:
        return (
            f'has hosts: {text.listed(hosts)}; run reservation host set '
            '--disable with each of them'
        )
    reservations = {*state.records.reservations, *state.records.problems}
    if reservations:
        return (
            f'is needed for {text.named("reservation", reservations)}; run '
            'reservation end with each of them'
        )
    if names.POOL_KEY not in pool.metadata:
        return (
            'was not created by isolate-aggregates: it has no '
            f'{names.POOL_KEY}; run openstack aggregate delete {pool.name} if '
            'nothing uses it'
        )
    others = pool.metadata.keys() - {
        *names.POOL_METADATA,
        names.CLEANING_KEY,
    }
    if others:
        unset = ' '.join(f'--property {key}' for key in sorted(others))
        return (
            f'has other metadata: {text.listed(others)}; run openstack '
            f'aggregate unset {unset} {pool.name} if nothing uses it'
        )
    return None


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
            advice='run openstack hypervisor list',
        )
    return nodes[0]


def _find_host(state: ObservedState, name: str) -> ReservationHost | None:
    if name in state.hosts:
        # It may be gone from Nova.
        return state.hosts[name]
    nodes = [node for node in state.nodes if node.service == name]
    return state.hosts.get(nodes[0].name) if len(nodes) == 1 else None


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
    if pool and may_be_blazars(pool):
        raise errors.ReservationHostError(
            node.name,
            f'cannot join the pool {pool.name}, which has hosts but no lock: '
            'it may belong to Blazar, and the lock would keep out the servers '
            f'of Blazar; {_pool_advice(pool)}',
        )


def may_be_blazars(pool: Aggregate) -> bool:
    """Return whether a pool has hosts and no part of the lock."""
    return bool(pool.hosts) and not (
        names.POOL_METADATA.keys() & pool.metadata
    )


def _lock_pool(store: ReservationStore, pool: Aggregate | None) -> None:
    if pool is None:
        store.compute.create_aggregate(store.pool)
        pool = _existing_pool(store)
    missing = missing_metadata(pool)
    if missing:
        store.compute.set_metadata(pool, missing)


def _existing_pool(store: ReservationStore) -> Aggregate:
    pool = store.read_pool()
    if pool is None:
        raise tools_errors.NotFound(
            'aggregate', store.pool, 'Nova', advice='run this command again'
        )
    return pool


def missing_metadata(pool: Aggregate) -> dict[str, str]:
    return {
        key: value
        for key, value in names.POOL_METADATA.items()
        if pool.metadata.get(key) != value
    }


def _add_to_pool(
    store: ReservationStore, pool: Aggregate | None, service: str
) -> None:
    try:
        store.compute.add_host(pool or _existing_pool(store), service)
    except exception.ServiceConflict:
        if service not in _existing_pool(store).hosts:
            raise
        # Another client added it first.


def remove_from_pool(
    store: ReservationStore, pool: Aggregate, service: str, root: str
) -> None:
    store.compute.remove_host(pool, service)
    _remove_mirrored(store, pool, root)


def _is_mirrored(store: ReservationStore, pool: Aggregate, root: str) -> bool:
    """Return whether Placement has a compute node in the pool."""
    try:
        return pool.uuid in store.placement.aggregates(root)
    except exception.ServiceNotFound:
        return False


def _mirror(
    store: ReservationStore, pool: Aggregate | None, root: str
) -> None:
    uuid = (pool or _existing_pool(store)).uuid
    edits.change_aggregates(
        store.placement, root, lambda before: before | {uuid}
    )


def _remove_mirrored(
    store: ReservationStore, pool: Aggregate, root: str
) -> None:
    # Unless the compute node is gone.
    with contextlib.suppress(exception.ServiceNotFound):
        edits.change_aggregates(
            store.placement, root, lambda before: before - {pool.uuid}
        )


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
            pool = _existing_pool(store)
            remove_from_pool(store, pool, node.service, node.uuid)
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
        raise errors.ReservationHostError(
            node.name,
            f'cannot get the resource provider {name}, because another '
            'provider has that name; run openstack resource provider list '
            f'--name {name}, and {_DELETE} with it if nothing uses it',
        ) from None
