# SPDX-License-Identifier: Apache-2.0
"""Converts the document of a cloud file to a snapshot.

Cloud files can be short: uuids may be omitted and are then derived from the
names, an inventory may be only its total, aggregates may be given by name, and
membership of host aggregates is mirrored to the root providers, as Nova does
(`Aggregates in Placement
<https://docs.openstack.org/nova/latest/admin/aggregates.html#aggregates-in-placement>`_).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
import dataclasses
import functools
import marshal
from typing import Any
import uuid

import os_traits
from oslo_config import cfg
from oslo_utils import uuidutils

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.derived import derived_uuid
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.suggestions import meant
from isolate_aggregates_tools.cloud.file import placing, reservation_records
from isolate_aggregates_tools.cloud.file.contradictions import Collector
from isolate_aggregates_tools.cloud.file.yaml_errors import Place
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import (
    Port,
    Server,
    Servers,
    hints_from,
)
from isolate_aggregates_tools.domains import Keystone, Project
from isolate_aggregates_tools.placement import names
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.request import ResourceGroup

VERSION = 1


# What names are checked, in mappings and in lists.
_MAPPINGS = ('inventories', 'usages')
_NAMES = {
    'traits': names.wrong_trait,
    **dict.fromkeys(
        (*_MAPPINGS, 'resource_classes'), names.wrong_resource_class
    ),
}


def to_snapshot(document: Mapping[str, Any], origin: str) -> Snapshot:
    """Return the snapshot that a document describes."""
    reader = _Reader(document)
    snapshot = reader.read(origin)
    reader.contradictions.check()
    return snapshot


def as_configured(value: object) -> str | list[str]:
    """Return a setting as text, as in a configuration file.

    oslo.config validates only texts, not values that have a type already. It
    would take a ``$`` for the name of another option.

    :raises TypeError: if a configuration file cannot have such a value.
    """
    if isinstance(value, list):
        return [str(as_configured(item)) for item in value]
    if isinstance(value, str | int | float):
        return str(value).replace('$', '$$')
    raise TypeError(
        'it must be text, a number, true, false or a list of these'
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _texts(mapping: Mapping[str, Any] | None) -> dict[str, str]:
    return {key: _text(value) for key, value in (mapping or {}).items()}


class _Reader:
    """Reads a valid document and collects contradictions."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.contradictions = Collector()
        self._document = document
        self._names: dict[str, str] = {}
        # The names and uuids of the providers, with their places.
        self._providers: list[tuple[str, str, Place]] = []
        # What providers have, by itself or as bytes: most have the same.
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self._inventories: dict[bytes, dict[str, Inventory]] = {}

    def read(self, origin: str) -> Snapshot:
        aggregates = tuple(self._aggregates())
        placement = self._document.get('placement_aggregates', [])
        identifiers = [
            (entry['name'], _uuid(entry, 'aggregate')) for entry in placement
        ]
        both = [
            *_placed('aggregates', ((a.name, a.uuid) for a in aggregates)),
            *_placed('placement_aggregates', identifiers),
        ]
        self._names = {name: key for name, key, _ in both}
        self.contradictions.distinct('uuid', both)
        mirror = self._document.get('mirror_host_aggregates', True)
        index = AggregateIndex(aggregates if mirror else ())
        by_host = index.aggregates_of
        providers = tuple(
            provider
            for number, entry in enumerate(self._document.get('providers', []))
            for provider in self._tree(
                entry, ('providers', number), None, by_host
            )
        )
        if providers and mirror:
            # A misspelled name would leave a host out of the aggregate.
            self._check_hosts({p.host for p in providers if p.host})
        self.contradictions.distinct('uuid', self._providers)
        flavors = tuple(self._flavors())
        self.contradictions.distinct(
            'id', _placed('flavors', ((f.name, f.id) for f in flavors))
        )
        images = tuple(self._images())
        domains = dict(self._domains())
        servers = self._servers(flavors, images)
        self._check_names(self._document, (), 'traits', 'resource_classes')
        return Snapshot(
            origin=origin,
            aggregates=aggregates,
            providers=providers,
            flavors=flavors,
            images=images,
            settings=dict(self._settings()),
            placement_aggregates={key: name for name, key in identifiers},
            traits=frozenset(self._document.get('traits', [])),
            resource_classes=frozenset(
                self._document.get('resource_classes', [])
            ),
            domains=domains,
            servers=servers,
            services=placing.services(self._document),
            keystone=self._keystone(),
            reservations=reservation_records.read(
                self._document, flavors, _own_flavor, self.contradictions
            ),
        )

    def _domains(self) -> Iterator[tuple[str, frozenset[str] | None]]:
        entries = self._document.get('domains', [])
        self.contradictions.once(
            'the id',
            (
                (entry['id'], ('domains', number))
                for number, entry in enumerate(entries)
            ),
        )
        for entry in entries:
            ids = entry['projects']
            yield entry['id'], None if ids is None else frozenset(ids)

    def _keystone(self) -> Keystone | None:
        entry = self._document.get('keystone')
        if entry is None:
            return None
        for kind, some in entry.items():
            self.contradictions.once(
                'the id',
                (
                    (each['id'], ('keystone', kind, number))
                    for number, each in enumerate(some)
                ),
            )
        names = {each['id']: each['name'] for each in entry['domains']}
        for number, each in enumerate(entry['projects']):
            self.contradictions.look_up(
                ('keystone', 'projects', number, 'domain'),
                each['domain'],
                names,
                'which is no domain of this file',
            )
        return Keystone(
            names, tuple(Project(**each) for each in entry['projects'])
        )

    def _check_hosts(self, hosts: Collection[str]) -> None:
        for number, entry in enumerate(self._document.get('aggregates', [])):
            for at, host in enumerate(entry.get('hosts', [])):
                self.contradictions.look_up(
                    ('aggregates', number, 'hosts', at),
                    host,
                    hosts,
                    'which no provider has',
                    '; to allow this, set mirror_host_aggregates: false',
                )

    def _settings(self) -> Iterator[tuple[tuple[str, str], object]]:
        conf = cfg.ConfigOpts()
        tools_options.register_own_opts(conf)
        valid = [f'{g}.{o}' for g, o in tools_options.CLOUD_SETTINGS]
        for group, options in self._document.get('settings', {}).items():
            for option, value in options.items():
                place = 'settings', group, option
                if (group, option) not in tools_options.CLOUD_SETTINGS:
                    self.contradictions.note(
                        place,
                        'is not a setting of a cloud file'
                        f'{meant(f"{group}.{option}", valid)}; the settings '
                        f'are {", ".join(valid)}',
                    )
                    continue
                try:
                    text = as_configured(value)
                    tools_options.set_default(conf, group, option, text)
                    tools_options.value_of(conf, group, option)
                except (ValueError, TypeError) as exc:
                    shown_value = 'empty' if value is None else repr(value)
                    problem = ia_conf.plain(exc)
                    self.contradictions.note(
                        place, f'cannot be {shown_value}: {problem}'
                    )
                yield (group, option), value

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
        place: Place,
        parent: str | None,
        by_host: Mapping[str, frozenset[str]],
    ) -> Iterator[Provider]:
        traits = frozenset(entry.get('traits', []))
        # A root provider is a compute node by default, unless it shares.
        sharing = os_traits.MISC_SHARES_VIA_AGGREGATE in traits
        default = None if parent or sharing else entry['name']
        host = entry.get('host', default)
        if parent and host:
            self.contradictions.note(
                (*place, 'host'),
                'is set, but only a root provider can be a compute node',
            )
        if traits not in self._sets:
            self._check_names(entry, place, 'traits')
        inventories = self._stock(entry, place)
        usages = entry.get('usages', {})
        if not (usages.keys() <= inventories.keys() and all(usages.values())):
            self._check_names(entry, place, 'usages')
            usages = dict(self._usages(usages, inventories, place))
        members = frozenset(
            _as_uuid(name) or self._aggregate(name, (*place, 'aggregates', at))
            for at, name in enumerate(entry.get('aggregates', []))
        )
        provider = Provider(
            uuid=_uuid(entry, 'provider'),
            name=entry['name'],
            parent=parent,
            host=host,
            inventories=inventories,
            usages=usages,
            traits=self._same(traits),
            aggregates=self._same(members | by_host.get(host, frozenset())),
        )
        self._providers.append((provider.name, provider.uuid, place))
        yield provider
        for number, child in enumerate(entry.get('children', [])):
            yield from self._tree(
                child,
                (*place, 'children', number),
                provider.uuid,
                by_host,
            )

    def _same(self, some: frozenset[str]) -> frozenset[str]:
        """Return an equal set, the same for all providers."""
        return self._sets.setdefault(some, some)

    def _stock(
        self, entry: Mapping[str, Any], place: Place
    ) -> dict[str, Inventory]:
        """Return inventories, the same for all providers with equal ones."""
        inventories = entry.get('inventories', {})
        key = marshal.dumps(inventories, 0)
        if key not in self._inventories:
            self._check_names(entry, place, 'inventories')
            self._inventories[key] = {
                name: Inventory(total=value)
                if isinstance(value, int)
                else Inventory(**value)
                for name, value in inventories.items()
            }
        return self._inventories[key]

    def _check_names(
        self, entry: Mapping[str, Any], place: Place, *keys: str
    ) -> None:
        """Report invalid names of traits and resource classes."""
        for key in keys:
            for number, name in enumerate(entry.get(key, ())):
                if problem := _NAMES[key](name):
                    where = (key,) if key in _MAPPINGS else (key, number)
                    self.contradictions.note_once((*place, *where), problem)

    def _aggregate(self, name: str, place: Place) -> str:
        self.contradictions.look_up(
            place,
            name,
            self._names,
            'which is neither a uuid nor an aggregate of this file',
        )
        return self._names.get(name, name)

    def _usages(
        self,
        usages: Mapping[str, int],
        inventories: Mapping[str, Inventory],
        place: Place,
    ) -> Iterator[tuple[str, int]]:
        for resource_class, usage in usages.items():
            if usage and resource_class not in inventories:
                self.contradictions.note(
                    (*place, 'usages', resource_class),
                    'has usage but no inventory',
                )
            elif usage:
                yield resource_class, usage

    def _flavors(self) -> Iterator[Flavor]:
        for entry in self._document.get('flavors', []):
            yield _own_flavor(entry)

    def _servers(
        self, flavors: Iterable[Flavor], images: Iterable[Image]
    ) -> Servers | None:
        entries = self._document.get('servers')
        if entries is None:
            return None
        self.contradictions.once(
            'the id',
            (
                (entry['id'], ('servers', number))
                for number, entry in enumerate(entries)
            ),
        )
        present = {f.name: booted(f) for f in flavors}
        return Servers(
            tuple(
                self._server(entry, ('servers', number), present)
                for number, entry in enumerate(entries)
            ),
            {image.id: image for image in images},
            all(
                entry.get('scheduler_hints', {}) is not None
                for entry in entries
            ),
            placing.groups(self._document),
        )

    def _server(
        self,
        entry: Mapping[str, Any],
        place: Place,
        flavors: Mapping[str, Flavor],
    ) -> Server:
        flavor = entry['flavor']
        if isinstance(flavor, str):
            self.contradictions.look_up(
                (*place, 'flavor'),
                flavor,
                flavors,
                'which is not a flavor of this file',
            )
            flavor = flavors.get(flavor)
        elif flavor is not None:
            flavor = _flavor(flavor)
        properties = entry.get('image_properties')
        return Server(
            id=entry['id'],
            name=entry.get('name', ''),
            project_id=entry['project'],
            status=entry.get('status', 'ACTIVE'),
            host=entry.get('host'),
            flavor=flavor,
            image_id=entry.get('image'),
            **hints_from(entry['id'], entry.get('scheduler_hints')),
            image_properties=None
            if properties is None
            else _texts(properties),
            availability_zone=entry.get('availability_zone'),
            zone_known=entry.get('availability_zone', '') is not None,
            ports=tuple(map(_port, entry['ports']))
            if 'ports' in entry
            else None,
            has_shares=entry.get('shares'),
        )

    def _images(self) -> Iterator[Image]:
        entries = self._document.get('images', [])
        self.contradictions.once(
            'the id',
            (
                (entry['id'], ('images', number))
                for number, entry in enumerate(entries)
                if 'id' in entry
            ),
        )
        self.contradictions.once(
            'no id and the name',
            (
                (entry['name'], ('images', number))
                for number, entry in enumerate(entries)
                if 'id' not in entry
            ),
        )
        for entry in entries:
            yield Image(
                name=entry['name'],
                id=entry.get('id') or derived_uuid('image', entry['name']),
                properties=_texts(entry.get('properties')),
                owner=entry.get('owner'),
                visibility=entry.get('visibility'),
                disk_format=entry.get('disk_format'),
                min_ram=entry.get('min_ram', 0),
                min_disk=entry.get('min_disk', 0),
                size=entry.get('size', 0),
            )


