# SPDX-License-Identifier: Apache-2.0
"""Finds metadata of aggregates that is misspelled or has no effect."""

from collections.abc import Iterator

from isolate_aggregates.aggregates import Aggregate, collation, tags
from isolate_aggregates.filters.required_metadata import required_metadata
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.tools import filter_keys
from isolate_aggregates.tools.advice import Repair, commands
from isolate_aggregates.tools.advice.spelling import LIKE_PREFIX
from isolate_aggregates.tools.audit.cloud import AuditedCloud
from isolate_aggregates.tools.audit.finding import About, Finding, Severity

# Metadata of aggregates that AggregateCoreFilter, AggregateRamFilter and
# AggregateDiskFilter read.
_RATIOS = frozenset(
    f'{kind}_allocation_ratio' for kind in ('cpu', 'ram', 'disk')
)


def without_meaning(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find metadata that locks nothing, or that no key can open."""
    # Placement may have a newer os-traits with more traits.
    traits = cloud.snapshot.provider_traits
    right = {(TRAIT_PREFIX + trait, REQUIRED) for trait in traits}
    for aggregate in cloud.snapshot.aggregates:
        for key, value in sorted(aggregate.metadata.items()):
            like = LIKE_PREFIX.match(key)
            trait = key[like.end() :].strip().upper() if like else ''
            if (key, value) in right:
                continue
            looks_required = trait and value.strip().lower() == REQUIRED
            if looks_required or tags.is_lock(key, value):
                yield from _misspelt(aggregate, key, value, trait)
            elif trait and key == TRAIT_PREFIX + trait:
                yield Finding(
                    'tag-without-effect',
                    Severity.INFO,
                    f'aggregate {aggregate.name}',
                    f'has {key}={value}, but only the value {REQUIRED} locks',
                    'the tag has no effect',
                    (Repair(commands.unset_tags(aggregate, [key])),),
                    about=About.of(
                        hosts=aggregate.hosts, aggregates=[aggregate.name]
                    ),
                )


def _misspelt(
    aggregate: Aggregate, key: str, value: str, trait: str
) -> Iterator[Finding]:
    right = TRAIT_PREFIX + trait
    problem = tags.problem(key, value)
    if not problem:
        if key.startswith(TRAIT_PREFIX):
            return
        problem = f'isolates nothing; the key must be {right}'
    has_lock = tags.is_lock(key, value)
    if not has_lock:
        kind = 'tag-without-effect'
        consequence = 'the aggregate is not locked: any server may land there'
    elif tags.problem(key, REQUIRED):
        kind = 'tag-that-nothing-opens'
        consequence = 'no server can land there'
    else:
        kind = 'tag-depends-on-database'
        consequence = 'without isolate-aggregates it may not be locked'
    yield Finding(
        kind,
        Severity.ERROR,
        f'aggregate {aggregate.name}',
        f'has {key}={value}, which {problem}',
        consequence,
        tuple(_correct(aggregate, key, right, has_lock)),
        about=About.of(hosts=aggregate.hosts, aggregates=[aggregate.name]),
    )


def _correct(
    aggregate: Aggregate, key: str, right: str, has_lock: bool
) -> Iterator[Repair]:
    """Yield how to correct a tag, or how to remove it."""
    if not tags.problem(right, REQUIRED):
        yield Repair(
            commands.replace_tag(aggregate, key, right, REQUIRED, TRAIT_PREFIX)
        )
        return
    if has_lock and aggregate.hosts:
        # No trait can have the name, so it has to be another one.
        lock = commands.shown(
            [
                (
                    commands.PROGRAM,
                    'lock',
                    'create',
                    aggregate.name,
                    '--trait',
                    'TRAIT',
                )
            ]
        )
        yield Repair(
            text=f'{lock}, and give TRAIT to the flavors whose servers '
            'belong there; then remove this tag'
        )
    yield Repair(commands.unset_tags(aggregate, [key]))


def ratios(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find allocation ratios, which Nova no longer reads of aggregates."""
    required = {
        requirement.key
        for flavor in cloud.snapshot.flavors
        for requirement in required_metadata(flavor.extra_specs)
    }
    for aggregate in cloud.snapshot.aggregates:
        for key in sorted(aggregate.metadata.keys() & _RATIOS - required):
            yield Finding(
                'tag-without-effect',
                Severity.INFO,
                f'aggregate {aggregate.name}',
                f'has {key}={aggregate.metadata[key]}, but the filter that '
                'read it was removed from Nova',
                'the ratio of its hosts is that of their inventories in '
                f'Placement, which nova-compute takes from [DEFAULT] {key}',
                (Repair(commands.unset_tags(aggregate, [key])),),
                about=About.of(
                    hosts=aggregate.hosts, aggregates=[aggregate.name]
                ),
            )


def other_case(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find keys of reservations and projects with letters in wrong case."""
    for aggregate in cloud.snapshot.aggregates:
        for key, value in sorted(aggregate.metadata.items()):
            for entry in cloud.filters:
                for prefix in filter_keys.of_reservations(
                    entry.request_filter
                ).forbidden:
                    if _only_looks_like(prefix, key):
                        yield _unnameable(aggregate, key, value, prefix)
                for prefix in filter_keys.of_projects(entry.request_filter):
                    if _only_looks_like(prefix, key):
                        yield _without_effect(aggregate, key, value, prefix)


def _only_looks_like(prefix: str, key: str) -> bool:
    return not key.startswith(prefix) and collation.may_start_with(
        key, prefix.lower()
    )


def _unnameable(
    aggregate: Aggregate, key: str, value: str, prefix: str
) -> Finding:
    return Finding(
        'tag-that-nothing-opens',
        Severity.ERROR,
        f'aggregate {aggregate.name}',
        f'has {key}, but the prefix of reservations is {prefix}',
        'servers without a reservation are kept out, and no server can name '
        'this one',
        (
            Repair(
                commands.replace_tag(
                    aggregate, key, prefix + key[len(prefix) :], value, prefix
                )
            ),
        ),
        about=About.of(hosts=aggregate.hosts, aggregates=[aggregate.name]),
    )


def _without_effect(
    aggregate: Aggregate, key: str, value: str, prefix: str
) -> Finding:
    return Finding(
        'tag-without-effect',
        Severity.ERROR,
        f'aggregate {aggregate.name}',
        f'has {key}, but only keys that start with {prefix} name projects',
        'servers of other projects may land there',
        (
            Repair(
                commands.replace_tag(
                    aggregate, key, prefix + key[len(prefix) :], value
                )
            ),
        ),
        about=About.of(hosts=aggregate.hosts, aggregates=[aggregate.name]),
    )
