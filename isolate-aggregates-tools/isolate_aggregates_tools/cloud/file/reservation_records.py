# SPDX-License-Identifier: Apache-2.0
"""Records of reservations in cloud files."""

from collections.abc import Callable, Iterable, Mapping
import datetime
from typing import Any

from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.cloud.file.contradictions import Collector
from isolate_aggregates_tools.compute.records import (
    FlavorRecord,
    ReservationRecords,
)

KEY = 'reservations'
_TIME = 'read_at'
_RECORDS = 'records'


def read(
    document: Mapping[str, Any],
    flavors: Iterable[Flavor],
    flavor_of: Callable[[Mapping[str, Any]], Flavor],
    contradictions: Collector,
) -> ReservationRecords | None:
    """Return the records of a document; None if they are unknown.

    :param flavors: The flavors of the document, which records may name.
    :param flavor_of: Reads a flavor that only holds a record.
    """
    entry = document.get(KEY)
    if entry is None:
        return None
    by_name = {flavor.name: flavor for flavor in flavors}
    records = []
    for number, each in enumerate(entry[_RECORDS]):
        flavor = each['flavor']
        if isinstance(flavor, str):
            contradictions.look_up(
                (KEY, _RECORDS, number, 'flavor'),
                flavor,
                by_name,
                'which is not a flavor of this file',
            )
            flavor = by_name.get(flavor, Flavor(flavor))
        else:
            flavor = flavor_of(flavor)
        records.append(FlavorRecord(flavor, each.get('description', '')))
    return ReservationRecords(_time(entry, contradictions), tuple(records))


def _time(
    entry: Mapping[str, Any], contradictions: Collector
) -> datetime.datetime:
    text = str(entry[_TIME])
    try:
        time = datetime.datetime.fromisoformat(text)
        if time.tzinfo:
            return time.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        pass
    contradictions.note(
        (KEY, _TIME),
        f'is {text!r}; it must be a time with a time zone, such as '
        "'2027-03-01T08:00:00+00:00'",
    )
    return datetime.datetime.now(datetime.UTC)


def document(
    known: ReservationRecords | None,
    flavors: Iterable[Flavor],
    document_of: Callable[[Flavor], Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the records that are known, for a document."""
    if known is None:
        return {}
    by_name = {flavor.name: flavor for flavor in flavors}
    return {
        KEY: {
            _TIME: known.read_at.astimezone(datetime.UTC).isoformat(),
            _RECORDS: [
                {
                    'flavor': each.flavor.name
                    if by_name.get(each.flavor.name) == each.flavor
                    else document_of(each.flavor),
                    'description': each.description,
                }
                for each in known.flavors
            ],
        }
    }
