# SPDX-License-Identifier: Apache-2.0
"""The data model of a reservation, and the values of a new one."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import datetime
import uuid

from isolate_aggregates import text
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_reservations import names
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import Request, resources

# With an empty value these request nothing.
_KEYS = (
    'accel:device_profile',
    'hw:mem_page_size',
    'hw:numa_nodes',
    'pci_passthrough:alias',
)

_PREFIXES = ('hw:numa_cpus.', 'hw:numa_mem.')

# With these policies all CPUs of a server come from one NUMA node.
_CPU_POLICY = 'hw:cpu_policy'
_PINNED = ('dedicated', 'mixed')


@dataclasses.dataclass(frozen=True)
class Shape:
    """The size of one slot, as a flavor has it.

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
        return cls(
            vcpus=flavor.vcpus,
            ram=flavor.ram,
            disk=flavor.disk,
            ephemeral=flavor.ephemeral,
            swap=flavor.swap,
            extra_specs=dict(flavor.extra_specs),
        )


# The most characters of a name and of a note.
MOST_IN_NAME = 255
MOST_IN_NOTE = 1000


@dataclasses.dataclass(frozen=True)
class Event:
    """The values that a reservation has from a time on.

    :param at: When they were recorded.
    :param by: The id of the user who asked for them; empty if it is unknown,
        or if no user asked, as for a start on time.
    :param open: The number of open slots, by name of the host.
    :param down: The names of these hosts that are down or gone.
    :param boot_until: When its warning begins, from which on no servers can be
        booted; None if it has none.
    """

    at: datetime.datetime
    by: str
    end: datetime.datetime | None
    amount: int
    leaving: tuple[str, ...]
    open: Mapping[str, int]
    down: tuple[str, ...]
    boot_until: datetime.datetime | None


@dataclasses.dataclass(frozen=True)
class PendingChange:
    """A change that was requested and is neither granted nor refused yet.

    When other reservations are planned, a pending change counts as granted.
    """

    amount: int
    end: datetime.datetime | None
    leaving: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Reservation:
    """Slots for the servers of one project during a period of time.

    :param start: The start, with a time zone.
    :param end: The end, with a time zone; None for no end.
    :param amount: The number of slots; 0 while the reservation is new and its
        slots are still pending.
    :param affinity: True for all slots on one host, False for no two slots on
        one host, None for no restriction.
    :param name: A name; several reservations may have it.
    :param note: For example the number of an order.
    :param shared: The ids of other projects that may use it, too.
    :param only_on: The names of the hosts that may have its slots; empty for
        any.
    :param warn_before: How long before its end no more servers can be booted;
        None to say nothing about that in its flavor.
    :param unused_since: Since when it has had no server; None if it has one,
        or has not started.
    :param leaving: The names of hosts that the reservation is leaving. Slots
        with a server remain there and do not count towards the amount.
    :param has_access: Whether the project was given access to the flavor.
        It is recorded after the access was granted, and withdrawn before the
        access is revoked.
    :param change: The number of the last change that was asked for. Unlike the
        revision, only commands of operators raise it, and the slots carry it,
        too; see ``slots``.
    :param asked_by: The id of the user who asked for the pending change.
    :param open: The number of slots that were open on each host when its
        record was written.
    :param down: The names of these hosts that were down or gone then.
    :param events: What happened to it, oldest first, but for what earlier
        pages have; see ``events``.
    :param pages: The number of these pages; see ``history``.
    :param incarnation: Distinguishes the reservation from an earlier one with
        the same id.
    :param revision: The number of the record's revision that it was read from.
    """

    id: str
    project: str
    start: datetime.datetime
    end: datetime.datetime | None
    amount: int
    shape: Shape
    affinity: bool | None = None
    name: str = ''
    note: str = ''
    shared: tuple[str, ...] = ()
    only_on: tuple[str, ...] = ()
    warn_before: datetime.timedelta | None = None
    unused_since: datetime.datetime | None = None
    leaving: tuple[str, ...] = ()
    has_access: bool = False
    pending: PendingChange | None = None
    change: int = 0
    asked_by: str = ''
    open: Mapping[str, int] = dataclasses.field(default_factory=dict)
    down: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    pages: int = 0
    incarnation: str = ''
    revision: int = 0

    @property
    def resource_class(self) -> str:
        return names.resource_class(self.id)

    @lazy_property
    def flavor(self) -> Flavor:
        """The flavor for its servers, with the extra specs of a slot."""
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
                **(
                    {}
                    if self.warn_before is None
                    else {names.BOOT_UNTIL: self._boot_until_text}
                ),
            },
        )

    @property
    def boot_until(self) -> datetime.datetime | None:
        return self.end and self.end - (
            self.warn_before or datetime.timedelta()
        )

    @property
    def _boot_until_text(self) -> str:
        until = self.boot_until
        return until.isoformat(timespec='seconds') if until else 'never'

    @property
    def projects(self) -> frozenset[str]:
        return frozenset({self.project, *self.shared})

    @property
    def counted_until(self) -> datetime.datetime | None:
        """The end for planning; the later one if a change is pending.

        None for no end.
        """
        if self.end is None or self.pending is None:
            return self.end
        return self.pending.end and max(self.end, self.pending.end)

    @property
    def settled(self) -> 'Reservation':
        """The reservation with its pending change applied."""
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
        """Return whether the start has passed; it may have ended too."""
        return self.start <= now

    @property
    def was_refused(self) -> bool:
        """Whether it did not fit, or was ended before that was known."""
        return not self.amount and self.pending is None

    def has_ended(self, now: datetime.datetime) -> bool:
        """Return whether the end has passed, or there never was a start.

        A refused reservation has ended even if the clock of the run that
        refused it is ahead of this one.
        """
        return self.was_refused or (self.end is not None and self.end <= now)


