# SPDX-License-Identifier: Apache-2.0
"""A reservation, and how it is written into the flavor it is kept in.

The private flavor of a reservation is its record: the size of the flavor is
the size of a slot, and the description has the rest as JSON. It is made first
and deleted last, so that whatever else there is can be found and repaired.
"""

from collections.abc import Mapping
import dataclasses
import datetime
import json
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import names

# The key that tells our descriptions from those of others, and the version
# that is written.
_MARK = 'isolate-aggregates-reservation'
_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Shape:
    """The size of one slot, as a flavor has it.

    :param vcpus: Number of virtual CPUs.
    :param ram: Memory in MiB.
    :param disk: Root disk in GiB.
    :param ephemeral: Ephemeral disk in GiB.
    :param swap: Swap disk in MiB.
    :param extra_specs: Extra specs, required traits among them as
        ``trait:<NAME>=required``.
    """

    vcpus: int
    ram: int
    disk: int = 0
    ephemeral: int = 0
    swap: int = 0
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def like(cls, flavor: Flavor) -> 'Shape':
        """Return the shape of the servers of a flavor.

        :param flavor: The flavor.
        """
        return cls(
            vcpus=flavor.vcpus,
            ram=flavor.ram,
            disk=flavor.disk,
            ephemeral=flavor.ephemeral,
            swap=flavor.swap,
            extra_specs=dict(flavor.extra_specs),
        )


@dataclasses.dataclass(frozen=True)
class Ask:
    """What a reservation shall become, once it is known that it fits.

    Until then it counts with others as if it were so already, as long as it
    is granted or refused.

    :param amount: The number of slots.
    :param end: When it shall end; None for never.
    """

    amount: int
    end: datetime.datetime | None


@dataclasses.dataclass(frozen=True)
class Reservation:
    """Slots for the servers of one project for some time.

    :param id: Its id, a uuid.
    :param project: The id of the project that may use it.
    :param start: When it starts.
    :param end: When it ends; None for never.
    :param amount: The number of slots; 0 until it is known that those asked
        for fit.
    :param shape: The size of a slot.
    :param affinity: True if all slots have to be on one host, False if no two
        may be, None if it does not matter.
    :param granted: Whether the project was given access to the flavor.
    :param asked: What is asked for and not yet granted, if anything.
    """

    id: str
    project: str
    start: datetime.datetime
    end: datetime.datetime | None
    amount: int
    shape: Shape
    affinity: bool | None = None
    granted: bool = False
    asked: Ask | None = None

    @property
    def resource_class(self) -> str:
        """The resource class of its slots."""
        return names.resource_class(self.id)

    @property
    def flavor(self) -> Flavor:
        """The flavor that its servers are booted with."""
        shape = self.shape
        return Flavor(
            name=names.flavor(self.id),
            id=self.id,
            vcpus=shape.vcpus,
            ram=shape.ram,
            disk=shape.disk,
            ephemeral=shape.ephemeral,
            swap=shape.swap,
            extra_specs={
                **shape.extra_specs,
                **names.flavor_extra_specs(self.id),
            },
        )

    @property
    def counted_until(self) -> datetime.datetime | None:
        """Until when its slots count with others; None for ever."""
        if self.end is None or self.asked is None:
            return self.end
        return self.asked.end and max(self.end, self.asked.end)

    @property
    def settled(self) -> 'Reservation':
        """What it is once what is asked for is granted."""
        if self.asked is None:
            return self
        return dataclasses.replace(
            self, amount=self.asked.amount, end=self.asked.end, asked=None
        )

    def has_started(self, now: datetime.datetime) -> bool:
        """Tell whether it has started, and may have ended since.

        :param now: The time.
        """
        return self.start <= now

    def has_ended(self, now: datetime.datetime) -> bool:
        """Tell whether it has ended.

        :param now: The time.
        """
        return self.end is not None and self.end <= now


def describe(reservation: Reservation) -> str:
    """Return the description of the flavor of a reservation.

    :param reservation: The reservation.
    """
    document: dict[str, Any] = {
        _MARK: _VERSION,
        'project': reservation.project,
        'start': _text(reservation.start),
        'end': _text(reservation.end),
        'amount': reservation.amount,
        'affinity': reservation.affinity,
        'granted': reservation.granted,
        'extra_specs': dict(sorted(reservation.shape.extra_specs.items())),
    }
    if reservation.asked is not None:
        document['asked'] = {
            'amount': reservation.asked.amount,
            'end': _text(reservation.asked.end),
        }
    return json.dumps(document)


def is_ours(description: str | None) -> bool:
    """Tell whether a flavor's description was written here, by its mark.

    :param description: The description; None if there is none.
    """
    return _MARK in (description or '')


def parse(flavor: Flavor, description: str) -> Reservation:
    """Return the reservation that a flavor is the record of.

    :param flavor: The flavor.
    :param description: Its description.
    :raises ReservationError: if the description is of a version that is not
        known here, or broken.
    """
    try:
        document = json.loads(description)
        version = document[_MARK]
        if version != _VERSION:
            raise exception.ReservationError(
                flavor.id,
                f'was written in format {version}, and only format '
                f'{_VERSION} is known here; use the newer release for it',
            )
        asked = document.get('asked')
        if names.reservation_id(flavor.id) != flavor.id:
            raise ValueError(f'{flavor.id} is not written as uuids are')
        return Reservation(
            id=flavor.id,
            project=str(document['project']),
            start=_start(document['start']),
            end=_time(document['end']),
            amount=_amount(document['amount']),
            shape=dataclasses.replace(
                Shape.like(flavor),
                extra_specs={
                    str(key): str(value)
                    for key, value in document['extra_specs'].items()
                },
            ),
            affinity=_affinity(document['affinity']),
            granted=bool(document['granted']),
            asked=asked and Ask(_amount(asked['amount']), _time(asked['end'])),
        )
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        exception.InvalidRequest,
    ) as exc:
        raise exception.ReservationError(
            flavor.id,
            f'has a flavor {flavor.name} whose description is broken '
            f'({exc!r}); put it right, or delete the flavor once nothing '
            'uses it',
        ) from exc


def _text(time: datetime.datetime | None) -> str | None:
    return None if time is None else time.astimezone(datetime.UTC).isoformat()


def _time(text: str | None) -> datetime.datetime | None:
    return None if text is None else _start(text)


def _start(text: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f'{text} has no time zone')
    return found.astimezone(datetime.UTC)


def _amount(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f'{value!r} is no number of slots')
    return value


def _affinity(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f'{value!r} is no affinity')
