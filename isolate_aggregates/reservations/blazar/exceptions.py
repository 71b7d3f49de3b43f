# SPDX-License-Identifier: Apache-2.0
"""Errors in the terms of Blazar.

blazar-manager takes an error as the failure of one event or one request only
if it is one of its own.
"""

from collections.abc import Iterator
import contextlib

from blazar import exceptions as blazar_exceptions

from isolate_aggregates import exception


class ReservationNotKept(blazar_exceptions.BlazarException):
    """Nova or Placement did not do what a reservation needs."""

    code = 503
    msg_fmt = 'Reservation %(reservation)s: %(problem)s'


@contextlib.contextmanager
def translated(reservation: str) -> Iterator[None]:
    """Turn our errors into one of Blazar's.

    :raises ReservationNotKept: instead of each of ours.
    """
    try:
        yield
    except exception.IsolateAggregatesError as exc:
        raise ReservationNotKept(
            reservation=reservation, problem=str(exc)
        ) from exc
