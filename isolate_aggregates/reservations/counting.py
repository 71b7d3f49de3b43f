# SPDX-License-Identifier: Apache-2.0
"""Computes the capacity of hosts, and what the slots on them need."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import datetime

from isolate_aggregates import exception
from isolate_aggregates.placement import inventories, resources
from isolate_aggregates.placement.client import ProviderSummary
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.request import Flavor, Request
from isolate_aggregates.reservations import names, room
from isolate_aggregates.reservations.observed import (
    ObservedState,
    ReservationHost,
)
from isolate_aggregates.reservations.store import ReservationStore

_ALWAYS = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_NO_TIME = datetime.timedelta()
_INSTANT = datetime.timedelta(microseconds=1)


def needs(flavor: Flavor) -> dict[str, int]:
    """Return the resources that one server of a flavor takes from its host.

    :raises InvalidRequest: if its extra specs contradict each other.
    """
    return without_slots(resources.resource_request(Request(flavor)))


def without_slots(request: ResourceRequest) -> dict[str, int]:
    return {
        name: amount
        for name, amount in request.merged_resources().items()
        if names.reservation_of(name) is None
    }


class HostClaims:
    """The capacity of hosts, and what the slots on them need."""

    def __init__(
        self,
        store: ReservationStore,
        observed: ObservedState,
        now: datetime.datetime,
    ) -> None:
        self.store = store
        self.observed = observed
        self.now = now
        # Flavors with invalid extra specs are left out; see unknown_slots().
        self.needs = dict(
            _countable(
                reservation.flavor
                for reservation in observed.records.reservations.values()
            )
        )
        self.foreign = dict(_countable(observed.records.foreign.values()))

    def unknown_slots(self, host: ReservationHost) -> str | None:
        for name in sorted(host.slots):
            if name not in self.needs and name not in self.foreign:
                return f'has slots of reservation {name}, which is unknown'
        return None

    def capacity(
        self, host: ReservationHost, tree: Sequence[ProviderSummary]
    ) -> room.HostCapacity:
        root, *below = tree
        return room.HostCapacity(
            host=host.name,
            capacity=root.capacity,
            below=tuple(provider.capacity for provider in below),
            claims=tuple(self.claims(host)),
        )

    def claims(
        self,
        host: ReservationHost,
        but: str | None = None,
        cleaning_time: datetime.timedelta = _NO_TIME,
    ) -> Iterator[room.Claim]:
        """Yield what the slots of all reservations except one need.

        :param but: The id of the reservation to leave out.
        :param cleaning_time: How long slots count after their end.
        """
        for name, slots in host.slots.items():
            if name == but:
                continue
            number = max(slots.total, slots.used)
            other = self.observed.records.reservations.get(name)
            if other is None:
                # Its start and end are unknown, so it always counts.
                yield room.Claim(_ALWAYS, None, self.foreign[name], number)
                continue
            end = other.counted_until
            if end is not None:
                # Slots that still exist after the end count until removed.
                end = max(room.later(end, cleaning_time), self.now + _INSTANT)
            yield room.Claim(other.counted_from, end, self.needs[name], number)

    def with_usage(
        self,
        host: ReservationHost,
        but: str | None = None,
    ) -> room.HostCapacity:
        """Return the capacity of a host, with all claims except one.

        :param but: The id of the reservation whose slots are left out.
        :raises ServiceNotFound: if one of its providers is gone.
        """
        tree = self.observed.tree(host)
        if not tree:
            raise exception.ServiceNotFound(
                'Placement', None, f'has no resource provider {host.root}'
            )
        ordinary = self._ordinary(host, tree)
        return room.HostCapacity(
            host=host.name,
            capacity=tree[0].capacity,
            ordinary=ordinary.get(host.root, {}),
            below=tuple(
                {
                    name: has - ordinary.get(provider.uuid, {}).get(name, 0)
                    for name, has in provider.capacity.items()
                }
                for provider in tree[1:]
            ),
            claims=tuple(self.claims(host, but, self.store.cleaning_time)),
        )

    def _ordinary(
        self, host: ReservationHost, tree: list[ProviderSummary]
    ) -> Mapping[str, Mapping[str, int]]:
        """Return what servers outside reservations use, by provider."""
        reserved = [
            (
                slots.used,
                self.needs.get(name) or self.foreign[name],
            )
            for name, slots in host.slots.items()
            if slots.used
        ]
        if not reserved:
            return {summary.uuid: summary.used for summary in tree}
        rest: Counter[str] = Counter()
        for summary in tree:
            rest.update(summary.used)
        for number, amounts in reserved:
            rest.subtract({n: number * most for n, most in amounts.items()})
        if not any(rest.values()):
            return {}
        # The difference need not be ordinary servers: a server in a slot may
        # use less than the slot has, for example if it boots from a volume.
        # So the consumers are read one by one.
        total: dict[str, Counter[str]] = {}
        for summary in tree:
            if any(summary.used.values()):
                total[summary.uuid] = Counter()
                for taken in ordinary_consumers(
                    self.store, summary.uuid, host.provider
                ).values():
                    total[summary.uuid].update(taken)
        return total


def ordinary_consumers(
    store: ReservationStore, source: str, provider: str | None
) -> Mapping[str, Mapping[str, int]]:
    """Return what the consumers without a slot use of a provider.

    :param source: The uuid of the provider that they use.
    :param provider: The uuid of the host's reservation provider, if any.
    :raises ServiceNotFound: if one of the providers is gone.
    """
    consumers = inventories.consumers(store.placement, source)
    reserved = (
        inventories.consumers(store.placement, provider) if provider else {}
    )
    return {
        consumer: amounts
        for consumer, amounts in consumers.items()
        if consumer not in reserved
    }


def _countable(
    flavors: Iterable[Flavor],
) -> Iterator[tuple[str, dict[str, int]]]:
    # There are many flavors but few sizes, so each size is computed once.
    by_size: dict[tuple[object, ...], dict[str, int] | None] = {}
    for flavor in flavors:
        size = _size(flavor)
        if size not in by_size:
            by_size[size] = None
            with contextlib.suppress(exception.InvalidRequest):
                by_size[size] = needs(flavor)
        amounts = by_size[size]
        if amounts is not None:
            yield flavor.id, amounts


def _size(flavor: Flavor) -> tuple[object, ...]:
    """Return everything that determines the flavor's needs."""
    return (
        flavor.vcpus,
        flavor.ram,
        flavor.disk,
        flavor.ephemeral,
        flavor.swap,
        *sorted(
            (key, value)
            for key, value in flavor.extra_specs.items()
            if names.reservation_of(key.partition(':')[2]) is None
        ),
    )