def uncounted(extra_specs: Mapping[str, str]) -> list[str]:
    """Return the uncountable ones of a flavor's extra specs, as KEY=VALUE."""
    return sorted(f'{key}={extra_specs[key]}' for key in _keys(extra_specs))


def _keys(extra_specs: Mapping[str, str]) -> Iterator[str]:
    for key, value in extra_specs.items():
        if (
            (key in _KEYS and value)
            or key.startswith(_PREFIXES)
            or (key == _CPU_POLICY and value in _PINNED)
            or _is_granular(key, value)
        ):
            yield key


def _is_granular(key: str, value: str) -> bool:
    return any(spec.suffix for spec in xs.parse({key: value}))


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


def new(
    project: str,
    amount: int,
    shape: Shape,
    start: datetime.datetime,
    end: datetime.datetime | None = None,
    affinity: bool | None = None,
    reservation_id: str | None = None,
    allow_uncounted: bool = False,
    name: str = '',
    note: str = '',
    shared: Iterable[str] = (),
    only_on: Iterable[str] = (),
    warn_before: datetime.timedelta | None = None,
) -> Reservation:
    """Return a reservation to pass to ``create``.

    :param project: The id of the project that may use it, and that its slots
        are counted for.
    :param shared: The ids of other projects that may use it, too.
    :param reservation_id: The id, a uuid; None to generate one.
    :param allow_uncounted: Whether slots may need resources that cannot be
        counted, for example PCI devices. These are then not guaranteed.
    """
    if not project:
        raise errors.InvalidRequest('A reservation needs a project.')
    canonical_id = names.reservation_id(
        reservation_id or names.new_reservation_id()
    )
    check_amount(amount)
    check_texts(name, note)
    # Times of one time zone are compared by the clock on the wall, which shows
    # an hour twice when summer time ends.
    start = utc('start', start)
    end = None if end is None else utc('end', end)
    if end is not None and end <= start:
        raise errors.InvalidRequest(
            f'A reservation cannot end at {end.isoformat()}, because it '
            f'starts at {start.isoformat()}.'
        )
    check_warning(warn_before, start, end)
    reservation = Reservation(
        id=canonical_id,
        project=project,
        start=start,
        end=end,
        amount=0,
        shape=shape,
        affinity=affinity,
        name=name,
        note=note,
        shared=tuple(sorted({*shared} - {project})),
        only_on=tuple(sorted(set(only_on))),
        warn_before=warn_before,
        pending=PendingChange(amount, end),
        incarnation=uuid.uuid4().hex[:8],
    )
    if any(
        names.reservation_of(key.partition(':')[2])
        for key in shape.extra_specs
    ):
        raise errors.InvalidRequest(
            'The slots of a reservation cannot be taken from another '
            'reservation.'
        )
    unknown = [] if allow_uncounted else uncounted(shape.extra_specs)
    if unknown:
        raise errors.InvalidRequest(
            f'A slot cannot be planned with {", ".join(unknown)}, because '
            'Placement does not count it. Leave it out, or use '
            '--allow-uncounted: a server may then get no host although its '
            'reservation has a free slot.'
        )
    if not any(needs(reservation.flavor).values()):
        raise errors.InvalidRequest(
            'A slot of a reservation must request at least one resource.'
        )
    return reservation


def check_warning(
    warn_before: datetime.timedelta | None,
    start: datetime.datetime,
    end: datetime.datetime | None,
) -> None:
    """Refuse a warning that leaves no time in which to boot servers."""
    if warn_before and end is not None and end - start <= warn_before:
        raise errors.InvalidRequest(
            'No server could ever be booted, as --warn-before is '
            f'{warn_before.total_seconds():.0f} s and the reservation lasts '
            f'{(end - start).total_seconds():.0f} s; choose a shorter '
            'warning.'
        )


def check_texts(name: str, note: str) -> None:
    for kind, text_given, most in (
        ('name', name, MOST_IN_NAME),
        ('note', note, MOST_IN_NOTE),
    ):
        if len(text_given) > most:
            raise errors.InvalidRequest(
                f'The {kind} of a reservation may have {most} characters, not '
                f'{len(text_given)}.'
            )
        if not text_given.isprintable():
            raise errors.InvalidRequest(
                f'The {kind} of a reservation may have no control characters, '
                f'as "{text.escaped(text_given)}" has.'
            )


def check_amount(amount: int) -> None:
    if amount < 1:
        raise errors.InvalidRequest(
            f'A reservation must have at least 1 slot, not {amount}.'
        )


def utc(what: str, time: datetime.datetime) -> datetime.datetime:
    """Return a time in UTC.

    :raises InvalidRequest: if it has no time zone, or is out of range in UTC.
    """
    if time.tzinfo is None:
        raise errors.InvalidRequest(
            f'The {what} {time.isoformat()} has no time zone.'
        )
    try:
        return time.astimezone(datetime.UTC)
    except OverflowError:
        raise errors.InvalidRequest(
            f'The {what} {time.isoformat()} is not between the years 1 and '
            '9999 in UTC.'
        ) from None
