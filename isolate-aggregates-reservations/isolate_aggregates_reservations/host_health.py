# SPDX-License-Identifier: Apache-2.0
"""Finds what is wrong with the hosts for reservations, and mends it."""

from collections.abc import Mapping
import contextlib
import datetime
from functools import partial
import logging

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_reservations import errors, hosts, names, pools
from isolate_aggregates_reservations.capacity import HostClaims
from isolate_aggregates_reservations.parts import clause, tried
from isolate_aggregates_reservations.state import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates_reservations.store import ReservationStore, Unreadable
from isolate_aggregates_tools import shell

LOG = logging.getLogger(__name__)


def mend_hosts(
    store: ReservationStore, state: ObservedState, now: datetime.datetime
) -> tuple[ObservedState, list[Unreadable]]:
    """Restore what enabling hosts once set.

    Ordinary servers are kept out first. Nothing is restored if another
    aggregate is locked as a pool, because the hosts may belong to that one, or
    if the pool may be Blazar's, as after an import. While Blazar has leases, a
    host that is not in the pool is left alone: Blazar may have taken it out.
    The aggregate of a lease exists before and after its hosts are in it. A
    host that cannot be mended is named, and stops no other.

    :returns: The state after that, and what is still wrong.
    """
    defects = _find_defects(store, state)
    pool = state.pool
    problems: list[Unreadable] = []
    failed: Mapping[str, exception.IsolateAggregatesError] = {}
    if (
        defects
        and pool
        and not pools.may_be_blazars(pool)
        and not _other_pools(store)
    ):
        missing = pools.missing_metadata(pool)
        if missing:
            unlocked = tried(
                [pool],
                partial(store.compute.set_metadata, metadata=missing),
            )
            problems += [
                errors.PoolError(
                    pool.name, f'could not be locked again: {clause(exc)}'
                )
                for exc in unlocked.values()
            ]
        failed = tried(defects, partial(_mend, store, pool))
        state = store.read()
    return state, [*problems, *host_problems(store, state, now, failed)]


def _advice(state: ObservedState, name: str) -> str:
    """Return what to do about a host that lacks what enabling sets."""
    enable = shell.command(
        shell.Kind.RESERVATION_HOST_SET, '--enable', names=[name]
    )
    if _may_be_leased(state, name):
        return (
            'it is not put back, because Blazar has leases '
            f'({text.named("aggregate", [a.name for a in state.leases])}) and '
            f'may have taken it out; once no lease uses it, run {enable}'
        )
    if _is_half_disabled(state.hosts.get(name)):
        return f'run {enable}, or with --disable to complete that'
    return f'run {enable}'


def _is_half_disabled(host: ReservationHost | None) -> bool:
    """Return whether disabling a host may be running, or was interrupted.

    It takes the trait of the reservation provider first. Nobody gives it back
    meanwhile, or slots could be written to what is about to be deleted.
    """
    return bool(host and host.provider and host.in_pool and not host.is_ready)


def _may_be_leased(state: ObservedState, name: str) -> bool:
    """Return whether Blazar may have taken a host out of the pool."""
    host = state.hosts.get(name)
    return bool(state.leases) and not (host and host.in_pool)


def _mend(store: ReservationStore, pool: Aggregate, name: str) -> None:
    # The state is newer than the one in which the defect was found.
    state, node, host = hosts.read_enablable(store, name)
    if _may_be_leased(state, node.name) or _is_half_disabled(host):
        return
    hosts.enable(store, state, node, host)
    LOG.warning('Enabled host %s again.', name)
    host = store.read().hosts.get(name)
    if host and host.in_pool and not host.provider and host.service:
        # It was disabled meanwhile.
        pools.remove(store, pool, host.service, host.root)


def host_problems(
    store: ReservationStore,
    state: ObservedState,
    now: datetime.datetime,
    failed: Mapping[str, exception.IsolateAggregatesError] | None = None,
) -> list[errors.ReservationHostError]:
    """Return what is wrong with the hosts for reservations.

    :param failed: Why hosts could not be mended, by name.
    """

    def why(name: str) -> str:
        error = (failed or {}).get(name)
        return f' (it cannot be restored: {clause(error)})' if error else ''

    return [
        errors.ReservationHostError(
            name, f'{problem}{why(name)}; {_advice(state, name)}'
        )
        for name, problem in _find_defects(store, state).items()
    ] + [
        errors.ordinary_servers(name, servers)
        for name, servers in _ordinary_servers(store, state, now).items()
    ]


def _ordinary_servers(
    store: ReservationStore, state: ObservedState, now: datetime.datetime
) -> dict[str, list[str]]:
    """Return the consumers without a slot on hosts that have slots or may.

    Only hosts are read where more is used than the servers in slots need.

    :returns: The uuids of the consumers, by name of the host.
    """
    claims = HostClaims(state, now)
    servers: dict[str, list[str]] = {}
    for host in state.hosts.values():
        if (
            not host.is_ready
            or claims.unknown_slots(host)
            or max(claims.others_use(host), default=0) <= 0
        ):
            continue
        found: set[str] = set()
        for summary in state.tree(host):
            if any(summary.used.values()):
                with contextlib.suppress(exception.ServiceNotFound):
                    found.update(
                        store.ordinary_consumers(summary.uuid, host.provider)
                    )
        if found:
            servers[host.name] = sorted(found)
    return servers


def _find_defects(
    store: ReservationStore, state: ObservedState
) -> dict[str, str]:
    """Return what hosts lack that enabling sets, as predicates, by name."""
    pool = state.pool
    known = [host for host in state.hosts.values() if host.service]
    is_ours = pool is not None and names.POOL_KEY in pool.metadata
    if not (is_ours or any(host.is_ready for host in known)):
        return {}
    members = (
        {
            entry['uuid']
            for entry in store.placement.resource_providers(
                member_of=[pool.uuid]
            )
        }
        if pool
        else set()
    )
    problems = {}
    for host in known:
        if pool is None:
            why = f'aggregate {store.pool} is gone'
        elif pools.missing_metadata(pool):
            why = f'aggregate {pool.name} lacks its lock'
        elif not host.in_pool:
            why = f'it is not in aggregate {pool.name}'
        elif host.root not in members:
            why = f'Placement does not have it in aggregate {pool.name}'
        elif not host.provider:
            problems[host.name] = 'has no reservation provider'
            continue
        elif is_ours and not host.is_ready:
            problems[host.name] = (
                'has a reservation provider without its trait, as disabling '
                'it was interrupted, so it gets no slots'
            )
            continue
        else:
            continue
        if host.is_ready or host.in_pool:
            problems[host.name] = f'may get ordinary servers, because {why}'
    return problems


def _other_pools(store: ReservationStore) -> list[Aggregate]:
    return [
        aggregate
        for aggregate in store.compute.aggregates()
        if aggregate.name != store.pool
        and names.POOL_KEY in aggregate.metadata
    ]
