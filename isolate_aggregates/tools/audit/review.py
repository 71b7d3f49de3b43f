# SPDX-License-Identifier: Apache-2.0
"""What an audit and the metrics need to know about reservations.

Reservations are a wing of their own, which this one does not import; the
command ``reservation list`` makes the review.
"""

from collections.abc import Mapping, Sequence
import datetime
from typing import Protocol

from isolate_aggregates.request.extra_specs import RESERVATION_CLASS
from isolate_aggregates.tools.cloud.snapshot import Snapshot


class ClosedSlots(Protocol):
    """Slots of a reservation on hosts that are closed for the same reason."""

    @property
    def reservation(self) -> str:
        """The id of the reservation."""

    @property
    def hosts(self) -> Sequence[str]:
        """The names of the hosts."""

    @property
    def slots(self) -> int:
        """The number of slots on these hosts."""

    @property
    def reason(self) -> str:
        """Why locks close the hosts, as a predicate."""


class Review(Protocol):
    """All reservations, and what is wrong with them."""

    @property
    def states(self) -> Mapping[str, int]:
        """The number of reservations in each state, by its name."""

    @property
    def missed(self) -> Mapping[str, Mapping[str, datetime.datetime]]:
        """The due times of what was not reconciled.

        By ``start`` or ``end``, then by reservation id.
        """

    @property
    def unusable_slots(self) -> Mapping[str, int]:
        """The number of slots that no server can use, by cause."""

    @property
    def closed(self) -> Sequence[ClosedSlots]:
        """The slots that locks close."""

    @property
    def oversold(self) -> Mapping[str, str]:
        """What is wrong with reservations that have more servers than slots.

        Predicates, by reservation id.
        """

    @property
    def oversold_slots(self) -> int:
        """The number of servers for which there is no slot."""

    @property
    def remaining(self) -> Mapping[str, str]:
        """What keeps the end of reservations from completing.

        Predicates, by reservation id.
        """

    @property
    def stale(self) -> Mapping[str, str]:
        """What is wrong with reservations whose record is too old.

        Predicates, by reservation id.
        """

    @property
    def unreadable(self) -> Mapping[str, str]:
        """What is wrong with reservations that cannot be read.

        Predicates, by reservation id.
        """

    @property
    def hosts(self) -> Mapping[str, str]:
        """What is wrong with hosts for reservations: predicates, by name."""


def may_exist(snapshot: Snapshot) -> bool:
    """Return whether a cloud may have reservations.

    Each host that is enabled for reservations has a unit of such a class, and
    so has each slot.
    """
    return any(
        resource_class.startswith(RESERVATION_CLASS)
        for provider in snapshot.providers
        for resource_class in provider.inventories
    )
