# SPDX-License-Identifier: Apache-2.0
"""Stores reservations in the descriptions of flavors.

The private flavor of a reservation is its record: its size is the size of a
slot, and its description has the rest as JSON. It is created first and deleted
last, so that everything else can be found and repaired.

This flavor is never updated. A change is written as the next revision, in the
description of another private flavor that exists only for this. Nova creates
each flavor id only once, so if two commands have read the same revision, only
one can write the next; the other one reads again and retries. The newest
revision is valid, and earlier ones are deleted. A slow command may write a
revision again that has been deleted already. It is not the newest one and has
no effect; the command notices when it reads the record again.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
import contextlib
import dataclasses
import datetime
import json
from typing import Any
import zlib

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.reservation import (
    Event,
    PendingChange,
    Reservation,
    Shape,
    needs,
)
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.compute.records import FlavorRecord

# The key that marks our descriptions, and the version of the format.
_MARK = 'isolate-aggregates-reservation'
_VERSION = 1

# Nova takes descriptions of 65,535 characters.
_LONGEST = 60_000
_PACKED = 'packed'

# The most characters of events in a record, without the first.
_MOST_OF_EVENTS = 10_000

# The key that marks archives and pages of events; see ``history``.
HISTORY_MARK = 'isolate-aggregates-history'
HISTORY_VERSION = 1

# The key that marks the descriptions of Blazar's reservations; see
# blazar.record.
BLAZAR_MARK = 'isolate-aggregates-blazar'


# A codec writes a value of one kind as JSON, and reads it again. Reading
# raises ValueError or TypeError if it is none.
Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def _write_time(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat()


def _read_time(text: str) -> datetime.datetime:
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f'{text} has no time zone')
    return time.astimezone(datetime.UTC)


def _read_number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f'{value!r} is not a number of slots')
    return value


def _read_affinity(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f'{value!r} is not an affinity')


def optional(codec: Codec) -> Codec:
    """Return the codec of a value that may be None."""
    write, read = codec
    return (
        lambda value: None if value is None else write(value),
        lambda value: None if value is None else read(value),
    )


TEXT: Codec = (str, str)
_TEXTS: Codec = (list, lambda texts: tuple(map(str, texts)))
_TEXT_BY_KEY: Codec = (
    lambda values: dict(sorted(values.items())),
    lambda values: {str(key): str(text) for key, text in values.items()},
)
_NUMBER: Codec = (int, _read_number)
_NUMBER_BY_KEY: Codec = (
    dict,
    lambda values: {
        str(key): _read_number(number) for key, number in values.items()
    },
)
_FLAG: Codec = (bool, lambda value: value is True)
_AFFINITY: Codec = (_read_affinity, _read_affinity)
TIME: Codec = (_write_time, _read_time)
_SECONDS: Codec = (
    lambda length: int(length.total_seconds()),
    lambda seconds: datetime.timedelta(seconds=int(seconds)),
)


def written(values: object, fields: Mapping[str, Codec]) -> dict[str, Any]:
    """Return attributes of an object as a JSON document."""
    return {
        key: codec[0](getattr(values, key)) for key, codec in fields.items()
    }


def values_of(
    document: Mapping[str, Any], fields: Mapping[str, Codec]
) -> dict[str, Any]:
    """Return the values in a JSON document.

    :raises LookupError: if one is missing.
    """
    return {key: codec[1](document[key]) for key, codec in fields.items()}


_FIELDS = {
    'incarnation': TEXT,
    'project': TEXT,
    'start': TIME,
    'end': optional(TIME),
    'amount': _NUMBER,
    'affinity': _AFFINITY,
    'name': TEXT,
    'note': TEXT,
    'shared': _TEXTS,
    'only_on': _TEXTS,
    'warn_before': optional(_SECONDS),
    'unused_since': optional(TIME),
    'leaving': _TEXTS,
    'has_access': _FLAG,
    'change': _NUMBER,
    'asked_by': TEXT,
    'pages': _NUMBER,
}
_SHAPE = {'extra_specs': _TEXT_BY_KEY}
_PENDING = {name: _FIELDS[name] for name in ('amount', 'end', 'leaving')}


# An event has only what differs from the one before.
_EVENT = {
    'end': optional(TIME),
    'amount': _NUMBER,
    'leaving': _TEXTS,
    'open': _NUMBER_BY_KEY,
    'down': _TEXTS,
    'boot_until': optional(TIME),
}


@dataclasses.dataclass(frozen=True)
class Records:
    """The contents of all records.

    :param problems: The errors of records that cannot be read, by reservation
        id.
    :param foreign: The flavors of reservations of other programs, and of those
        whose record cannot be read, by reservation id.
    :param old_flavors: The ids of the flavors of earlier revisions, by
        reservation id.
    :param strays: The flavors of revisions of reservations that no longer
        exist.
    :param archives: The flavors of archives, and of pages of events; see
        ``history``.
    """

    reservations: Mapping[str, Reservation]
    problems: Mapping[str, errors.ReservationError]
    foreign: Mapping[str, Flavor]
    old_flavors: Mapping[str, tuple[str, ...]]
    strays: Mapping[names.Revision, FlavorRecord]
    archives: tuple[FlavorRecord, ...] = ()

    @lazy_property
    def needs(self) -> Mapping[str, Mapping[str, int]]:
        """What a slot of each of our reservations needs, by its id.

        Those whose flavors have invalid extra specs are left out.
        """
        return _needs(
            reservation.flavor for reservation in self.reservations.values()
        )

    @lazy_property
    def foreign_needs(self) -> Mapping[str, Mapping[str, int]]:
        """The same of the reservations of others."""
        return _needs(self.foreign.values())


def _needs(flavors: Iterable[Flavor]) -> dict[str, dict[str, int]]:
    # There are many flavors but few sizes, so each size is computed once.
    by_size: dict[tuple[object, ...], dict[str, int] | None] = {}
    found = {}
    for flavor in flavors:
        size = _size(flavor)
        if size not in by_size:
            by_size[size] = None
            with contextlib.suppress(tools_errors.InvalidRequest):
                by_size[size] = needs(flavor)
        amounts = by_size[size]
        if amounts is not None:
            found[flavor.id] = amounts
    return found


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


def describe(reservation: Reservation) -> str:
    document: dict[str, Any] = {
        _MARK: _VERSION,
        **written(reservation, _FIELDS),
        'events': _documents(reservation.events),
        **written(reservation.shape, _SHAPE),
    }
    if reservation.pending:
        document['asked'] = written(reservation.pending, _PENDING)
    return _packed(document, 'incarnation')


def is_full(reservation: Reservation) -> bool:
    past = json.dumps(_documents(reservation.events)[1:])
    return len(past) > _MOST_OF_EVENTS


def describe_page(past: Iterable[Event]) -> str:
    return _packed({HISTORY_MARK: HISTORY_VERSION, 'events': _documents(past)})


def _documents(events: Iterable[Event]) -> list[dict[str, Any]]:
    entries = []
    before: dict[str, Any] = {}
    for event in events:
        values = written(event, _EVENT)
        by = {'by': event.by} if event.by else {}
        changed = {
            key: value
            for key, value in values.items()
            if key not in before or before[key] != value
        }
        entries.append({'at': _write_time(event.at), **by, **changed})
        before = values
    return entries


def parse_events(entries: Iterable[Mapping[str, Any]]) -> tuple[Event, ...]:
    events = []
    values: dict[str, Any] = {}
    for entry in entries:
        values |= entry
        events.append(
            Event(
                at=_read_time(entry['at']),
                by=str(entry.get('by', '')),
                **values_of(values, _EVENT),
            )
        )
    return tuple(events)


def _packed(document: dict[str, Any], *plain: str) -> str:
    """Return a document as text, compressed if it would be too long.

    :param plain: The keys besides the first one to have uncompressed, too.
    """
    text = json.dumps(document)
    if len(text) <= _LONGEST:
        return text
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    mark = next(iter(document))
    kept = {key: document[key] for key in (mark, *plain)}
    return json.dumps({**kept, _PACKED: packed})


def unpacked(description: str) -> Any:
    """Return the document in a description.

    :raises ValueError: if it is none.
    """
    document = json.loads(description)
    if isinstance(document, dict) and _PACKED in document:
        try:
            text = zlib.decompress(base64.b64decode(document[_PACKED]))
        except zlib.error as exc:
            raise ValueError(str(exc)) from exc
        return json.loads(text)
    return document


def is_ours(description: str | None) -> bool:
    return _MARK in (description or '')


def read(flavors: Iterable[FlavorRecord]) -> Records:
    originals = {}
    archives = []
    revisions: dict[str, list[tuple[names.Revision, FlavorRecord]]] = {}
    for record in flavors:
        revision = names.revision_of(record.flavor.id)
        if names.is_history(record.flavor.id):
            archives.append(record)
        elif revision is None:
            originals[record.flavor.id] = record
        else:
            entries = revisions.setdefault(revision.reservation, [])
            entries.append((revision, record))
    reservations = {}
    problems = {}
    foreign = {}
    old_flavors = {}
    for name, original in originals.items():
        flavor = original.flavor
        if not is_ours(original.description):
            foreign[name] = flavor
            if name in revisions and BLAZAR_MARK not in original.description:
                # Another client replaced the description. The revisions are
                # all that is left of the record.
                problems[name] = _replaced(flavor, revisions.pop(name))
            continue
        entries = revisions.pop(name, [])
        try:
            newest = parse(flavor, original.description)
            own = sorted(
                (
                    (revision, entry)
                    for revision, entry in entries
                    if revision.incarnation == newest.incarnation
                ),
                key=lambda entry: entry[0].number,
            )
            if own:
                revision, entry = own.pop()
                newest = parse(flavor, entry.description, revision.number)
        except errors.ReservationError as exc:
            problems[name] = exc
            # Its slots count like those of other programs.
            foreign[name] = flavor
            continue
        reservations[name] = newest
        if own:
            old_flavors[name] = tuple(r.flavor_id for r, _ in own)
        others = [e for e in entries if e[0].incarnation != newest.incarnation]
        if others:
            revisions[name] = others
    strays = {
        revision: record
        for entries in revisions.values()
        for revision, record in entries
    }
    return Records(
        reservations,
        problems,
        foreign,
        old_flavors,
        strays,
        tuple(archives),
    )


def _replaced(
    flavor: Flavor, entries: Iterable[tuple[names.Revision, FlavorRecord]]
) -> errors.ReservationError:
    newest = max(
        (revision for revision, _ in entries),
        key=lambda revision: revision.number,
    )
    return errors.ReservationError(
        flavor.id,
        f'has a flavor {flavor.name} whose description was replaced; run '
        f'{_describe(flavor)} with the description of flavor '
        f'{names.flavor(newest.flavor_id)}',
    )


def _describe(flavor: Flavor) -> str:
    return shell.command(
        shell.Kind.FLAVOR_SET, '--description', 'TEXT', names=[flavor.name]
    )


def parse(flavor: Flavor, description: str, revision: int = 0) -> Reservation:
    """Parse a reservation.

    :param description: Its description, or that of a later revision.
    """
    try:
        document = unpacked(description)
        version = document[_MARK]
        if version != _VERSION:
            raise errors.ReservationError(
                flavor.id,
                f'was written in format {version}, but this release only '
                f'knows format {_VERSION}; use the newer release for it',
            )
        if names.reservation_id(flavor.id) != flavor.id:
            raise ValueError(f'{flavor.id} is not written as a uuid')
        pending = document.get('asked')
        past = parse_events(document['events'])
        last = past[-1] if past else None
        return Reservation(
            id=flavor.id,
            shape=dataclasses.replace(
                Shape.like(flavor), **values_of(document, _SHAPE)
            ),
            pending=pending and PendingChange(**values_of(pending, _PENDING)),
            open=last.open if last else {},
            down=last.down if last else (),
            events=past,
            revision=revision,
            **values_of(document, _FIELDS),
        )
    except (
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        tools_errors.InvalidRequest,
    ) as exc:
        delete = shell.command(shell.Kind.FLAVOR_DELETE, names=[flavor.name])
        raise errors.ReservationError(
            flavor.id,
            f'has a flavor {flavor.name} whose description is broken '
            f'({exc!r}); correct it with {_describe(flavor)}, or run {delete} '
            'once nothing uses it',
        ) from exc
