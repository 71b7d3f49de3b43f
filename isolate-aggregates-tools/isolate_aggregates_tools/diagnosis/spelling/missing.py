# SPDX-License-Identifier: Apache-2.0
"""Corrects names of which a cloud has none."""

from collections import Counter
from collections.abc import Collection, Iterator

import os_traits

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.required_metadata import (
    RequiredMetadata,
    values_of,
)
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools.diagnosis.near_names import (
    closest,
    closest_id,
    looks_like_trait,
)
from isolate_aggregates_tools.diagnosis.spelling import flavors
from isolate_aggregates_tools.diagnosis.spelling.known import KnownNames
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.commands import Commands
from isolate_aggregates_tools.repairs.repair import Repair


def required_trait(
    known: KnownNames, thing: Flavor | Image, key: str, trait: str
) -> Iterator[Commands]:
    """Yield how to correct a required trait that no host has.

    :param key: Where it is required.
    """
    right = closest(trait, known.traits)
    if right is None:
        return
    names = known.trait_names
    if names[trait] > names[right] and right in known.snapshot.required_by:
        sync = commands.SYNC if os_traits.is_custom(trait) else ()
        yield (
            tuple(
                command
                for aggregate in known.snapshot.required_by[right]
                for command in commands.replace_value(
                    aggregate,
                    xs.TRAIT_PREFIX + right,
                    xs.TRAIT_PREFIX + trait,
                    xs.REQUIRED,
                    xs.TRAIT_PREFIX,
                )
            )
            + sync
        )
        return
    spec = next(xs.parse({key: xs.REQUIRED}), None)
    put = f'trait{spec.suffix if spec else ""}:{right}'
    yield commands.replace_value(thing, key, put, xs.REQUIRED)


def keys(
    known: KnownNames, flavor: Flavor, traits: Collection[str]
) -> Iterator[Repair]:
    """Yield how to correct a flavor that is meant to require traits."""
    for key, value, trait in suspects(known, flavor):
        if trait in traits:
            if (key, value) != (xs.TRAIT_PREFIX + trait, xs.REQUIRED):
                yield next(flavors.corrections(known, flavor, key, value))
        elif trait not in known.snapshot.required_by and (
            closest(trait, traits)
        ):
            yield from map(Repair, required_trait(known, flavor, key, trait))


def suspects(
    known: KnownNames, flavor: Flavor
) -> Iterator[tuple[str, str, str]]:
    """Yield the extra specs that may be meant to require another trait.

    :returns: Their keys, their values, and the traits that they name.
    """
    for key, value in sorted(flavor.extra_specs.items()):
        trait = looks_like_trait(key)
        if (
            trait
            and value != xs.FORBIDDEN
            and (
                (key, value) != (xs.TRAIT_PREFIX + trait, xs.REQUIRED)
                or trait not in known.snapshot.required_by
            )
        ):
            yield key, value, trait


def resource_class(
    known: KnownNames, flavor: Flavor, key: str, name: str
) -> Iterator[Commands]:
    """Yield how to correct a resource class that no host has."""
    right = closest(name, known.classes)
    if right is not None:
        put = key.removesuffix(name) + right
        yield commands.replace_spec(
            flavor, put, flavor.extra_specs[key], instead_of=key
        )


def metadata(
    known: KnownNames, flavor: Flavor, requirement: RequiredMetadata
) -> Iterator[Commands]:
    """Yield how to correct required metadata that no aggregate has."""
    if not requirement.is_plain:
        return
    wanted = requirement.key, requirement.value
    found: Counter[tuple[str, str]] = Counter()
    holders: dict[tuple[str, str], list[Aggregate]] = {}
    for aggregate in known.snapshot.aggregates:
        for key, text in aggregate.metadata.items():
            for value in values_of(text):
                pair = key, value
                if pair != wanted and _are_alike(wanted, pair):
                    found[pair] += 1
                    holders.setdefault(pair, []).append(aggregate)
    if not found:
        return
    named = Counter((each.key, each.value) for each in known.requirements)
    pair = max(found, key=lambda p: (found[p] + named[p], p))
    key, value = pair
    if named[wanted] > found[pair] + named[pair]:
        yield tuple(
            command
            for aggregate in holders[pair]
            for command in commands.replace_value(
                aggregate,
                key,
                requirement.key,
                ','.join(
                    requirement.value if each == value else each
                    for each in sorted(values_of(aggregate.metadata[key]))
                ),
            )
        )
        return
    put = requirement.extra_spec.removesuffix(requirement.key) + key
    yield commands.replace_spec(
        flavor, put, value, instead_of=requirement.extra_spec
    )


def _are_alike(wanted: tuple[str, str], had: tuple[str, str]) -> bool:
    """Return whether a key and value may be meant for another one."""
    (key, value), (other_key, other_value) = wanted, had
    same_key = key == other_key or closest(key, [other_key])
    same_value = value == other_value or closest(value, [other_value])
    return bool(same_key and same_value)


def reservation(
    known: KnownNames, thing: Flavor | Image, key: str
) -> Iterator[Commands]:
    """Yield how to correct the key of a reservation that is not there."""
    prefixes = known.reservation_prefixes(lambda keys: keys.required)
    others = {
        other
        for aggregate in known.snapshot.aggregates
        for other in aggregate.metadata
        if prefixes and other.startswith(prefixes)
    }
    right = closest_id(key, others)
    values = (
        thing.extra_specs if isinstance(thing, Flavor) else thing.properties
    )
    if right is not None:
        yield commands.replace_value(thing, key, right, values[key])
