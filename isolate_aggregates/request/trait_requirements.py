# SPDX-License-Identifier: Apache-2.0
"""The traits that flavors and images require."""

from collections.abc import Mapping

from isolate_aggregates.request.extra_specs import (
    REQUIRED,
    TRAIT_PREFIX,
    parse,
)


def required_traits(extra_specs: Mapping[str, str]) -> frozenset[str]:
    """Return the traits that a flavor requires, in any request group."""
    return frozenset(
        spec.name
        for spec in parse(extra_specs)
        if spec.kind == 'trait' and spec.value == REQUIRED
    )


def image_required_traits(properties: Mapping[str, object]) -> frozenset[str]:
    """Return the traits that an image requires.

    Images cannot have suffixes or forbid traits. Nova uses the property only
    if its value is exactly ``required`` (``nova.objects.ImageMetaProps``).
    """
    return frozenset(
        key.removeprefix(TRAIT_PREFIX)
        for key, value in properties.items()
        if key.startswith(TRAIT_PREFIX) and str(value) == REQUIRED
    )
