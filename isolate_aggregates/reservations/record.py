# SPDX-License-Identifier: Apache-2.0
"""A reservation, and how it is written down in flavors.

The private flavor of a reservation is its record: the size of the flavor is
the size of a slot, and the description has the rest as JSON. It is made first
and deleted last, so that whatever else there is can be found and repaired.

It is never written again. What changes is written as the next revision, the
description of another private flavor that exists for nothing else. Nova
creates a flavor of some id only once, so that of two commands that read the
same revision only one writes the next; the other reads again and decides
again. The newest revision counts, and the earlier ones are deleted. A command
that is so late that the revision it writes was deleted meanwhile writes one
that is not the newest, which counts for nothing: reading again shows it that
it lost, too.
"""

from collections.abc import Iterable, Mapping
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
        """Return the shape of the servers of a flavor."""
        return cls(
            vcpus=flavor.vcpus,
            ram=flavor.ram,
            disk=flavor.disk,
            ephemeral=flavor.ephemeral,
            swap=flavor.swap,
            extra_specs=dict(flavor.extra_specs),
        )


@dataclasses.dataclass(frozen=True)
class PendingChange:
    """What a reservation becomes, once it is known that it fits.

    Until it is granted or refused it counts with others as if it were granted.

    :param amount: The number of slots.
    :param end: When the reservation ends; None for never.
    :param leaving: The hosts that it leaves together with its servers.
    """

    amount: int
    end: datetime.datetime | None
    leaving: tuple[str, ...] = ()


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
    :param leaving: The hosts that it leaves together with its servers. Slots
        there do not count for the amount, and are there as long as servers
        have them.
    :param pending: A change that is neither granted nor refused yet.
    :param incarnation: Tells it from an earlier reservation of the same id.
    :param revision: The number of the revision of its record that this was
        read from.
    """

    id: str
    project: str
    start: datetime.datetime
    end: datetime.datetime | None
    amount: int
    shape: Shape
    affinity: bool | None = None
    leaving: tuple[str, ...] = ()
    pending: PendingChange | None = None
    incarnation: str = ''
    revision: int = 0

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
        if self.end is None or self.pending is None:
            return self.end
        return self.pending.end and max(self.end, self.pending.end)

    @property
    def settled(self) -> 'Reservation':
        """What it is once its pending change is granted."""
        if self.pending is None:
            return self
        return dataclasses.replace(
            self,
            amount=self.pending.amount,
            end=self.pending.end,
            leaving=self.pending.leaving,
            pending=None,
        )

    def has_started(self, now: datetime.datetime) -> bool:
        """Tell whether it has started, and may have ended since."""
        return self.start <= now

    def has_ended(self, now: datetime.datetime) -> bool:
        """Tell whether it has ended."""
        return self.end is not None and self.end <= now


@dataclasses.dataclass(frozen=True)
class Record:
    """A flavor that is named as those of reservations are."""

    flavor: Flavor
    description: str


@dataclasses.dataclass(frozen=True)
class Records:
    """What all records say.

    :param reservations: The reservations, by id.
    :param problems: What is wrong with the records that cannot be read, by id
        of the reservation.
    :param foreign: The flavors of reservations that were not made here, and of
        those whose record cannot be read, by id.
    :param superseded: The flavors of earlier revisions, by id of the
        reservation.
    :param strays: Revisions of reservations that are gone.
    """

    reservations: Mapping[str, Reservation]
    problems: Mapping[str, exception.ReservationError]
    foreign: Mapping[str, Flavor]
    superseded: Mapping[str, tuple[str, ...]]
    strays: tuple[names.Revision, ...]


def describe(reservation: Reservation) -> str:
    """Return the description of the flavor of a reservation."""
    document: dict[str, Any] = {
        _MARK: _VERSION,
        'incarnation': reservation.incarnation,
        'project': reservation.project,
        'start': _text(reservation.start),
        'end': _text(reservation.end),
        'amount': reservation.amount,
        'affinity': reservation.affinity,
        'leaving': list(reservation.leaving),
        'extra_specs': dict(sorted(reservation.shape.extra_specs.items())),
    }
    if reservation.pending is not None:
        document['asked'] = {
            'amount': reservation.pending.amount,
            'end': _text(reservation.pending.end),
            'leaving': list(reservation.pending.leaving),
        }
    return json.dumps(document)


def is_ours(description: str | None) -> bool:
    """Tell whether a flavor's description was written here, by its mark."""
    return _MARK in (description or '')


def read(found: Iterable[Record]) -> Records:
    """Return what records say."""
    originals = {}
    revisions: dict[str, list[tuple[names.Revision, str]]] = {}
    for one in found:
        revision = names.revision_of(one.flavor.id)
        if revision is None:
            originals[one.flavor.id] = one
        else:
            known = revisions.setdefault(revision.reservation, [])
            known.append((revision, one.description))
    reservations = {}
    problems = {}
    foreign = {}
    superseded = {}
    for name, original in originals.items():
        flavor = original.flavor
        if not is_ours(original.description):
            foreign[name] = flavor
            continue
        written = revisions.pop(name, [])
        try:
            newest = parse(flavor, original.description)
            own = sorted(
                (
                    (revision, description)
                    for revision, description in written
                    if revision.incarnation == newest.incarnation
                ),
                key=lambda entry: entry[0].number,
            )
            if own:
                revision, description = own.pop()
                newest = parse(flavor, description, revision.number)
        except exception.ReservationError as exc:
            problems[name] = exc
            # Its slots count as those of others do.
            foreign[name] = flavor
            continue
        reservations[name] = newest
        if own:
            superseded[name] = tuple(r.flavor_id for r, _ in own)
        others = [e for e in written if e[0].incarnation != newest.incarnation]
        if others:
            revisions[name] = others
    strays = tuple(
        revision for known in revisions.values() for revision, _ in known
    )
    return Records(reservations, problems, foreign, superseded, strays)


def parse(flavor: Flavor, description: str, revision: int = 0) -> Reservation:
    """Return the reservation that a flavor is the record of.

    :param description: Its description, or that of the newest revision.
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
            leaving=_hosts(document),
            pending=asked
            and PendingChange(
                _amount(asked['amount']), _time(asked['end']), _hosts(asked)
            ),
            incarnation=str(document['incarnation']),
            revision=revision,
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
            f'({exc!r}); correct it, or delete the flavor once nothing uses '
            'it',
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
        raise ValueError(f'{value!r} is not a number of slots')
    return value


def _hosts(document: Mapping[str, Any]) -> tuple[str, ...]:
    # Records of earlier releases leave no hosts.
    return tuple(str(host) for host in document.get('leaving', ()))


def _affinity(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f'{value!r} is not an affinity')
