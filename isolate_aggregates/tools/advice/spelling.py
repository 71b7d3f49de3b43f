# SPDX-License-Identifier: Apache-2.0
"""Corrects extra specs that resemble required traits."""

from collections.abc import Collection, Iterable, Iterator
import difflib
import re

from isolate_aggregates.aggregates import tags
from isolate_aggregates.request import Flavor
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.tools.advice import commands
from isolate_aggregates.tools.advice.repair import Repair

# Misspellings of "trait:".
LIKE_PREFIX = re.compile(r'\s*traits?\w*\s*[:=.]\s*', re.IGNORECASE)

VALUES = (xs.REQUIRED, xs.FORBIDDEN)
# Values that mean "required".
_YES = ('yes', 'true', 'on', '1')
# How similar a misspelled value or trait is to the one that is meant.
_CLOSE_VALUE = 0.75
_CLOSE_TRAIT = 0.85
_CUSTOM = 'CUSTOM_'
# The numbers and single letters in the name of a trait.
_SERIAL = re.compile(r'\d+|(?<=_)[A-Z](?=_|$)')


def groups_without_resources(flavor: Flavor) -> set[str]:
    specs = list(xs.parse(flavor.extra_specs))
    suffixes = {spec.suffix for spec in specs if spec.kind == 'resources'}
    return {spec.suffix for spec in specs if spec.suffix} - suffixes


def corrections(
    flavor: Flavor, key: str, value: str, locking: Collection[str]
) -> Iterator[Repair]:
    """Yield how to correct an extra spec that resembles a required trait.

    If its meaning is a guess, how to remove it comes last.

    :param locking: The traits that lock aggregates.
    """
    like = LIKE_PREFIX.match(key)
    trait = key[like.end() if like else 0 :].strip().upper()
    right_value = meant_value(value)
    if trait in locking:
        # It is the key of a lock.
        right_value = right_value or xs.REQUIRED
    if right_value and tags.is_trait_name(trait):
        spec = next(xs.parse({key: value}), None)
        is_alone = spec and spec.suffix in groups_without_resources(flavor)
        right = key if spec and not is_alone else xs.TRAIT_PREFIX + trait
        yield Repair(
            commands.replace_spec(flavor, right, right_value, instead_of=key)
        )
        if value.strip().lower() == right_value:
            return
    yield Repair(commands.unset_spec(flavor, key))


def meant_value(value: str) -> str | None:
    """Return the value that is probably meant."""
    plain = value.strip().lower()
    if plain in _YES:
        return xs.REQUIRED
    close = difflib.get_close_matches(plain, VALUES, n=1, cutoff=_CLOSE_VALUE)
    return close[0] if close else None


def corrected_keys(
    flavor: Flavor, traits: Collection[str], locking: Collection[str]
) -> Iterator[Repair]:
    """Yield how to correct the misspelled traits of a flavor."""
    for key, value in sorted(flavor.extra_specs.items()):
        like = LIKE_PREFIX.match(key)
        if not like or value == xs.FORBIDDEN:
            continue
        name = key[like.end() :].strip()
        if name.upper() in traits:
            if (key, value) != (xs.TRAIT_PREFIX + name, xs.REQUIRED):
                yield next(corrections(flavor, key, value, locking))
            continue
        if name in locking:
            continue
        for right in similar_traits(name, traits):
            yield Repair(
                commands.replace_spec(
                    flavor,
                    xs.TRAIT_PREFIX + right,
                    xs.REQUIRED,
                    instead_of=key,
                )
            )


def similar_traits(trait: str, traits: Iterable[str]) -> list[str]:
    """Return the known trait that a misspelled one probably means, if any.

    Names that differ in numbers or single letters mean different things.
    """
    name = trait.upper().removeprefix(_CUSTOM)
    others = {
        other.removeprefix(_CUSTOM): other
        for other in sorted(set(traits) - {trait})
        if _SERIAL.findall(other) == _SERIAL.findall(trait.upper())
    }
    close = difflib.get_close_matches(name, others, n=1, cutoff=_CLOSE_TRAIT)
    return [others[one] for one in close]
