# SPDX-License-Identifier: Apache-2.0
"""Carries out commands on a snapshot, in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
from typing import Any

import os_traits

from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import (
    REQUIRED,
    RESERVATION_TRAIT,
    TRAIT_PREFIX,
)
from isolate_aggregates.tools.advice.commands import (
    FLAGS,
    PROGRAM,
    SYNC,
    VISIBILITIES,
    Command,
    Commands,
)
from isolate_aggregates.tools.cloud import changes
from isolate_aggregates.tools.cloud.file.document import derived_uuid
from isolate_aggregates.tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.operate.sync import plan, projects
from isolate_aggregates.tools.operate.sync.snapshot import read


def outcomes(
    snapshot: Snapshot, commands: Commands, filters: Pipeline
) -> Iterator[Snapshot]:
    """Yield the snapshot after each command."""
    for command in commands:
        snapshot = (
            synced(snapshot, filters)
            if (command,) == SYNC
            else _changed(snapshot, command)
        )
        yield snapshot


def synced(snapshot: Snapshot, filters: Pipeline) -> Snapshot:
    """Return the snapshot after ``sync``."""
    return applied(
        snapshot,
        plan.make(
            read(SnapshotCloud(snapshot)), filters.locks(snapshot.index)
        ),
    )


def applied(snapshot: Snapshot, sync_plan: plan.SyncPlan) -> Snapshot:
    """Return the snapshot after a plan of ``sync`` was carried out."""
    if sync_plan.differences:
        snapshot = dataclasses.replace(
            snapshot,
            aggregates=projects.updated(
                snapshot.aggregates, sync_plan.differences
            ),
        )
    targets = {target.provider: target for target in sync_plan.pending}
    if not targets:
        return snapshot
    return dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(
                provider,
                traits=targets[provider.uuid].traits_after(provider.traits),
                aggregates=targets[provider.uuid].aggregates_after(
                    provider.aggregates
                ),
            )
            if provider.uuid in targets
            else provider
            for provider in snapshot.providers
        ),
    )


def _changed(snapshot: Snapshot, command: Command) -> Snapshot:
    """Return the snapshot after a command.

    A command that changes nobody's access returns it unchanged.
    """
    words, options = parsed(command)
    values = _values(options.get('property', ()))
    removals = dict.fromkeys(options.get('property', ()))
    zone = dict(zip([changes.ZONE], options.get('zone', ()), strict=False))
    match words:
        case [_, 'aggregate', 'create', name]:
            return _with_aggregate(snapshot, name, values | zone)
        case [_, 'aggregate', 'delete', name]:
            return _without(
                snapshot,
                'aggregates',
                lambda one: _named(name)(one) and not one.hosts,
            )
        case [_, 'aggregate', 'set', name]:
            snapshot = _put(
                snapshot, 'aggregates', name, 'metadata', values | zone
            )
            return _renamed(snapshot, name, options.get('name', ()))
        case [_, 'aggregate', 'unset', name]:
            return _put(snapshot, 'aggregates', name, 'metadata', removals)
        case [_, 'aggregate', 'add', 'host', name, host]:
            return _moved(snapshot, name, frozenset({host}).union)
        case [_, 'aggregate', 'remove', 'host', name, host]:
            return _moved(snapshot, name, lambda hosts: hosts - {host})
        case [_, 'flavor', 'create', name]:
            return _with_flavor(snapshot, name, values, options)
        case [_, 'flavor', 'delete', name]:
            return _without(snapshot, 'flavors', _named(name))
        case [_, 'flavor', 'set', name]:
            return _put(snapshot, 'flavors', name, 'extra_specs', values)
        case [_, 'flavor', 'unset', name]:
            return _put(snapshot, 'flavors', name, 'extra_specs', removals)
        case [_, 'image', 'create', name]:
            return _with_image(snapshot, name, values, options)
        case [_, 'image', 'delete', name]:
            return _without(snapshot, 'images', _named(name))
        case [_, 'image', 'set', name]:
            snapshot = _put(snapshot, 'images', name, 'properties', values)
            return _shown(snapshot, name, _visibility(options))
        case [_, 'image', 'unset', name]:
            return _put(snapshot, 'images', name, 'properties', removals)
        case [_, 'compute', 'service', 'set', host, _] if 'enable' in options:
            return _enabled(snapshot, host)
        case [_, 'resource', 'provider', 'trait', 'set', uuid]:
            traits = frozenset(options.get('trait', ()))
            return _provided(snapshot, uuid, traits=traits)
        case [_, 'resource', 'provider', 'aggregate', 'set', uuid]:
            members = frozenset(options.get('aggregate', ()))
            return _provided(snapshot, uuid, aggregates=members)
        case [_, 'trait', 'create', name]:
            return changes.new_trait(name)(snapshot)
        case [program, 'reservation', 'host', 'set', *hosts] if (
            program == PROGRAM
        ):
            change = (
                _with_reservations
                if 'enable' in options
                else _without_reservations
            )
            return change(snapshot, _services(snapshot, hosts))
        case [program, 'grant'] if program == PROGRAM:
            specs = {TRAIT_PREFIX + t: REQUIRED for t in options['trait']}
            name = options['flavor'][0]
            return _put(snapshot, 'flavors', name, 'extra_specs', specs)
    return snapshot


def parsed(command: Command) -> tuple[list[str], dict[str, list[str]]]:
    """Return the plain words of a command, and its options with values."""
    words: list[str] = []
    options: dict[str, list[str]] = {}
    rest = iter(command)
    for word in rest:
        if word == '--':
            words += rest
        elif not word.startswith('--'):
            words.append(word)
        elif word in FLAGS:
            options.setdefault(word[2:], [])
        else:
            name, equals, value = word[2:].partition('=')
            values = options.setdefault(name, [])
            values.append(value if equals else next(rest))
    return words, options


def _values(texts: Iterable[str]) -> dict[str, str]:
    pairs = (text.partition('=') for text in texts)
    return {key: value for key, _, value in pairs}


def _put(
    snapshot: Snapshot,
    field: str,
    name: str,
    part: str,
    values: changes.Values,
) -> Snapshot:
    return changes.put(snapshot, field, _named(name), part, values)


def _named(name: str) -> Callable[[Any], bool]:
    """Return a test for objects with an id or, if they have none, a name."""
    return lambda one: (
        name == str(one.name if one.id in (None, '') else one.id)
    )


def _with_aggregate(
    snapshot: Snapshot, name: str, metadata: Mapping[str, str]
) -> Snapshot:
    if any(one.name == name for one in snapshot.aggregates):
        # Nova refuses a second one with the name.
        return snapshot
    aggregate = Aggregate(
        uuid=derived_uuid('aggregate', name),
        name=name,
        metadata=metadata,
        availability_zone=metadata.get(changes.ZONE),
    )
    return dataclasses.replace(
        snapshot, aggregates=(*snapshot.aggregates, aggregate)
    )


def _with_flavor(
    snapshot: Snapshot,
    name: str,
    extra_specs: Mapping[str, str],
    options: Mapping[str, Sequence[str]],
) -> Snapshot:
    sizes = {
        size: int(value)
        for size in ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')
        for value in options.get(size, ())
    }
    [number] = options.get('id') or [derived_uuid('flavor', name)]
    if any(one.name == name or one.id == number for one in snapshot.flavors):
        # Nova refuses a second one with the name or id.
        return snapshot
    flavor = Flavor(name, number, extra_specs=extra_specs, **sizes)
    return dataclasses.replace(snapshot, flavors=(*snapshot.flavors, flavor))


def _with_image(
    snapshot: Snapshot,
    name: str,
    properties: Mapping[str, str],
    options: Mapping[str, Sequence[str]],
) -> Snapshot:
    [number] = options.get('id') or [derived_uuid('image', name)]
    [min_ram] = options.get('min-ram', [0])
    [min_disk] = options.get('min-disk', [0])
    if any(one.id == number for one in snapshot.images):
        # Glance refuses a second one with the id.
        return snapshot
    image = Image(
        name,
        number,
        properties,
        visibility=_visibility(options),
        disk_format=next(iter(options.get('disk-format', ())), None),
        min_ram=int(min_ram),
        min_disk=int(min_disk),
    )
    return dataclasses.replace(snapshot, images=(*snapshot.images, image))


def _visibility(options: Iterable[str]) -> str | None:
    return next((each for each in VISIBILITIES if each in options), None)


def _shown(snapshot: Snapshot, name: str, visibility: str | None) -> Snapshot:
    """Set the visibility of an image."""
    if visibility is None:
        return snapshot
    return changes.altered(
        snapshot,
        'images',
        _named(name),
        lambda image: dataclasses.replace(image, visibility=visibility),
    )


def _renamed(
    snapshot: Snapshot, name: str, new_names: Sequence[str]
) -> Snapshot:
    if not new_names:
        return snapshot
    return changes.altered(
        snapshot,
        'aggregates',
        _named(name),
        lambda one: dataclasses.replace(one, name=new_names[-1]),
    )


def _without(
    snapshot: Snapshot, field: str, is_meant: Callable[[Any], bool]
) -> Snapshot:
    """Remove some aggregates, flavors or images."""
    things: dict[str, Any] = {
        field: tuple(
            thing for thing in getattr(snapshot, field) if not is_meant(thing)
        )
    }
    return dataclasses.replace(snapshot, **things)


def _moved(
    snapshot: Snapshot,
    name: str,
    change: Callable[[frozenset[str]], frozenset[str]],
) -> Snapshot:
    """Change the hosts of an aggregate, in Placement too, as Nova does."""
    for old in filter(_named(name), snapshot.aggregates):
        snapshot = changes.with_hosts(snapshot, old, change(old.hosts))
    return snapshot


def _services(snapshot: Snapshot, names: Iterable[str]) -> frozenset[str]:
    """Return the compute services of hosts, given by either name."""
    services = {node.name: node.host for node in snapshot.providers}
    return frozenset(services.get(name) or name for name in names)


def _with_reservations(snapshot: Snapshot, hosts: frozenset[str]) -> Snapshot:
    """Add hosts to the pool of reservations, which is made if need be."""
    for aggregate in snapshot.aggregates:
        if RESERVATION_TRAIT in tags.required_traits(aggregate):
            return changes.with_hosts(
                snapshot, aggregate, aggregate.hosts | hosts
            )
    lock = {TRAIT_PREFIX + RESERVATION_TRAIT: REQUIRED}
    snapshot = _with_aggregate(snapshot, 'reservation pool', lock)
    return changes.with_hosts(snapshot, snapshot.aggregates[-1], hosts)


def _without_reservations(
    snapshot: Snapshot, hosts: frozenset[str]
) -> Snapshot:
    """Remove hosts from the pools of reservations."""
    for aggregate in snapshot.aggregates:
        if RESERVATION_TRAIT in tags.required_traits(aggregate):
            remaining = aggregate.hosts - hosts
            snapshot = changes.with_hosts(snapshot, aggregate, remaining)
    return snapshot


def _enabled(snapshot: Snapshot, host: str) -> Snapshot:
    disabled = {os_traits.COMPUTE_STATUS_DISABLED}
    return changes.altered(
        snapshot,
        'providers',
        lambda node: node.host == host,
        lambda node: dataclasses.replace(node, traits=node.traits - disabled),
    )


def _provided(snapshot: Snapshot, uuid: str, **fields: Any) -> Snapshot:
    return changes.altered(
        snapshot,
        'providers',
        lambda provider: provider.uuid == uuid,
        lambda provider: dataclasses.replace(provider, **fields),
    )
