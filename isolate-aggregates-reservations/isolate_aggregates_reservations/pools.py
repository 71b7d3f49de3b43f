# SPDX-License-Identifier: Apache-2.0
"""The pool: the aggregate of hosts for reservations, and its lock.

Nova mirrors its members to Placement, but does not retry; so that is done here
too.
"""

from collections.abc import Callable, Collection, Iterable
import contextlib
import dataclasses
from functools import partial
import itertools

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_reservations import names
from isolate_aggregates_reservations.state import ObservedState
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.placement import edits, inventories


@dataclasses.dataclass(frozen=True)
class PoolChange:
    """One change of a host or the pool, which can be repeated.

    :param words: What it does, in the imperative.
    """

    words: str
    carry_out: Callable[[], object]


def carry_out(actions: Iterable[PoolChange]) -> None:
    for action in actions:
        action.carry_out()


def advice(pool: Aggregate | None) -> str:
    """Return what to do about a pool that may be Blazar's."""
    tag = shell.command(
        shell.Kind.AGGREGATE_SET,
        *shell.option('--property', f'{names.POOL_KEY}=true'),
        names=[pool.name if pool else 'POOL'],
    )
    return (
        'set [blazar:physical:host] aggregate_freepool_name to another name, '
        f'or if no Blazar uses it run {tag}'
    )


def may_be_blazars(pool: Aggregate) -> bool:
    """Return whether a pool has hosts and no part of the lock."""
    return bool(pool.hosts) and not (
        names.POOL_METADATA.keys() & pool.metadata
    )


def missing_metadata(pool: Aggregate) -> dict[str, str]:
    """Return the parts of the lock that a pool does not have."""
    return {
        key: value
        for key, value in names.POOL_METADATA.items()
        if pool.metadata.get(key) != value
    }


def lock(store: ReservationStore, pool: Aggregate | None) -> None:
    """Lock the pool, which is created if there is none."""
    if pool is None:
        store.compute.create_aggregate(store.pool)
        pool = existing(store)
    missing = missing_metadata(pool)
    if missing:
        store.compute.set_metadata(pool, missing)


def existing(store: ReservationStore) -> Aggregate:
    """Return the pool.

    :raises NotFound: if it has just been deleted.
    """
    pool = store.read_pool()
    if pool is None:
        raise tools_errors.NotFound(
            'aggregate', store.pool, 'Nova', advice='run this command again'
        )
    return pool


def add(store: ReservationStore, pool: Aggregate | None, service: str) -> None:
    try:
        store.compute.add_host(pool or existing(store), service)
    except exception.ServiceConflict:
        if service not in existing(store).hosts:
            raise


def remove(
    store: ReservationStore, pool: Aggregate, service: str, root: str
) -> None:
    store.compute.remove_host(pool, service)
    remove_mirrored(store, pool, root)


def is_mirrored(store: ReservationStore, pool: Aggregate, root: str) -> bool:
    """Return whether Placement has a compute node in the pool."""
    try:
        return pool.uuid in store.placement.aggregates(root)
    except exception.ServiceNotFound:
        return False


def mirror(store: ReservationStore, pool: Aggregate | None, root: str) -> None:
    uuid = (pool or existing(store)).uuid
    edits.change_aggregates(
        store.placement, root, lambda before: before | {uuid}
    )


def remove_mirrored(
    store: ReservationStore, pool: Aggregate, root: str
) -> None:
    # Unless the compute node is gone.
    with contextlib.suppress(exception.ServiceNotFound):
        edits.change_aggregates(
            store.placement, root, lambda before: before - {pool.uuid}
        )


def delete_pool(store: ReservationStore) -> None:
    """Delete the pool and the trait of reservation providers.

    :raises InvalidRequest: if the pool has hosts or other metadata, or there
        are reservations.
    """
    carry_out(to_delete_pool(store))
    with contextlib.suppress(exception.ServiceConflict):
        # Another pool may have hosts.
        inventories.delete_class(store.placement, names.MARKER)


def to_delete_pool(
    store: ReservationStore, disabled: Collection[str] = ()
) -> list[PoolChange]:
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
            PoolChange(
                f'delete aggregate {pool.name} with its lock',
                partial(store.compute.delete_aggregate, pool),
            )
        )
    if names.TRAIT in edits.known_traits(store.placement):
        actions.append(
            PoolChange(
                f'delete trait {names.TRAIT}',
                partial(edits.delete_trait, store.placement, names.TRAIT),
            )
        )
    return actions


def _refuse_use(state: ObservedState, disabled: Collection[str]) -> None:
    pool = state.pool
    if pool is None:
        return
    hosts_to_disable = [state.find_host(name) for name in disabled]
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
        delete = shell.command(shell.Kind.AGGREGATE_DELETE, names=[pool.name])
        return (
            'was not created by isolate-aggregates: it has no '
            f'{names.POOL_KEY}; run {delete} if nothing uses it'
        )
    others = {key for key in pool.metadata if not names.is_of_pool(key)}
    if others:
        keys = (shell.option('--property', key) for key in sorted(others))
        unset = shell.command(
            shell.Kind.AGGREGATE_UNSET,
            *itertools.chain.from_iterable(keys),
            names=[pool.name],
        )
        return (
            f'has other metadata: {text.listed(others)}; run {unset} if '
            'nothing uses it'
        )
    return None
