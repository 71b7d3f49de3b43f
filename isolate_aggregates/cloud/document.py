# SPDX-License-Identifier: Apache-2.0
"""The document of a cloud file, and the snapshot it stands for.

Short where people write one: uuids may be left out and are then derived from
the names, an inventory may be just its total, aggregates may be named, and
membership of host aggregates is mirrored onto the root providers as Nova does
it (`Aggregates in Placement
<https://docs.openstack.org/nova/latest/admin/aggregates.html#aggregates-in-placement>`_).
"""

import collections
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
import uuid

import os_traits
from oslo_utils import uuidutils

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.placement.provider import Inventory, Provider
from isolate_aggregates.request import Flavor, Image

VERSION = 1

# Fixed, so that the same file gives the same uuids everywhere.
_NAMESPACE = uuid.UUID('5f0d7c5a-6f0e-4f5b-9d0c-3f3a7b0e9c11')


class Contradictions(ValueError):
    """Each part of a document is well-formed, but they do not fit together.

    :param problems: What does not fit, each naming the place.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__('; '.join(self.problems))


def derived_uuid(kind: str, name: str) -> str:
    """Return the uuid that a thing without one gets in a cloud file.

    :param kind: ``aggregate``, ``provider``, ``flavor`` or ``image``.
    """
    return str(uuid.uuid5(_NAMESPACE, f'{kind}:{name}'))


def to_snapshot(document: Mapping[str, Any], origin: str) -> Snapshot:
    """Return the cloud that a document describes.

    :raises Contradictions: if its parts do not fit together.
    """
    problems: list[str] = []
    snapshot = _Reader(document, problems).read(origin)
    if problems:
        raise Contradictions(problems)
    return snapshot


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _texts(mapping: Mapping[str, Any] | None) -> dict[str, str]:
    return {key: _text(value) for key, value in (mapping or {}).items()}


class _Reader:
    """Reads a valid document, noting what does not fit together."""

    def __init__(
        self, document: Mapping[str, Any], problems: list[str]
    ) -> None:
        self._document = document
        self._problems = problems
        self._names: dict[str, str] = {}

    def read(self, origin: str) -> Snapshot:
        aggregates = tuple(self._aggregates())
        named = [
            (entry['name'], _uuid(entry, 'aggregate'))
            for entry in self._document.get('placement_aggregates', [])
        ]
        both = [(a.name, a.uuid) for a in aggregates] + named
        self._names = dict(both)
        place = '$.aggregates' + (', $.placement_aggregates' if named else '')
        self._distinct(place, 'uuid', both)
        mirror = self._document.get('mirror_host_aggregates', True)
        index = AggregateIndex(aggregates if mirror else ())
        mirrored = index.aggregates_of
        providers = tuple(
            provider
            for number, entry in enumerate(self._document.get('providers', []))
            for provider in self._tree(
                entry, f'$.providers[{number}]', None, mirrored
            )
        )
        if providers:
            # A misspelt host would leave a real one out of the aggregate.
            unknown = mirrored.keys() - {p.host for p in providers}
            self._problems.extend(
                f'$.aggregates names the host {host!r}, which no provider '
                'has; with mirror_host_aggregates: false it may'
                for host in sorted(unknown)
            )
        self._distinct(
            '$.providers', 'uuid', [(p.name, p.uuid) for p in providers]
        )
        flavors = tuple(self._flavors())
        self._distinct('$.flavors', 'id', [(f.name, f.id) for f in flavors])
        images = tuple(self._images())
        return Snapshot(
            origin=origin,
            aggregates=aggregates,
            providers=providers,
            flavors=flavors,
            images=images,
            settings=dict(self._settings()),
            placement_aggregates={key: name for name, key in named},
        )

    def _distinct(
        self, place: str, key: str, things: list[tuple[str, str]]
    ) -> None:
        """Note names and keys that several things have."""
        self._once(place, 'the name', [name for name, _ in things])
        # The same name may have led to the same key, which is no news.
        keys = [key for _, key in dict.fromkeys(things)]
        self._once(place, f'the {key}', keys)

    def _once(self, place: str, what: str, values: Iterable[str]) -> None:
        for value, number in collections.Counter(values).items():
            if number > 1:
                self._problems.append(
                    f'{place}: {number} have {what} {value!r}; give each its '
                    'own'
                )

    def _settings(self) -> Iterator[tuple[tuple[str, str], object]]:
        for group, options in self._document.get('settings', {}).items():
            for option, value in options.items():
                if (group, option) in ia_conf.CLOUD_SETTINGS:
                    yield (group, option), value
                    continue
                known = ', '.join(
                    f'{g}.{o}' for g, o in ia_conf.CLOUD_SETTINGS
                )
                self._problems.append(
                    f'$.settings.{group}.{option} is no setting of a cloud '
                    f'file; known are {known}'
                )

    def _aggregates(self) -> Iterator[Aggregate]:
        for entry in self._document.get('aggregates', []):
            name = entry['name']
            yield Aggregate(
                uuid=_uuid(entry, 'aggregate'),
                name=name,
                metadata=_texts(entry.get('metadata')),
                hosts=frozenset(entry.get('hosts', [])),
                id=entry.get('id'),
                availability_zone=entry.get('availability_zone'),
            )

    def _tree(
        self,
        entry: Mapping[str, Any],
        path: str,
        parent: str | None,
        mirrored: Mapping[str, frozenset[str]],
    ) -> Iterator[Provider]:
        traits = frozenset(entry.get('traits', []))
        # A root is a compute node unless it says otherwise or shares.
        sharing = os_traits.MISC_SHARES_VIA_AGGREGATE in traits
        default = None if parent or sharing else entry['name']
        host = entry.get('host', default)
        if parent and host:
            self._problems.append(
                f'{path}.host is set, but only a root can be a compute node'
            )
        members = {
            self._aggregate(name, f'{path}.aggregates')
            for name in entry.get('aggregates', [])
        }
        provider = Provider(
            uuid=_uuid(entry, 'provider'),
            name=entry['name'],
            parent=parent,
            host=host,
            inventories=dict(_inventories(entry)),
            usages=dict(self._usages(entry, path)),
            traits=traits,
            aggregates=frozenset(members | mirrored.get(host, frozenset())),
        )
        yield provider
        for number, child in enumerate(entry.get('children', [])):
            yield from self._tree(
                child, f'{path}.children[{number}]', provider.uuid, mirrored
            )

    def _aggregate(self, name: str, path: str) -> str:
        if uuidutils.is_uuid_like(name):
            return str(uuid.UUID(name))
        if name not in self._names:
            self._problems.append(
                f'{path} names {name!r}, which is neither a uuid nor an '
                'aggregate of this file'
            )
        return self._names.get(name, name)

    def _usages(
        self, entry: Mapping[str, Any], path: str
    ) -> Iterator[tuple[str, int]]:
        for resource_class, used in entry.get('usages', {}).items():
            if used and resource_class not in entry.get('inventories', {}):
                self._problems.append(
                    f'{path}.usages.{resource_class} is used but not in the '
                    'inventories'
                )
            elif used:
                yield resource_class, used

    def _flavors(self) -> Iterator[Flavor]:
        for entry in self._document.get('flavors', []):
            sizes = {
                key: entry.get(key, 0)
                for key in ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')
            }
            yield Flavor(
                name=entry['name'],
                id=str(entry.get('id', derived_uuid('flavor', entry['name']))),
                extra_specs=_texts(entry.get('extra_specs')),
                **sizes,
            )

    def _images(self) -> Iterator[Image]:
        entries = self._document.get('images', [])
        ids = [e['id'] for e in entries if 'id' in e]
        self._once('$.images', 'the id', ids)
        without = [e['name'] for e in entries if 'id' not in e]
        self._once('$.images', 'no id and the name', without)
        for entry in entries:
            yield Image(
                name=entry['name'],
                id=entry.get('id') or derived_uuid('image', entry['name']),
                properties=_texts(entry.get('properties')),
                owner=entry.get('owner'),
                visibility=entry.get('visibility'),
                disk_format=entry.get('disk_format'),
            )


def _inventories(entry: Mapping[str, Any]) -> Iterator[tuple[str, Inventory]]:
    for resource_class, value in entry.get('inventories', {}).items():
        fields = {'total': value} if isinstance(value, int) else value
        yield resource_class, Inventory(**fields)


def _uuid(entry: Mapping[str, Any], kind: str) -> str:
    return str(entry.get('uuid') or derived_uuid(kind, entry['name'])).lower()


def from_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as the document of a cloud file.

    Reading the document back gives an equal one, but for its origin.
    """
    children: dict[str | None, list[Provider]] = {}
    for provider in snapshot.providers:
        children.setdefault(provider.parent, []).append(provider)
    settings: dict[str, dict[str, object]] = {}
    for (group, option), value in snapshot.settings.items():
        settings.setdefault(group, {})[option] = value
    return {
        'version': VERSION,
        'settings': settings,
        # Memberships are written out as they are, even where Nova's mirror
        # is incomplete.
        'mirror_host_aggregates': False,
        'aggregates': [
            _without_empty(
                name=a.name,
                uuid=a.uuid,
                id=a.id,
                availability_zone=a.availability_zone,
                metadata=dict(sorted(a.metadata.items())),
                hosts=sorted(a.hosts),
            )
            for a in snapshot.aggregates
        ],
        'placement_aggregates': [
            {'name': name, 'uuid': key}
            for key, name in snapshot.placement_aggregates.items()
        ],
        'providers': [
            _tree_document(root, children) for root in children.get(None, [])
        ],
        'flavors': [
            _without_empty(
                name=f.name,
                id=f.id,
                vcpus=f.vcpus,
                ram=f.ram,
                disk=f.disk,
                ephemeral=f.ephemeral,
                swap=f.swap,
                extra_specs=dict(sorted(f.extra_specs.items())),
            )
            for f in snapshot.flavors
        ],
        'images': [
            {'name': i.name}
            | _without_empty(
                id=i.id,
                owner=i.owner,
                visibility=i.visibility,
                disk_format=i.disk_format,
                properties=dict(sorted(i.properties.items())),
            )
            for i in snapshot.images
        ],
    }


def _tree_document(
    provider: Provider, children: Mapping[str | None, list[Provider]]
) -> dict[str, Any]:
    document = _without_empty(
        name=provider.name,
        uuid=provider.uuid,
        inventories={
            resource_class: vars(inventory)
            for resource_class, inventory in sorted(
                provider.inventories.items()
            )
        },
        usages=dict(sorted(provider.usages.items())),
        traits=sorted(provider.traits),
        aggregates=sorted(provider.aggregates),
        children=[
            _tree_document(child, children)
            for child in children.get(provider.uuid, [])
        ],
    )
    if provider.parent is None:
        document['host'] = provider.host
    return document


def _without_empty(**fields: Any) -> dict[str, Any]:
    """Drop what reads back the same when it is left out."""
    return {
        key: value
        for key, value in fields.items()
        if value not in (None, 0, [], {})
    }
