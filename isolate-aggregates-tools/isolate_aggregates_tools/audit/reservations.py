# SPDX-License-Identifier: Apache-2.0
"""Finds reservations that nothing reconciles, or that servers cannot use."""

from collections.abc import Iterator, Mapping
import datetime

from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import counted, named, plural
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair


def not_reconciled(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find reservations whose start or end nothing has carried out."""
    if cloud.reservations is None:
        return
    for event, verb, still, consequence in (
        (
            'end',
            'ended',
            'open',
            'servers of the project can still be booted there, and what is '
            'reserved there next may not start',
        ),
        (
            'start',
            'started',
            'closed',
            'the project cannot boot servers there yet',
        ),
    ):
        due = cloud.reservations.missed[event]
        if due:
            yield Finding(
                'reservation-not-reconciled',
                Severity.WARNING,
                named('reservation', due),
                f'{verb}{_time(due)}, and {plural(len(due), "its", "their")} '
                f'slots are still {still}; reservation reconcile does not '
                'seem to run',
                consequence,
                (Repair(commands.RECONCILE),),
            )


def _time(due: Mapping[str, datetime.datetime]) -> str:
    first = min(due.values()).isoformat(timespec='seconds')
    return f'{plural(len(due), "", ", the first")} at {first}'


def without_slots(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find reservations with slots on no host, whose record still exists."""
    if cloud.reservations is None:
        return
    for reservation, slots in cloud.reservations.nowhere.items():
        yield Finding(
            'reservation-without-slots',
            Severity.WARNING,
            f'reservation {reservation}',
            f'has {plural(slots, "its slot", f"its {slots} slots")} on no '
            'host; the next round of reservation reconcile restores '
            f'{plural(slots, "it", "them")} where hosts for reservations have '
            'room',
            'its project can boot no server of it',
            (Repair(commands.RECONCILE),),
        )


def closed(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find slots on hosts that other locks close to their servers."""
    if cloud.reservations is None:
        return
    for entry in cloud.reservations.closed:
        which = plural(len(entry.hosts), 'which', 'each of which')
        yield Finding(
            'reservation-closed',
            Severity.WARNING,
            f'reservation {entry.reservation}',
            f'has {counted(entry.slots, "slot")} on '
            f'{named("host", entry.hosts)}, {which} {entry.reason}',
            'new servers of the reservation are refused there',
            (Repair(commands.repair_reservation(entry.reservation)),),
            about=About.of(hosts=entry.hosts),
        )


def with_problems(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find reservations that are oversold, not ended, stale or unreadable."""
    review = cloud.reservations
    if review is None:
        return
    for kind, problems, consequence in (
        (
            'reservation-oversold',
            review.oversold,
            'the servers may use more than their hosts have, and others of '
            'the reservation are refused',
        ),
        (
            'reservation-not-ended',
            review.remaining,
            'its slots stay, and nothing else is planned in their place',
        ),
        (
            'reservation-stale',
            review.stale,
            'what is shown of it may be wrong, and it is not ended',
        ),
        (
            'reservation-unreadable',
            review.unreadable,
            'it is neither started nor ended, and its slots stay as they are',
        ),
    ):
        for reservation, problem in problems.items():
            yield Finding(
                kind,
                Severity.WARNING,
                f'reservation {reservation}',
                problem,
                consequence,
            )


def hosts(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts for reservations that ordinary servers use, or may use.

    If the reservations were not read, as of a cloud file or after a change,
    their slots tell which hosts the lock of the pool must guard.
    """
    problems = (
        _unguarded(cloud)
        if cloud.reservations is None
        else cloud.reservations.hosts.items()
    )
    for host, problem in problems:
        yield Finding(
            'reservation-host',
            Severity.WARNING,
            f'host {host}',
            problem,
            'a server may find no room in a free slot of its reservation',
            about=About.of(hosts=[host]),
        )


def _unguarded(cloud: AuditedCloud) -> Iterator[tuple[str, str]]:
    """Yield hosts with slots outside locked pools, and the problem of each."""
    pools = cloud.required_by.get(xs.RESERVATION_TRAIT, ())
    for host, nodes in sorted(cloud.nodes.items()):
        if any(host in pool.hosts for pool in pools):
            continue
        slots = {
            reservation
            for node in nodes
            for provider in cloud.tree_of(node)
            # Those of Blazar have no trait; its own filters guard them.
            if xs.RESERVATION_TRAIT in provider.traits
            for name in provider.inventories
            if (reservation := xs.reservation_of(name))
        }
        if slots:
            yield (
                host,
                f'has slots of {named("reservation", slots)}, and is in no '
                f'aggregate that requires trait {xs.RESERVATION_TRAIT}, so '
                'that ordinary servers may use what is reserved',
            )
