# SPDX-License-Identifier: Apache-2.0
"""Finds what is misspelled in the metadata of aggregates."""

from collections.abc import Iterator
import re

from isolate_aggregates.aggregates import Aggregate, collation, domains
from isolate_aggregates.aggregates import tags as tools_tags
from isolate_aggregates.filters.required_metadata import REQUEST_FILTER
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools.diagnosis.near_names import (
    closest,
    closest_id,
    looks_like_trait,
)
from isolate_aggregates_tools.diagnosis.spelling.known import KnownNames
from isolate_aggregates_tools.diagnosis.spelling.misspelling import Misspelling
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair

_LIKE_TENANTS = re.compile(
    r'filter[-_ ]?(?:tenant|project)s?[-_ ]?ids?', re.IGNORECASE
)


def misspelled(
    known: KnownNames, aggregate: Aggregate
) -> Iterator[Misspelling]:
    """Yield the metadata that has not the effect that is meant."""
    # Placement may have a newer os-traits with more traits.
    traits = known.snapshot.provider_traits
    for key, value in sorted(aggregate.metadata.items()):
        trait = looks_like_trait(key)
        if key == xs.TRAIT_PREFIX + trait and (
            value == xs.REQUIRED and trait in traits
        ):
            continue
        looks_required = trait and value.strip().lower() == xs.REQUIRED
        if tools_tags.is_lock(key, value) or (
            looks_required and not known.is_metadata(key)
        ):
            yield from _tag(aggregate, key, value, trait)
        elif trait and key == xs.TRAIT_PREFIX + trait:
            yield Misspelling(
                'tag-without-effect',
                'info',
                aggregate,
                f'has {key}={value}, but only the value {xs.REQUIRED} locks',
                'the tag has no effect',
                (Repair(commands.unset(aggregate, key)),),
            )
        else:
            yield from _other_key(known, aggregate, key, value)


def _tag(
    aggregate: Aggregate, key: str, value: str, trait: str
) -> Iterator[Misspelling]:
    right = xs.TRAIT_PREFIX + trait
    problem = tools_tags.problem(key, value)
    if not problem:
        if key.startswith(xs.TRAIT_PREFIX):
            return
        problem = f'isolates nothing; the key must be {right}'
    has_lock = tools_tags.is_lock(key, value)
    if not has_lock:
        kind = 'tag-without-effect'
        consequence = 'the aggregate is not locked: any server may land there'
    elif tools_tags.problem(key, xs.REQUIRED):
        kind = 'tag-that-nothing-opens'
        consequence = 'no server can land there'
    else:
        kind = 'tag-depends-on-database'
        consequence = 'without isolate-aggregates it may not be locked'
    yield Misspelling(
        kind,
        'error',
        aggregate,
        f'has {key}={value}, which {problem}',
        consequence,
        tuple(_correct_tag(aggregate, key, right, has_lock)),
    )


def _correct_tag(
    aggregate: Aggregate, key: str, right: str, has_lock: bool
) -> Iterator[Repair]:
    """Yield how to correct a tag, or how to remove it."""
    if not tools_tags.problem(right, xs.REQUIRED):
        yield Repair(
            commands.replace_value(
                aggregate, key, right, xs.REQUIRED, xs.TRAIT_PREFIX
            )
        )
        return
    if has_lock and aggregate.hosts:
        # No trait can have the name, so it has to be another one.
        lock = commands.shown(commands.lock(aggregate.name, 'TRAIT'))
        yield Repair(
            text=f'{lock}, and give TRAIT to the flavors whose servers '
            'belong there; then remove this tag'
        )
    yield Repair(commands.unset(aggregate, key))


def _other_key(
    known: KnownNames, aggregate: Aggregate, key: str, value: str
) -> Iterator[Misspelling]:
    """Yield a key of reservations, projects or a scope."""
    for prefix in known.reservation_prefixes(lambda keys: keys.forbidden):
        if _only_looks_like(prefix, key):
            yield Misspelling(
                'tag-that-nothing-opens',
                'error',
                aggregate,
                f'has {key}, but the prefix of reservations is {prefix}',
                'servers without a reservation are kept out, and no '
                'server can name this one',
                (
                    Repair(
                        commands.replace_value(
                            aggregate,
                            key,
                            prefix + key[len(prefix) :],
                            value,
                            prefix,
                        )
                    ),
                ),
            )
    for prefix in known.project_prefixes:
        if key.startswith(prefix):
            yield from _project(known, aggregate, key, value)
            return
        rest = _after_tenants(prefix, key)
        if rest is not None:
            yield Misspelling(
                'tag-without-effect',
                'error',
                aggregate,
                f'has {key}, but only keys that start with {prefix} name '
                'projects',
                'servers of other projects may land there',
                (
                    Repair(
                        commands.replace_value(
                            aggregate, key, prefix + rest, value
                        )
                    ),
                ),
            )
            return
    scope, colon, name = key.partition(':')
    if not colon or not name or not known.reads_specs:
        return
    if scope == REQUEST_FILTER or closest(scope, [REQUEST_FILTER]):
        yield Misspelling(
            'tag-without-effect',
            'error',
            aggregate,
            f'has {key}={value}, but the scope {REQUEST_FILTER} belongs '
            f'to extra specs of flavors; an aggregate has just {name}',
            'flavors that require it do not find its hosts',
            (
                Repair(
                    commands.unset(aggregate, key)
                    if name in aggregate.metadata
                    else commands.replace_value(aggregate, key, name, value)
                ),
            ),
        )


def _project(
    known: KnownNames, aggregate: Aggregate, key: str, value: str
) -> Iterator[Misspelling]:
    """Yield the ids of projects that nothing has, but for a letter."""
    if domains.is_of_domain(key):
        return
    ids = [each.strip() for each in value.split(',')]
    right = [
        each
        if each in known.project_ids
        else closest_id(each, known.project_ids) or each
        for each in ids
    ]
    if ids != right:
        wrong, meant = next(
            pair for pair in zip(ids, right, strict=True) if pair[0] != pair[1]
        )
        yield Misspelling(
            'tag-without-effect',
            'error',
            aggregate,
            f'has {key}={value}; no project {wrong} is known, and '
            f'project {meant} is',
            f'servers of project {meant} do not land there',
            (
                Repair(
                    (
                        commands.set_value(
                            aggregate, key, ','.join(dict.fromkeys(right))
                        ),
                    )
                ),
            ),
        )


def _only_looks_like(prefix: str, key: str) -> bool:
    return not key.startswith(prefix) and collation.may_start_with(
        key, prefix.lower()
    )


def _after_tenants(prefix: str, key: str) -> str | None:
    """Return the rest of a key with a misspelled prefix of projects.

    None if it does not have one.
    """
    if _only_looks_like(prefix, key):
        return key[len(prefix) :]
    like = _LIKE_TENANTS.match(key)
    return key[like.end() :] if like and prefix == domains.TENANTS else None
