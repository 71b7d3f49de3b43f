# SPDX-License-Identifier: Apache-2.0
"""Marks that record what sync has added to Placement.

They are custom traits in Placement, so they do not depend on the machine that
runs sync:

* A trait that sync has added to a resource provider has a mark on the same
  provider, named after it. Both are written in one request.
* A rollup aggregate has a trait that is on no provider: if it exists, sync has
  added the members of this aggregate.
"""

from collections.abc import Iterable

# Must never change: providers have these traits.
_TRAIT = 'CUSTOM_ISOLATE_SYNC_'
_ROLLUP = 'CUSTOM_ISOLATE_ROLLUP_'

# The maximum length of a trait's name in Placement.
_LONGEST = 255


def of_trait(trait: str) -> str:
    """Return the trait that marks another one."""
    return _TRAIT + trait


def of_rollup(uuid: str) -> str:
    """Return the trait that marks a rollup aggregate."""
    return _ROLLUP + uuid.replace('-', '_').upper()


def fits(trait: str) -> bool:
    """Return whether the mark of a trait is short enough for Placement."""
    return len(of_trait(trait)) <= _LONGEST


def is_mark(trait: str) -> bool:
    """Return whether a trait is a mark."""
    return trait.startswith((_TRAIT, _ROLLUP))


def marked_traits(traits: Iterable[str]) -> frozenset[str]:
    """Return the traits whose marks are in a set of traits."""
    return frozenset(
        trait.removeprefix(_TRAIT)
        for trait in traits
        if trait.startswith(_TRAIT)
    )


def marked_rollups(traits: Iterable[str]) -> frozenset[str]:
    """Return the uuids of the rollups whose marks are in a set of traits."""
    return frozenset(
        trait.removeprefix(_ROLLUP).replace('_', '-').lower()
        for trait in traits
        if trait.startswith(_ROLLUP)
    )
