# SPDX-License-Identifier: Apache-2.0
"""Computes the differences between two snapshots."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
from typing import Any

from isolate_aggregates_tools.cloud.file import serialize
from isolate_aggregates_tools.cloud.snapshot import Snapshot

# The sections of a cloud file, with the name of an item.
_KINDS = {
    'aggregates': 'aggregate',
    'placement_aggregates': 'Placement aggregate',
    'providers': 'resource provider',
    'flavors': 'flavor',
    'images': 'image',
    'servers': 'server',
}
# The sections that are lists of names.
_NAMES = {'traits': 'trait', 'resource_classes': 'resource class'}


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference.

    :param what: The path of the changed part, for example
        ``metadata.trait:X``; empty for the whole object.
    :param before: The old value; None if it did not exist.
    :param after: The new value; None if it no longer exists.
    """

    kind: str
    name: str
    what: str
    before: Any
    after: Any


def changes(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    """Yield the differences between two snapshots, by kind and name.

    Objects are compared with those of the same uuid or id.
    """
    old, new = map(serialize.document, (before, after))
    yield from _parts('setting', 'settings', old['settings'], new['settings'])
    names = {
        aggregate['uuid']: aggregate['name']
        for cloud in (old, new)
        for section in ('placement_aggregates', 'aggregates')
        for aggregate in cloud[section]
    }
    for section, kind in _KINDS.items():
        if not (section in old and section in new):
            # It is not known which servers there are.
            continue
        olds, news = (_by_id(cloud[section]) for cloud in (old, new))
        for key in sorted(
            olds.keys() | news.keys(),
            key=lambda k: _label(olds.get(k) or news[k]),
        ):
            for change in _change(kind, olds.get(key), news.get(key)):
                if (kind, change.what) == ('resource provider', 'aggregates'):
                    yield dataclasses.replace(
                        change,
                        before=_named(change.before, names),
                        after=_named(change.after, names),
                    )
                else:
                    yield change
    for section, kind in _NAMES.items():
        was_idle, is_idle = (
            set(cloud.get(section, ())) for cloud in (old, new)
        )
        # A name that a provider has exists too, but is not in the section.
        removals = was_idle - is_idle - _held(section, after)
        additions = is_idle - was_idle - _held(section, before)
        for name in sorted(removals | additions):
            was, is_now = (
                name if name in some else None
                for some in (removals, additions)
            )
            yield Change(kind, name, '', was, is_now)


def _held(section: str, snapshot: Snapshot) -> frozenset[str]:
    """Return the traits or resource classes that providers have."""
    return frozenset().union(
        *(
            provider.traits if section == 'traits' else provider.inventories
            for provider in snapshot.providers
        )
    )


def _named(
    uuids: Iterable[str] | None, names: Mapping[str, str]
) -> list[dict[str, Any]] | None:
    if uuids is None:
        return None
    return [{'name': names.get(uuid), 'uuid': uuid} for uuid in uuids]


def _label(thing: Mapping[str, Any]) -> str:
    # Servers may have no name.
    return str(thing.get('name') or thing['id'])


def _by_id(things: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    by_id = {}
    for thing in things:
        children = thing.pop('children', [])
        by_id[str(thing.get('uuid') or thing.get('id'))] = thing
        by_id |= _by_id(children)
    return by_id


def _change(
    kind: str, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> Iterator[Change]:
    if old is None or new is None:
        some = old or new or {}
        yield Change(kind, _label(some), '', old, new)
        return
    yield from _parts(kind, _label(new), old, new)


def _parts(
    kind: str, name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Change]:
    for path, before, after in _leaves(old, new):
        yield Change(kind, name, path, before, after)


def _leaves(
    old: Mapping[str, Any], new: Mapping[str, Any], path: str = ''
) -> Iterator[tuple[str, Any, Any]]:
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        where = f'{path}.{key}' if path else key
        mappings = [
            value or {}
            for value in (before, after)
            if value is None or isinstance(value, Mapping)
        ]
        if len(mappings) == 2:
            yield from _leaves(mappings[0], mappings[1], where)
        else:
            yield where, before, after
