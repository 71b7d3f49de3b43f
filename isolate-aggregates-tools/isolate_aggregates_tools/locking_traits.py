# SPDX-License-Identifier: Apache-2.0
"""Which traits can lock an aggregate."""

from collections.abc import Collection, Iterable

import os_traits

from isolate_aggregates.request.extra_specs import RESERVATION_TRAIT
from isolate_aggregates_tools import marks

# Traits that nova-compute manages, or that have a special meaning in Placement
# or Nova.
_NOT_BY_HAND = (
    'COMPUTE_',
    'HW_ARCH_',
    'HW_CPU_',
    'HW_NUMA_',
    'MISC_',
    'OWNER_',
)


def why_not_put(trait: str, existing: Collection[str]) -> str | None:
    """Return why sync does not add a trait to providers; None if it does."""
    if trait.startswith(_NOT_BY_HAND):
        return (
            'nova-compute reports it, or it has a special meaning; '
            'require a CUSTOM_ trait instead'
        )
    if trait == RESERVATION_TRAIT:
        return (
            'only reservation providers may have it; reservation host set '
            '--enable adds it there'
        )
    if marks.is_mark(trait):
        return 'such names are reserved for sync; choose another'
    if not marks.fits(trait):
        return 'its name is too long to be marked; choose a shorter one'
    if not os_traits.is_custom(trait) and trait not in existing:
        return (
            'this Placement does not know it; traits that are not standard '
            'must start with CUSTOM_'
        )
    return None


# What a trait that another program keeps ends with, and its opposite.
_OPPOSITES = {
    one: other
    for pair in (
        ('_TRUE', '_FALSE'),
        ('_ENABLED', '_DISABLED'),
        ('_YES', '_NO'),
        ('_ON', '_OFF'),
    )
    for one, other in (pair, pair[::-1])
}


def opposite(trait: str, traits: Collection[str]) -> str:
    """Return which of some traits contradicts another one; empty if none.

    A program that attests hosts gives each of them one of two traits. Where
    it gives ``..._FALSE``, nobody else may add ``..._TRUE``.
    """
    for ending, other in _OPPOSITES.items():
        if trait.endswith(ending):
            contrary = trait.removesuffix(ending) + other
            return contrary if contrary in traits else ''
    return ''


def kept(contrary: str) -> str:
    """Return why a provider with the opposite of a trait does not get it."""
    return f'another program keeps {contrary}, which contradicts it'


def contradicted(
    required: Iterable[str], traits: Collection[str]
) -> frozenset[str]:
    """Return the required traits that contradict one of a provider."""
    return frozenset(each for each in required if opposite(each, traits))
