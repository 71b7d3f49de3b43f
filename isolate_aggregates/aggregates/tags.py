# SPDX-License-Identifier: Apache-2.0
"""Finds metadata that looks like a lock but does not work."""

from collections.abc import Iterator
import functools
import re

import os_traits

from isolate_aggregates.aggregates import collation
from isolate_aggregates.aggregates.aggregate import Aggregate
from isolate_aggregates.aggregates.index import AggregateIndex
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX

# The size of the cache; thousands of aggregates may have the same metadata.
_MOST = 2**14

_NAME = re.compile(r'[A-Z0-9_]+')


def problems(index: AggregateIndex) -> Iterator[str]:
    """Yield one sentence for each metadata item that does not work."""
    for aggregate in index.with_prefix_like(TRAIT_PREFIX):
        for key, value in sorted(aggregate.metadata.items()):
            text = problem(key, value)
            if text:
                yield f'aggregate {aggregate.name}: {key}={value} {text}'


def required_traits(aggregate: Aggregate) -> frozenset[str]:
    """Return the traits that open an aggregate, as far as they are valid."""
    return frozenset(
        key.removeprefix(TRAIT_PREFIX)
        for key, value in aggregate.metadata.items()
        if collation.may_equal(value, REQUIRED)
        and key.startswith(TRAIT_PREFIX)
        and is_trait_name(key.removeprefix(TRAIT_PREFIX))
    )


def all_required(index: AggregateIndex) -> frozenset[str]:
    """Return the traits that open any aggregate."""
    return frozenset().union(*map(required_traits, index))


def is_trait_name(name: str) -> bool:
    """Return whether a trait can have a name."""
    return bool(_NAME.fullmatch(name))


def is_lock(key: str, value: str) -> bool:
    """Return whether metadata locks an aggregate, as in ``index.py``."""
    return collation.may_start_with(key, TRAIT_PREFIX) and collation.may_equal(
        value, REQUIRED
    )


@functools.lru_cache(_MOST)
def problem(key: str, value: str) -> str | None:
    """Return why metadata does not work, as a predicate; None if it works."""
    prefix, trait = key[: len(TRAIT_PREFIX)], key[len(TRAIT_PREFIX) :]
    if not is_lock(key, value):
        if prefix == TRAIT_PREFIX and value.strip().lower() == REQUIRED:
            return f'isolates nothing; the value must be {REQUIRED!r}'
        return None
    if prefix != TRAIT_PREFIX:
        return f'cannot be opened; the key must start with {TRAIT_PREFIX!r}'
    if not is_trait_name(trait):
        return (
            'cannot be opened; a trait name may contain only uppercase '
            'letters, digits and _'
        )
    if not os_traits.is_custom(trait) and trait not in standard_traits():
        return (
            'cannot be opened unless Placement knows the trait; it is not a '
            'standard trait of the os-traits installed here, and all other '
            'traits start with CUSTOM_'
        )
    if value != REQUIRED:
        return (
            "isolates, but with Nova's own filter only in some databases; the "
            f'value must be {REQUIRED!r}'
        )
    return None


@functools.cache
def standard_traits() -> frozenset[str]:
    """Return the standard traits of the installed ``os-traits``."""
    return frozenset(os_traits.get_traits())
