# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of the commands for reservations."""

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
import datetime
import enum
import functools
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

from isolate_aggregates_reservations.commands import times
from isolate_aggregates_reservations.state import HostSlots
from isolate_aggregates_tools import documents
from isolate_aggregates_tools.cli.preview import PreviewedEffect
from isolate_aggregates_tools.documents import Count, Names, Time

Document = TypeVar('Document')

Length = Annotated[str | None, 'A duration, such as 2d; null for none.']
End = Annotated[
    str | None,
    {'format': 'date-time'},
    'Null for a reservation without an end.',
]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a slot: RAM and swap in MiB, disks in GiB."""

    vcpus: Count
    ram: Count
    disk: Count
    ephemeral: Count
    swap: Count


@dataclass(frozen=True, kw_only=True)
class Slots:
    """The slots of a reservation on a host."""

    slots: Count
    open: Annotated[Count, 'Those that new servers can take, or have taken.']
    used: Count


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A change that is not complete."""

    amount: Count
    end: End
    leaving: Names


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What was agreed on for a reservation, and how far it is."""

    id: str
    name: str
    note: str
    project: str
    state: str
    start: Time
    end: End
    flavor: str
    amount: Count


@dataclass(frozen=True, kw_only=True)
class Reservation(Terms):
    """A reservation, its slots and its problems."""

    affinity: str
    shape: Shape
    properties: Annotated[Mapping[str, str], 'The extra specs of its flavor.']
    shared: Annotated[Names, 'The ids of other projects that may use it.']
    only_on: Annotated[Names, 'The hosts that may have its slots; [] for all.']
    warn_before: Length
    unused_since: Annotated[
        str | None, {'format': 'date-time'}, 'Null if it is used.'
    ]
    slots: Count
    used: Count
    missing: Count
    hosts: Annotated[Mapping[str, Slots], 'By name of the host.']
    leaving: Annotated[Names, 'The hosts that it leaves.']
    asked: Asked | None
    problems: Names
    planned: Annotated[Names, 'What would be done, if it was not.']


@dataclass(frozen=True, kw_only=True)
class Reservations:
    """Reservations, sorted by start."""

    reservations: tuple[Reservation, ...]


@dataclass(frozen=True, kw_only=True)
class Repaired(Reservations):
    """Reservations that were to be repaired."""

    planned: Annotated[Names, 'What would be done, if it was not.']


@dataclass(frozen=True, kw_only=True)
class OwnReservation:
    """A reservation, as the project that uses it sees it."""

    id: Annotated[str, 'That of the flavor.']
    flavor: str
    shape: Shape
    servers: Count
    boot_until: Annotated[str | None, 'Null if it has no end.']


@dataclass(frozen=True, kw_only=True)
class OwnReservations:
    """The reservations of a project."""

    reservations: tuple[OwnReservation, ...]


@dataclass(frozen=True, kw_only=True)
class Hours:
    """Hours of slots, exact to the second."""

    sold: float
    open: Annotated[float, 'In which servers could take them.']
    usable: Annotated[
        float, 'Those sold that were open on hosts that were up.'
    ]


@dataclass(frozen=True, kw_only=True)
class Event:
    """What happened to a reservation, and what it was from then on."""

    at: Time
    by: str | None
    event: str
    end: End
    amount: Count
    leaving: Names
    open: Annotated[Mapping[str, Count], 'Open slots by host.']
    down: Annotated[Names, 'The hosts that were down.']
    boot_until: Annotated[
        str | None, {'format': 'date-time'}, 'Null if it has no warning.'
    ]


@dataclass(frozen=True, kw_only=True)
class PastReservation(Terms):
    """A reservation and its events."""

    shape: Shape
    properties: Mapping[str, str]
    resources: Annotated[Mapping[str, Count], 'What a slot takes of its host.']
    slot_hours: Hours
    events: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class History:
    """The reservations of a period."""

    reservations: tuple[PastReservation, ...]


@dataclass(frozen=True, kw_only=True)
class Period:
    """A time in which the free capacity of a host does not change."""

    start: Time
    end: Time
    slots: Count
    free: Annotated[Mapping[str, int], 'By resource class.']


@dataclass(frozen=True, kw_only=True)
class FreeHost:
    """The free capacity of a host."""

    host: str
    obstacle: Annotated[str | None, 'Why it gets no slots.']
    periods: tuple[Period, ...]


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """The free capacity over time."""

    start: Time
    end: Time
    hosts: tuple[FreeHost, ...]


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host for reservations."""

    name: str
    service: str | None
    state: str
    enabled: bool
    in_pool: bool
    obstacle: Annotated[str | None, 'Why it gets no slots.']
    problems: Names
    reservations: Annotated[Mapping[str, Slots], 'By id.']


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The hosts for reservations."""

    hosts: tuple[Host, ...]


@dataclass(frozen=True, kw_only=True)
class ChangedHost:
    """What became of a host."""

    host: str
    result: str


@dataclass(frozen=True, kw_only=True)
class ChangedHosts:
    """What became of hosts that were enabled or disabled."""

    hosts: tuple[ChangedHost, ...]
    planned: Annotated[Names, 'What would be done, if it was not.']
    effect: PreviewedEffect


def drawn(kind: type[Document], *sources: object, **values: Any) -> Document:
    """Return a document with the attributes that its keys name.

    :param sources: The objects that may have them, the most important first.
    :param values: The values of keys that no object has.
    """
    hints = _hints(cast(Any, kind))
    for name in hints.keys() - values.keys():
        values[name] = next(
            getattr(source, name)
            for source in sources
            if hasattr(source, name)
        )
    return kind(
        **{name: _drawn(values[name], hint) for name, hint in hints.items()}
    )


# A list may have thousands of documents of a kind.
_hints = functools.cache(get_type_hints)


def _drawn(value: Any, hint: Any) -> Any:
    kinds = (hint, *get_args(hint))
    kind: Any = next((one for one in kinds if is_dataclass(one)), None)
    if isinstance(value, Mapping):
        return {name: _drawn(value[name], kind) for name in sorted(value)}
    if isinstance(value, tuple | list):
        return tuple(_drawn(one, kind) for one in value)
    if isinstance(value, datetime.datetime):
        return times.text(value)
    if isinstance(value, datetime.timedelta):
        return times.length(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, HostSlots):
        return drawn(Slots, value, slots=value.total)
    if kind is None or value is None or isinstance(value, kind):
        return value
    return drawn(kind, value)


RESERVATION = documents.schema(Reservation, 'A reservation')
RESERVATIONS = documents.schema(Reservations, 'Reservations')
REPAIRED = documents.schema(Repaired, 'Repaired reservations')
HISTORY = documents.schema(History, 'What was reserved')
CALENDAR = documents.schema(Calendar, 'Free capacity over time')
HOSTS = documents.schema(Hosts, 'The hosts for reservations')
CHANGED_HOSTS = documents.schema(ChangedHosts, 'Changed hosts')

_SCHEMAS = {
    **dict.fromkeys(
        (
            *('reservation create', 'reservation end'),
            *('reservation set', 'reservation show'),
        ),
        RESERVATION,
    ),
    'reservation list': documents.schema(
        Reservations | OwnReservations,
        'Reservations; with --mine, as their project sees them',
    ),
    'reservation reconcile': RESERVATIONS,
    'reservation repair': REPAIRED,
    'reservation calendar list': CALENDAR,
    'reservation history list': HISTORY,
    'reservation host list': HOSTS,
    'reservation host set': CHANGED_HOSTS,
}
SCHEMAS = documents.published(_SCHEMAS)
