# SPDX-License-Identifier: Apache-2.0
"""Changes of a cloud, made to a snapshot in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
import itertools
from typing import Any

import os_traits

from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.aggregates.aggregate import ZONE
from isolate_aggregates.derived import derived_uuid
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import (
    REQUIRED,
    RESERVATION_TRAIT,
    TRAIT_PREFIX,
)
from isolate_aggregates_tools.cloud.snapshot import Snapshot, key_of
from isolate_aggregates_tools.placement.provider import Provider

# Returns the snapshot after a change.
Change = Callable[[Snapshot], Snapshot]

# New values by key; None removes the key.
Values = Mapping[str, str | None]

_Thing = Aggregate | Flavor | Image
_Names = frozenset[str]
# The places of objects in a snapshot, and of values in objects.
_LISTS = {Aggregate: 'aggregates', Flavor: 'flavors', Image: 'images'}
_VALUES = {Aggregate: 'metadata', Flavor: 'extra_specs', Image: 'properties'}


@dataclasses.dataclass(frozen=True, eq=False)
class Alteration:
    """A change of the objects of a snapshot that have a key, which stays."""

    field: str
    key: str
    change: Callable[[Any], Any]

    def __call__(self, snapshot: Snapshot) -> Snapshot:
        return made(snapshot, (self,))

    def pairs(self, snapshot: Snapshot) -> Iterator[tuple[Any, Any]]:
        """Yield the objects as they are and as they will be."""
        things = getattr(snapshot, self.field)
        for place in snapshot.places(self.field).get(self.key, ()):
            yield things[place], self.change(things[place])


def made(snapshot: Snapshot, some: Iterable[Change]) -> Snapshot:
    """Return the snapshot after changes.

    Alterations are made with one copy of each list, which can be long.
    """
    for are_alterations, group in itertools.groupby(
        some, lambda each: isinstance(each, Alteration)
    ):
        snapshot = (_altered if are_alterations else _one_by_one)(
            snapshot, group
        )
    return snapshot


def _one_by_one(snapshot: Snapshot, some: Iterable[Change]) -> Snapshot:
    for change in some:
        snapshot = change(snapshot)
    return snapshot


def _altered(snapshot: Snapshot, some: Iterable[Any]) -> Snapshot:
    lists: dict[str, list[Any]] = {}
    for each in some:
        for place in snapshot.places(each.field).get(each.key, ()):
            if each.field not in lists:
                lists[each.field] = [*getattr(snapshot, each.field)]
            lists[each.field][place] = each.change(lists[each.field][place])
    for field, things in lists.items():
        snapshot = _replaced(snapshot, field, tuple(things))
    return snapshot


def nothing(snapshot: Snapshot) -> Snapshot:
    """Change nothing that matters here."""
    return snapshot


def values(thing: _Thing, values: Values) -> Change:
    """Return the change of metadata, extra specs or properties."""
    part = _VALUES[type(thing)]

    def change(one: Any) -> Any:
        new_values = {**getattr(one, part), **values}
        present = {k: v for k, v in new_values.items() if v is not None}
        fields: dict[str, Any] = {part: present}
        if isinstance(thing, Aggregate) and ZONE in values:
            # Nova stores the zone as metadata.
            fields[ZONE] = values[ZONE]
        return dataclasses.replace(one, **fields)

    return (
        Alteration(_LISTS[type(thing)], key_of(thing), change)
        if values
        else nothing
    )


def fields(thing: _Thing, **fields: Any) -> Change:
    """Return the change of fields of an object."""
    key = key_of(thing)
    return lambda snapshot: altered(
        snapshot,
        _LISTS[type(thing)],
        lambda one: key_of(one) == key,
        lambda one: dataclasses.replace(one, **fields),
    )


def access(flavor: Flavor, project: str) -> Change:
    """Return the change that lets a project use a private flavor."""
    return Alteration(
        _LISTS[Flavor],
        key_of(flavor),
        lambda one: dataclasses.replace(
            one, projects=one.projects | {project}
        ),
    )


def new(thing: Flavor | Image) -> Change:
    """Return the creation of a flavor or an image.

    Nova refuses a second flavor with the name or id, and Glance a second image
    with the id.
    """
    field = _LISTS[type(thing)]
    key = thing.id or derived_uuid(field[:-1], thing.name)
    thing = dataclasses.replace(thing, id=key)

    def change(snapshot: Snapshot) -> Snapshot:
        things = getattr(snapshot, field)
        names = () if isinstance(thing, Image) else (t.name for t in things)
        if key in (t.id for t in things) or thing.name in names:
            return snapshot
        return _replaced(snapshot, field, (*things, thing))

    return change


def new_aggregate(name: str, metadata: Mapping[str, str]) -> Change:
    """Return the creation of an aggregate, unless the name exists."""
    uuid, zone = derived_uuid('aggregate', name), metadata.get(ZONE)
    aggregate = Aggregate(uuid, name, metadata, availability_zone=zone)
    return lambda snapshot: (
        snapshot
        if any(one.name == name for one in snapshot.aggregates)
        else _replaced(
            snapshot, 'aggregates', (*snapshot.aggregates, aggregate)
        )
    )


def deleted(thing: _Thing) -> Change:
    """Return the deletion of an object; of an aggregate, without hosts."""
    field, key = _LISTS[type(thing)], key_of(thing)
    return lambda snapshot: _replaced(
        snapshot,
        field,
        tuple(
            one
            for one in getattr(snapshot, field)
            if key_of(one) != key or bool(getattr(one, 'hosts', None))
        ),
    )


def hosts(aggregate: Aggregate, change: Callable[[_Names], _Names]) -> Change:
    """Return the change of the hosts of an aggregate, in Placement too."""

    def changed(snapshot: Snapshot) -> Snapshot:
        for place in snapshot.places('aggregates').get(key_of(aggregate), ()):
            old = snapshot.aggregates[place]
            snapshot = with_hosts(snapshot, old, change(old.hosts))
        return snapshot

    return changed


def provider(uuid: str, **fields: Any) -> Change:
    """Return the change of fields of a provider."""
    return Alteration(
        'providers', uuid, lambda one: dataclasses.replace(one, **fields)
    )


def names_of_provider(
    uuid: str, field: str, change: Callable[[_Names], _Names]
) -> Change:
    """Return the change of the traits or aggregates of a provider."""
    return Alteration(
        'providers',
        uuid,
        lambda one: dataclasses.replace(
            one, **{field: change(getattr(one, field))}
        ),
    )


def enabled_services(hosts: Iterable[str]) -> Change:
    """Return the enabling of the compute services of hosts."""
    names = frozenset(hosts)
    disabled = {os_traits.COMPUTE_STATUS_DISABLED}

    def change(snapshot: Snapshot) -> Snapshot:
        if snapshot.services is not None:
            snapshot = altered(
                snapshot,
                'services',
                lambda one: one.host in names,
                lambda one: dataclasses.replace(one, is_enabled=True),
            )
        return altered(
            snapshot,
            'providers',
            lambda one: one.host in names,
            lambda one: dataclasses.replace(one, traits=one.traits - disabled),
        )

    return change


def pool(names: Iterable[str], is_enabled: bool) -> Change:
    """Return the change of the pool of reservations, made if need be."""

    def change(snapshot: Snapshot) -> Snapshot:
        services = {node.name: node.host for node in snapshot.providers}
        hosts = frozenset(services.get(name) or name for name in names)
        pools = [
            aggregate
            for aggregate in snapshot.aggregates
            if RESERVATION_TRAIT in tags.required_traits(aggregate)
        ]
        if not is_enabled:
            for one in pools:
                snapshot = with_hosts(
                    snapshot, one, one.hosts - hosts, is_whole=True
                )
            return snapshot
        if not pools:
            lock = {TRAIT_PREFIX + RESERVATION_TRAIT: REQUIRED}
            snapshot = new_aggregate('reservation pool', lock)(snapshot)
            pools = [snapshot.aggregates[-1]]
        return with_hosts(
            snapshot, pools[0], pools[0].hosts | hosts, is_whole=True
        )

    return change


def new_trait(name: str) -> Change:
    """Return the creation of a trait."""
    return lambda snapshot: _replaced(
        snapshot, 'traits', snapshot.traits | {name}
    )


def unused_trait_deleted(name: str) -> Change:
    """Return the deletion of a trait, which fails while providers have it."""
    return lambda snapshot: _replaced(
        snapshot, 'traits', snapshot.traits - {name}
    )


def altered(
    snapshot: Snapshot,
    field: str,
    is_meant: Callable[[Any], bool],
    change: Callable[[Any], Any],
) -> Snapshot:
    """Change some aggregates, flavors, images, providers or services."""
    return _replaced(
        snapshot,
        field,
        tuple(
            change(thing) if is_meant(thing) else thing
            for thing in getattr(snapshot, field)
        ),
    )


def _replaced(snapshot: Snapshot, field: str, value: Any) -> Snapshot:
    return dataclasses.replace(snapshot, **{field: value})


def with_hosts(
    snapshot: Snapshot, old: Aggregate, hosts: _Names, is_whole: bool = False
) -> Snapshot:
    """Change the hosts of an aggregate, in Placement too, as Nova does.

    Of a compute service with several nodes, as with Ironic, Nova adds and
    removes only the first one in Placement (``add_host_to_aggregate`` of
    ``nova.compute.api``).

    :param is_whole: Whether all compute nodes of a service are changed.
    """
    new = dataclasses.replace(old, hosts=hosts)
    moved_hosts = old.hosts ^ hosts
    moved = {
        node.uuid
        for nodes in nodes_of(snapshot, moved_hosts).values()
        for node in (nodes if is_whole else nodes[:1])
    }

    def member(node: Provider) -> Provider:
        aggregates = node.aggregates - {old.uuid}
        if node.host in hosts:
            aggregates |= {new.uuid}
        return dataclasses.replace(node, aggregates=aggregates)

    snapshot = altered(
        snapshot, 'aggregates', lambda one: one is old, lambda _: new
    )
    return altered(
        snapshot, 'providers', lambda node: node.uuid in moved, member
    )


def nodes_of(
    snapshot: Snapshot, hosts: Iterable[str]
) -> dict[str, list[Provider]]:
    """Return the compute nodes of some hosts that have any."""
    nodes: dict[str, list[Provider]] = {}
    wanted = frozenset(hosts)
    for node in snapshot.providers:
        if node.host in wanted:
            nodes.setdefault(node.host or '', []).append(node)
    return nodes
