# SPDX-License-Identifier: Apache-2.0
"""Changes of a cloud, made to a snapshot in memory."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.tools.cloud.snapshot import Snapshot

# Returns the snapshot after a change.
Change = Callable[[Snapshot], Snapshot]

# The metadata in which Nova stores the availability zone of an aggregate.
ZONE = 'availability_zone'

# New values by key; None removes the key.
Values = Mapping[str, str | None]


def metadata(aggregate: Aggregate, values: Values) -> Change:
    """Return the change of the metadata of an aggregate."""
    return lambda snapshot: put(
        snapshot,
        'aggregates',
        lambda one: one.uuid == aggregate.uuid,
        'metadata',
        values,
    )


def extra_specs(flavor_id: str, values: Values) -> Change:
    """Return the change of the extra specs of a flavor."""
    return lambda snapshot: put(
        snapshot,
        'flavors',
        lambda one: one.id == flavor_id,
        'extra_specs',
        values,
    )


def properties(image_id: str, values: Values) -> Change:
    """Return the change of the properties of an image."""
    return lambda snapshot: put(
        snapshot,
        'images',
        lambda one: one.id == image_id,
        'properties',
        values,
    )


def traits(
    provider: str, change: Callable[[frozenset[str]], frozenset[str]]
) -> Change:
    """Return the change of the traits of a provider."""
    return lambda snapshot: altered(
        snapshot,
        'providers',
        lambda one: one.uuid == provider,
        lambda one: dataclasses.replace(one, traits=change(one.traits)),
    )


def memberships(
    provider: str, change: Callable[[frozenset[str]], frozenset[str]]
) -> Change:
    """Return the change of the aggregates of a provider."""
    return lambda snapshot: altered(
        snapshot,
        'providers',
        lambda one: one.uuid == provider,
        lambda one: dataclasses.replace(
            one, aggregates=change(one.aggregates)
        ),
    )


def new_trait(name: str) -> Change:
    """Return the creation of a trait."""
    return lambda snapshot: dataclasses.replace(
        snapshot, traits=snapshot.traits | {name}
    )


def unused_trait_deleted(name: str) -> Change:
    """Return the deletion of a trait, which fails while providers have it."""
    return lambda snapshot: dataclasses.replace(
        snapshot, traits=snapshot.traits - {name}
    )


def altered(
    snapshot: Snapshot,
    field: str,
    is_meant: Callable[[Any], bool],
    change: Callable[[Any], Any],
) -> Snapshot:
    """Change some aggregates, flavors, images or providers."""
    things: dict[str, Any] = {
        field: tuple(
            change(thing) if is_meant(thing) else thing
            for thing in getattr(snapshot, field)
        )
    }
    return dataclasses.replace(snapshot, **things)


def put(
    snapshot: Snapshot,
    field: str,
    is_meant: Callable[[Any], bool],
    part: str,
    values: Values,
) -> Snapshot:
    """Set and unset values of an aggregate, a flavor or an image."""

    def change(thing: Any) -> Any:
        new_values = {**getattr(thing, part), **values}
        present = {k: v for k, v in new_values.items() if v is not None}
        fields: dict[str, Any] = {part: present}
        if field == 'aggregates' and ZONE in values:
            # Nova stores the zone as metadata.
            fields['availability_zone'] = values[ZONE]
        return dataclasses.replace(thing, **fields)

    if not values:
        return snapshot
    return altered(snapshot, field, is_meant, change)


def with_hosts(
    snapshot: Snapshot, old: Aggregate, hosts: frozenset[str]
) -> Snapshot:
    """Change the hosts of an aggregate, in Placement too, as Nova does."""
    new = dataclasses.replace(old, hosts=hosts)

    def member(node: Provider) -> Provider:
        aggregates = node.aggregates - {old.uuid}
        if node.host in hosts:
            aggregates |= {new.uuid}
        return dataclasses.replace(node, aggregates=aggregates)

    snapshot = altered(
        snapshot, 'aggregates', lambda one: one is old, lambda _: new
    )
    moved_hosts = old.hosts ^ hosts
    return altered(
        snapshot, 'providers', lambda node: node.host in moved_hosts, member
    )