def _port(entry: Mapping[str, Any]) -> Port:
    return Port(
        id=entry['id'],
        network='',
        remote_managed=entry.get('remote_managed', False),
        accelerator=entry.get('accelerator', False),
        groups=tuple(
            ResourceGroup(
                group['id'],
                dict(group['resources']),
                frozenset(group.get('traits', ())),
            )
            for group in entry.get('groups', ())
        ),
        same_subtree=frozenset(entry.get('same_subtree', ())),
        device_profile=entry.get('device_profile'),
        segments=tuple(entry.get('segments', ())),
    )


def booted(flavor: Flavor) -> Flavor:
    """Return what Nova keeps with a server of its flavor."""
    return dataclasses.replace(
        flavor, id='', is_public=True, projects=frozenset()
    )


def _own_flavor(entry: Mapping[str, Any]) -> Flavor:
    default = derived_uuid('flavor', entry['name'])
    return _flavor(entry, str(entry.get('id', default)))


def _flavor(entry: Mapping[str, Any], number: str = '') -> Flavor:
    return Flavor(
        name=entry['name'],
        id=number,
        extra_specs=_texts(entry.get('extra_specs')),
        is_public=entry.get('is_public', True),
        projects=frozenset(entry.get('projects', ())),
        **{
            key: entry.get(key, 0)
            for key in ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')
        },
    )


@functools.lru_cache(maxsize=65_536)
def _as_uuid(text: str) -> str | None:
    """Return a uuid in its usual form; None if it is none."""
    # The members of an aggregate all have the same.
    return str(uuid.UUID(text)) if uuidutils.is_uuid_like(text) else None


def _placed(
    key: str, things: Iterable[tuple[str, str]]
) -> list[tuple[str, str, Place]]:
    """Return the items of a list in the document with their places."""
    return [
        (name, value, (key, number))
        for number, (name, value) in enumerate(things)
    ]


def _uuid(entry: Mapping[str, Any], kind: str) -> str:
    return str(entry.get('uuid') or derived_uuid(kind, entry['name'])).lower()
