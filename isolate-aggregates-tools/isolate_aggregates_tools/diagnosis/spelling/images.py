# SPDX-License-Identifier: Apache-2.0
"""Finds what is misspelled in images."""

from collections.abc import Iterator
import re

from isolate_aggregates.aggregates import tags as tools_tags
from isolate_aggregates.request import Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import quoted
from isolate_aggregates_tools.diagnosis.near_names import (
    looks_like_trait,
    meant_value,
)
from isolate_aggregates_tools.diagnosis.spelling.misspelling import Misspelling
from isolate_aggregates_tools.mirrored import nova_image
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair


def misspelled(image: Image) -> Iterator[Misspelling]:
    """Yield the properties that have not the effect that is meant."""
    for key, value in sorted(image.properties.items()):
        trait = looks_like_trait(key)
        is_key = key.startswith(xs.TRAIT_PREFIX)
        if trait and not (is_key and value == xs.REQUIRED):
            if is_key or value.strip().lower() == xs.REQUIRED:
                yield Misspelling(
                    'image-property-without-effect',
                    'info',
                    image,
                    f'has {quoted(key)}={quoted(value)}, but only '
                    f'{xs.TRAIT_PREFIX}<name>={xs.REQUIRED} has an effect',
                    'the image does not require the trait',
                    tuple(_of_property(image, key, value, trait)),
                )
        elif key not in nova_image.KNOWN:
            right = _known_property(key)
            if right and right not in image.properties:
                yield Misspelling(
                    'image-property-without-effect',
                    'info',
                    image,
                    f'has {quoted(key)}={quoted(value)}, but Nova calls '
                    f'the property {right}',
                    'Nova ignores it',
                    (
                        Repair(
                            commands.replace_value(image, key, right, value)
                        ),
                        Repair(commands.unset(image, key)),
                    ),
                )


def _of_property(
    image: Image, key: str, value: str, trait: str
) -> Iterator[Repair]:
    """Yield how to correct a property, and how to remove it."""
    right = xs.TRAIT_PREFIX + (
        key.removeprefix(xs.TRAIT_PREFIX)
        if key.startswith(xs.TRAIT_PREFIX)
        else trait
    )
    if (
        tools_tags.is_trait_name(right.removeprefix(xs.TRAIT_PREFIX))
        and not image.is_tenants
        and meant_value(value) == xs.REQUIRED
    ):
        yield Repair(commands.replace_value(image, key, right, xs.REQUIRED))
    yield Repair(commands.unset(image, key))


def _known_property(key: str) -> str | None:
    """Return the property of Nova that differs in case or separators."""
    right = re.sub('[^a-z0-9]+', '_', key.lower().strip())
    for name in (right, right.removesuffix('s')):
        if name in nova_image.KNOWN and name != key:
            return name
    return None
