# SPDX-License-Identifier: Apache-2.0
"""Exceptions that Blazar handles.

Only Blazar's own exceptions fail a single event or request; others are not
handled by blazar-manager.
"""

from collections.abc import Iterator
import contextlib

from blazar import exceptions as blazar_exceptions
from blazar.manager import exceptions as manager_exceptions

from isolate_aggregates import exception


class ReservationNotKept(blazar_exceptions.BlazarException):
    """A reservation could not be written to Nova or Placement."""

    code = 503
    msg_fmt = 'Reservation %(reservation)s: %(problem)s'


class UnknownResourceProperty(blazar_exceptions.BlazarException):
    """The requirements name a resource property that no host has."""

    code = 400
    msg_fmt = (
        'No host has a resource property %(name)s, which the requirements '
        '%(requirements)s name; run %(give)s with one that has it, or '
        'change the requirements'
    )


@contextlib.contextmanager
def translated(reservation: str) -> Iterator[None]:
    """Raise our exceptions as :class:`ReservationNotKept`."""
    try:
        yield
    except exception.IsolateAggregatesError as exc:
        raise ReservationNotKept(
            reservation=reservation, problem=str(exc)
        ) from exc


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raise what refuses a change of a lease as one of Blazar's own types.

    After an error whose very type is among a few, Blazar gives the lease its
    status back; a subclass is none of them. After any other, the lease is in
    status ERROR and never starts.
    """
    try:
        yield
    except UnknownResourceProperty as exc:
        raise manager_exceptions.MalformedRequirements(str(exc)) from exc
    except ReservationNotKept as exc:
        raise manager_exceptions.CantUpdateParameter(str(exc)) from exc
