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
from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import json
from typing import Any
import zlib

from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import errors, events, names, stored
from isolate_aggregates.reservations.reservation import (
    Event,
    Labels,
    PendingChange,
    Reservation,
    Shape,
)
from isolate_aggregates.tools import errors as tools_errors

# The key that marks our descriptions, and the version of the format.
_MARK = 'isolate-aggregates-reservation'
_VERSION = 1

# Nova takes descriptions of 65,535 characters.
_LONGEST = 60_000
_PACKED = 'packed'

# The key that marks archives and pages of events; see ``history``.
HISTORY_MARK = 'isolate-aggregates-history'
HISTORY_VERSION = 1

# The key that marks the descriptions of Blazar's reservations; see
# blazar.record.
BLAZAR_MARK = 'isolate-aggregates-blazar'


@dataclasses.dataclass(frozen=True)
class FlavorRecord:
    """A flavor with the name of a reservation's flavor."""

    flavor: Flavor
    description: str


@dataclasses.dataclass(frozen=True)
class Records:
    """The contents of all records.

    :param problems: The errors of records that cannot be read, by reservation
        id.
    :param foreign: The flavors of reservations of other programs, and of those
        whose record cannot be read, by reservation id.
    :param old_flavors: The ids of the flavors of earlier revisions, by
        reservation id.
    :param strays: Revisions of reservations that no longer exist.
    :param archives: The flavors of archives, and of pages of events; see
        ``history``.
    """

    reservations: Mapping[str, Reservation]
    problems: Mapping[str, errors.ReservationError]
    foreign: Mapping[str, Flavor]
    old_flavors: Mapping[str, tuple[str, ...]]
    strays: tuple[names.Revision, ...]
    archives: tuple[FlavorRecord, ...] = ()


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
        'name': reservation.labels.name,
        'note': reservation.labels.note,
        'shared': list(reservation.shared),
        'only_on': list(reservation.only_on),
        'warn_before': None
        if reservation.warn_before is None
        else int(reservation.warn_before.total_seconds()),
        'unused_since': _text(reservation.unused_since),
        'leaving': list(reservation.leaving),
        'has_access': reservation.has_access,
        'change': reservation.change,
        'asked_by': reservation.asked_by,
        'events': events.documents(reservation.events),
        'pages': reservation.pages,
        'extra_specs': dict(sorted(reservation.shape.extra_specs.items())),
    }
    pending = reservation.pending
    if pending is not None:
        document['asked'] = {
            'amount': pending.amount,
            'end': _text(pending.end),
            'leaving': list(pending.leaving),
        }
    return _packed(document, 'incarnation')


def describe_page(past: Iterable[Event]) -> str:
    """Return the description of the flavor of a page of events."""
    return _packed(
        {HISTORY_MARK: HISTORY_VERSION, 'events': events.documents(past)}
    )


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
    """Return whether a flavor's description has our mark."""
    return _MARK in (description or '')


def read(flavors: Iterable[FlavorRecord]) -> Records:
    """Parse records and their revisions."""
    originals = {}
    archives = []
    revisions: dict[str, list[tuple[names.Revision, str]]] = {}
    for record in flavors:
        revision = names.revision_of(record.flavor.id)
        if names.is_history(record.flavor.id):
            archives.append(record)
        elif revision is None:
            originals[record.flavor.id] = record
        else:
            entries = revisions.setdefault(revision.reservation, [])
            entries.append((revision, record.description))
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
                    (revision, description)
                    for revision, description in entries
                    if revision.incarnation == newest.incarnation
                ),
                key=lambda entry: entry[0].number,
            )
            if own:
                revision, description = own.pop()
                newest = parse(flavor, description, revision.number)
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
    strays = tuple(
        revision for entries in revisions.values() for revision, _ in entries
    )
    return Records(
        reservations,
        problems,
        foreign,
        old_flavors,
        strays,
        tuple(archives),
    )


def _replaced(
    flavor: Flavor, entries: Iterable[tuple[names.Revision, str]]
) -> errors.ReservationError:
    newest = max(
        (revision for revision, _ in entries),
        key=lambda revision: revision.number,
    )
    return errors.ReservationError(
        flavor.id,
        f'has a flavor {flavor.name} whose description was replaced; set it '
        f'to the description of flavor {names.flavor(newest.flavor_id)}',
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
        pending = document.get('asked')
        if names.reservation_id(flavor.id) != flavor.id:
            raise ValueError(f'{flavor.id} is not written as a uuid')
        past = events.parse(document.get('events', ()))
        last = past[-1] if past else None
        return Reservation(
            id=flavor.id,
            project=str(document['project']),
            start=stored.read(document['start']),
            end=_time(document['end']),
            amount=stored.amount(document['amount']),
            shape=dataclasses.replace(
                Shape.like(flavor),
                extra_specs={
                    str(key): str(value)
                    for key, value in document['extra_specs'].items()
                },
            ),
            affinity=_affinity(document['affinity']),
            labels=Labels(
                str(document.get('name', '')), str(document.get('note', ''))
            ),
            shared=_texts(document, 'shared'),
            only_on=_texts(document, 'only_on'),
            warn_before=None
            if document['warn_before'] is None
            else datetime.timedelta(seconds=int(document['warn_before'])),
            unused_since=_time(document['unused_since']),
            leaving=_texts(document, 'leaving'),
            has_access=document['has_access'] is True,
            pending=pending
            and PendingChange(
                stored.amount(pending['amount']),
                _time(pending['end']),
                _texts(pending, 'leaving'),
            ),
            change=stored.amount(document['change']),
            asked_by=str(document.get('asked_by', '')),
            open=last.open if last else {},
            down=last.down if last else (),
            events=past,
            pages=stored.amount(document.get('pages', 0)),
            incarnation=str(document['incarnation']),
            revision=revision,
        )
    except (
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        tools_errors.InvalidRequest,
    ) as exc:
        raise errors.ReservationError(
            flavor.id,
            f'has a flavor {flavor.name} whose description is broken '
            f'({exc!r}); correct it, or delete the flavor once nothing uses '
            'it',
        ) from exc


def _text(time: datetime.datetime | None) -> str | None:
    return None if time is None else stored.written(time)


def _time(text: str | None) -> datetime.datetime | None:
    return None if text is None else stored.read(text)


def _texts(document: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(str(text) for text in document[key])


def _affinity(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f'{value!r} is not an affinity')
