# SPDX-License-Identifier: Apache-2.0
"""The errors of reservations."""

from collections.abc import Iterable

from isolate_aggregates import text
from isolate_aggregates.exception import IsolateAggregatesError
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import shell


class ReservationError(IsolateAggregatesError):
    """A reservation cannot be created, read or changed."""

    def __init__(self, reservation: str, problem: str) -> None:
        self.reservation = reservation
        self.problem = problem
        super().__init__(f'Reservation {reservation} {problem}.')


def unknown(reservation: str) -> tools_errors.NotFound:
    return tools_errors.NotFound(
        'reservation',
        reservation,
        'Nova',
        advice=f'run {shell.Kind.RESERVATION_LIST}, or '
        f'{shell.Kind.RESERVATION_HISTORY_LIST} for those that '
        'have ended',
    )


def no_host(name: str) -> tools_errors.InvalidRequest:
    return tools_errors.InvalidRequest(
        f'{name} is not a host for reservations; see '
        f'{shell.Kind.RESERVATION_HOST_LIST}.'
    )


class ChangeRefused(ReservationError):
    """A change of a reservation does not fit.

    :param change: The number of the change; see ``Reservation.change``. A
        command that asked for another one has not been refused.
    """

    def __init__(self, reservation: str, problem: str, change: int) -> None:
        self.change = change
        super().__init__(reservation, problem)


class StaleRecord(ReservationError):
    """The record of a reservation is older than its slots.

    :param slots: The number of the change that the slots were written for.
    """

    def __init__(self, reservation: str, slots: int) -> None:
        self.slots = slots
        put = shell.command(
            shell.Kind.RESERVATION_SET, reservation, '--end', 'TIME'
        )
        end = shell.command(shell.Kind.RESERVATION_END, names=[reservation])
        super().__init__(
            reservation,
            'has a record in Nova that is older than its slots in Placement, '
            f'so nothing of it is ended or deleted; run {put} with the end '
            f'that it should have, or {end}',
        )


class PoolError(IsolateAggregatesError):
    """The aggregate of the hosts for reservations has invalid metadata."""

    def __init__(self, pool: str, problem: str) -> None:
        self.pool = pool
        self.problem = problem
        super().__init__(f'Aggregate {pool} {problem}.')


class ReservationHostError(IsolateAggregatesError):
    """A host cannot be enabled or disabled for reservations."""

    def __init__(self, host: str, problem: str) -> None:
        self.host = host
        self.problem = problem
        super().__init__(f'Host {host} {problem}.')


def ordinary_servers(
    host: str, consumers: Iterable[str]
) -> ReservationHostError:
    return ReservationHostError(
        host,
        f'runs servers without a reservation ({text.listed(consumers)}), so a '
        f'slot there may have no room; run {shell.Kind.SERVER_DELETE} or '
        f'{shell.Kind.SERVER_MIGRATE} with each of them',
    )
