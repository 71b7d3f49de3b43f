# SPDX-License-Identifier: Apache-2.0
"""Carries out commands on a snapshot, in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Any, TypeVar

import os_traits

from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement.provider import Provider
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
    Command,
    Commands,
)
from isolate_aggregates.tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.operate.sync import plan
from isolate_aggregates.tools.operate.sync.snapshot import read

_Values = Mapping[str, str | None]
_Thing = TypeVar('_Thing', Aggregate, Flavor, Image, Provider)


def outcomes(
    snapshot: Snapshot, commands: Commands, filters: Pipeline
) -> Iterator[Snapshot]:
    """Yield the snapshot after each command.

    :param filters: All configured filters, whose locks ``sync`` maintains.
    """
    for command in commands:
        snapshot = (
            synced(snapshot, filters)
            if (command,) == SYNC
            else _changed(snapshot, command)
        )
        yield snapshot


def synced(snapshot: Snapshot, filters: Pipeline) -> Snapshot:
    """Return the snapshot after ``sync``."""
    sync_plan = plan.make(
        read(SnapshotCloud(snapshot)), filters.locks(snapshot.index)
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
    words, options = _parsed(command)
    values = _values(options.get('property', ()))
    removals = dict.fromkeys(options.get('property', ()))
    match words:
        case [_, 'aggregate', 'set', name]:
            return _tagged(snapshot, name, values)
        case [_, 'aggregate', 'unset', name]:
            return _tagged(snapshot, name, removals)
        case [_, 'aggregate', 'add', 'host', name, host]:
            return _moved(snapshot, name, frozenset({host}).union)
        case [_, 'aggregate', 'remove', 'host', name, host]:
            return _moved(snapshot, name, lambda hosts: hosts - {host})
        case [_, 'flavor', 'set', name]:
            return _specified(snapshot, name, values)
        case [_, 'flavor', 'unset', name]:
            return _specified(snapshot, name, removals)
        case [_, 'image', 'set', name]:
            return _with_properties(snapshot, name, values)
        case [_, 'image', 'unset', name]:
            return _with_properties(snapshot, name, removals)
        case [_, 'compute', 'service', 'set', host, _] if 'enable' in options:
            return _enabled(snapshot, host)
        case [_, 'resource', 'provider', 'trait', 'set', uuid]:
            traits = frozenset(options.get('trait', ()))
            return _provided(snapshot, uuid, traits=traits)
        case [_, 'resource', 'provider', 'aggregate', 'set', uuid]:
            members = frozenset(options.get('aggregate', ()))
            return _provided(snapshot, uuid, aggregates=members)
        case [_, 'trait', 'create', name]:
            return dataclasses.replace(
                snapshot, traits=snapshot.traits | {name}
            )
        case [program, 'reservation', 'host', 'disable', *hosts] if (
            program == PROGRAM
        ):
            return _without_reservations(snapshot, frozenset(hosts))
        case [program, 'grant'] if program == PROGRAM:
            specs = {TRAIT_PREFIX + t: REQUIRED for t in options['trait']}
            return _specified(snapshot, options['flavor'][0], specs)
    return snapshot


def _parsed(command: Command) -> tuple[list[str], dict[str, list[str]]]:
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


def _values(texts: Iterable[str]) -> dict[str, str | None]:
    pairs = (text.partition('=') for text in texts)
    return {key: value for key, _, value in pairs}


def _put(old: Mapping[str, str], values: _Values) -> dict[str, str]:
    merged = {**old, **values}
    return {k: v for k, v in merged.items() if v is not None}


def _replaced(
    things: Iterable[_Thing],
    is_meant: Callable[[_Thing], bool],
    change: Callable[[_Thing], _Thing],
) -> tuple[_Thing, ...]:
    return tuple(change(one) if is_meant(one) else one for one in things)


def _named(name: str) -> Callable[[Any], bool]:
    """Return a test for objects with an id or, if they have none, a name."""
    return lambda one: name == str(one.name if one.id is None else one.id)


def _tagged(snapshot: Snapshot, name: str, tags: _Values) -> Snapshot:
    return dataclasses.replace(
        snapshot,
        aggregates=_replaced(
            snapshot.aggregates,
            _named(name),
            lambda one: dataclasses.replace(
                one, metadata=_put(one.metadata, tags)
            ),
        ),
    )


def _moved(
    snapshot: Snapshot,
    name: str,
    change: Callable[[frozenset[str]], frozenset[str]],
) -> Snapshot:
    """Change the hosts of an aggregate, in Placement too, as Nova does."""
    for old in filter(_named(name), snapshot.aggregates):
        new = dataclasses.replace(old, hosts=change(old.hosts))

        def member(
            node: Provider, new: Aggregate = new, old: Aggregate = old
        ) -> Provider:
            members = node.aggregates - {old.uuid}
            if node.host in new.hosts:
                members |= {new.uuid}
            return dataclasses.replace(node, aggregates=members)

        snapshot = dataclasses.replace(
            snapshot,
            aggregates=tuple(
                new if one is old else one for one in snapshot.aggregates
            ),
            providers=_replaced(
                snapshot.providers,
                lambda node, hosts=old.hosts ^ new.hosts: node.host in hosts,  # type: ignore[misc]
                member,
            ),
        )
    return snapshot


def _without_reservations(
    snapshot: Snapshot, hosts: frozenset[str]
) -> Snapshot:
    """Remove hosts from the pools of reservations."""
    for aggregate in snapshot.aggregates:
        if RESERVATION_TRAIT in tags.required_traits(aggregate):
            name = str(
                aggregate.name if aggregate.id is None else aggregate.id
            )
            snapshot = _moved(snapshot, name, lambda old: old - hosts)
    return snapshot


def _specified(snapshot: Snapshot, name: str, specs: _Values) -> Snapshot:
    return dataclasses.replace(
        snapshot,
        flavors=_replaced(
            snapshot.flavors,
            lambda flavor: (flavor.id or flavor.name) == name,
            lambda flavor: dataclasses.replace(
                flavor, extra_specs=_put(flavor.extra_specs, specs)
            ),
        ),
    )


def _with_properties(
    snapshot: Snapshot, name: str, properties: _Values
) -> Snapshot:
    return dataclasses.replace(
        snapshot,
        images=_replaced(
            snapshot.images,
            lambda image: (image.id or image.name) == name,
            lambda image: dataclasses.replace(
                image, properties=_put(image.properties, properties)
            ),
        ),
    )


def _enabled(snapshot: Snapshot, host: str) -> Snapshot:
    disabled = {os_traits.COMPUTE_STATUS_DISABLED}
    return dataclasses.replace(
        snapshot,
        providers=_replaced(
            snapshot.providers,
            lambda node: node.host == host,
            lambda node: dataclasses.replace(
                node, traits=node.traits - disabled
            ),
        ),
    )


def _provided(snapshot: Snapshot, uuid: str, **fields: Any) -> Snapshot:
    return dataclasses.replace(
        snapshot,
        providers=_replaced(
            snapshot.providers,
            lambda provider: provider.uuid == uuid,
            lambda provider: dataclasses.replace(provider, **fields),
        ),
    )
