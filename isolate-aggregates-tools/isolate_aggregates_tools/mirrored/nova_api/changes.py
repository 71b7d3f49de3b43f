# SPDX-License-Identifier: Apache-2.0
"""Which changes of aggregates and flavors nova-api refuses.

Repeats ``AggregateAPI`` of ``nova.compute.api``, which is the same in releases
31 to 34, and the JSON schemas of the requests.
"""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
import re

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import ZONE, zone_of
from isolate_aggregates.request import Flavor
from isolate_aggregates.text import listed, quoted

_LONGEST = 255
_KEY = re.compile(r'[a-zA-Z0-9-_:. ]*')


def of_aggregate(
    old: Aggregate | None,
    new: Aggregate,
    others: Callable[[], Iterable[Aggregate]],
    occupied: Collection[str],
    by_metadata: bool = False,
) -> Iterator[str]:
    """Yield why Nova refuses a change, without full stops.

    :param old: The aggregate before the change; None if it is created.
    :param others: Returns the other aggregates, of which there can be many.
    :param occupied: The hosts with servers.
    :param by_metadata: Whether the zone is set with the metadata: then Nova
        does not check which characters it has.
    """
    if old is None or old.name != new.name:
        yield from wrong_name(new.name, is_new=old is None)
        # Nova strips the name of an aggregate that is renamed.
        if any(new.name.strip() == other.name for other in others()):
            yield f'there is an aggregate {quoted(new.name)} already'
    # The zone has rules of its own.
    tags = {key: v for key, v in new.metadata.items() if key != ZONE}
    yield from wrong_values(old.metadata if old else {}, tags, 'metadata')
    zone, before = zone_of(new), zone_of(old) if old else None
    if zone != before or (old is None and zone is not None):
        if not (zone and by_metadata):
            yield from wrong_zone(zone)
        if zone and old is not None:
            yield from _moved(old, zone, tuple(others()), occupied)
    if old is not None:
        yield from _hosts(old, new, others, occupied)


def of_flavor(old: Flavor | None, new: Flavor) -> Iterator[str]:
    """Yield why Nova refuses a change, without full stops."""
    if old is None:
        yield from wrong_name(new.name)
    yield from wrong_values(
        old.extra_specs if old else {}, new.extra_specs, 'extra spec'
    )


def wrong_name(name: str, is_new: bool = True) -> Iterator[str]:
    """Yield why the schema refuses a name.

    :param is_new: Whether it is the name of something new: Nova strips the
        name of an aggregate that is renamed.
    """
    if not name.strip():
        yield 'a name must not be empty'
    elif not name.isprintable() or (is_new and name != name.strip()):
        yield (
            f'the name {quoted(name)} begins or ends with a space, or has '
            'characters that are not printable'
        )
    elif len(name) > _LONGEST:
        yield f'the name has {len(name)} characters; {_LONGEST} are allowed'


def wrong_values(
    old: Mapping[str, str], new: Mapping[str, str], kind: str
) -> Iterator[str]:
    """Yield why the schema refuses new metadata or extra specs.

    :param kind: What they are.
    """
    for key, value in new.items():
        if old.get(key) == value:
            continue
        if not key or len(key) > _LONGEST:
            yield (
                f'a {kind} key has {len(key)} characters; 1 to {_LONGEST} are '
                'allowed'
            )
        elif not _KEY.fullmatch(key):
            yield (
                f'the {kind} key {quoted(key)} has characters other than '
                'letters, digits, spaces and -_:.'
            )
        elif len(value) > _LONGEST:
            yield (
                f'the value of {kind} {quoted(key)} has {len(value)} '
                f'characters; {_LONGEST} are allowed'
            )


def wrong_zone(zone: str | None) -> Iterator[str]:
    """Yield why Nova refuses the zone of an aggregate."""
    if not zone:
        yield (
            'an availability zone cannot be removed from an aggregate; create '
            'another aggregate instead'
        )
    elif ':' in zone or zone != zone.strip() or not zone.isprintable():
        yield (
            f'the availability zone {quoted(zone)} has a colon, begins or '
            'ends with a space, or has characters that are not printable'
        )
    elif len(zone) > _LONGEST:
        yield (
            f'the availability zone has {len(zone)} characters; {_LONGEST} '
            'are allowed'
        )


def _moved(
    aggregate: Aggregate,
    zone: str,
    others: Iterable[Aggregate],
    occupied: Collection[str],
) -> Iterator[str]:
    """Yield why an aggregate with its hosts may not get a zone."""
    here = {
        host: zones
        for host in aggregate.hosts
        if (zones := _zones(host, others) - {zone})
    }
    if here:
        yield _elsewhere(here)
    busy = aggregate.hosts.intersection(occupied)
    if busy:
        yield (
            f'there are servers on {listed(busy)}, and the availability zone '
            'of a host with servers cannot change'
        )


def _hosts(
    old: Aggregate,
    new: Aggregate,
    others: Callable[[], Iterable[Aggregate]],
    occupied: Collection[str],
) -> Iterator[str]:
    zone = zone_of(new)
    if not zone:
        return
    for host in sorted(old.hosts ^ new.hosts):
        is_added = host in new.hosts
        zones = _zones(host, others())
        if is_added and zones - {zone}:
            yield _elsewhere({host: zones - {zone}})
        elif host in occupied and zone not in zones:
            yield (
                f'there are servers on {host}, and its availability zone '
                f'{"would become" if is_added else "is"} {quoted(zone)}'
            )


def _zones(host: str, aggregates: Iterable[Aggregate]) -> set[str]:
    zones = (zone_of(each) for each in aggregates if host in each.hosts)
    return {zone for zone in zones if zone is not None}


def _elsewhere(zones: Mapping[str, Collection[str]]) -> str:
    host = min(zones)
    return (
        f'{host} is in availability zone {listed(map(quoted, zones[host]))} '
        'by another aggregate, and a host can be in one only'
    )
