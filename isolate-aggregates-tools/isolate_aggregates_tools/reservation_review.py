# SPDX-License-Identifier: Apache-2.0
"""What an audit and the metrics need to know about reservations.

Reservations are a distribution of their own, which the tools do not import;
its command ``reservation list`` makes the review.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import datetime


@dataclasses.dataclass(frozen=True)
class ClosedSlots:
    """Slots of a reservation on hosts that are closed for the same reason.

    :param reason: Why locks close the hosts, as a predicate.
    """

    reservation: str
    hosts: Sequence[str]
    slots: int
    reason: str


@dataclasses.dataclass(frozen=True)
class Review:
    """All reservations, and what is wrong with them.

    What is wrong with reservations is a predicate each, by reservation id.

    :param states: The number of reservations in each state, by its name.
    :param missed: The due times of starts and ends that were not reconciled,
        by ``start`` or ``end``, then by reservation id.
    :param unusable_slots: The number of slots that no server can use, by
        cause: ``missing`` (they are on no host), ``host`` (the host is down,
        disabled, gone or not enabled) or ``closed`` (by locks).
    :param oversold: Of reservations with more servers than slots on a host.
    :param oversold_slots: The number of servers for which there is no slot.
    :param remaining: What keeps the end of reservations from completing.
    :param stale: Of reservations whose record is older than their slots; empty
        if that was not checked.
    :param unreadable: Of reservations that cannot be read.
    :param hosts: What is wrong with hosts for reservations: predicates, by
        name.
    :param nowhere: The number of slots of reservations that have none on any
        host, by reservation id.
    :param resource_classes: The resource classes of all reservations that have
        a record.
    """

    states: Mapping[str, int]
    missed: Mapping[str, Mapping[str, datetime.datetime]]
    unusable_slots: Mapping[str, int]
    closed: Sequence[ClosedSlots]
    oversold: Mapping[str, str]
    oversold_slots: int
    remaining: Mapping[str, str]
    stale: Mapping[str, str]
    unreadable: Mapping[str, str]
    hosts: Mapping[str, str]
    nowhere: Mapping[str, int]
    resource_classes: frozenset[str]
