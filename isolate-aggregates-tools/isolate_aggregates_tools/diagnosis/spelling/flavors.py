# SPDX-License-Identifier: Apache-2.0
"""Finds what is misspelled in flavors."""

from collections.abc import Iterator

import os_resource_classes as orc

from isolate_aggregates.aggregates import tags as tools_tags
from isolate_aggregates.filters.required_metadata import REQUEST_FILTER
from isolate_aggregates.request import Flavor
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools.diagnosis.near_names import (
    LIKE_PREFIX,
    VALUES,
    closest,
    looks_like_trait,
    meant_value,
)
from isolate_aggregates_tools.diagnosis.spelling.known import KnownNames
from isolate_aggregates_tools.diagnosis.spelling.misspelling import Misspelling
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair

# The scopes of extra specs, which are never taken for a misspelling.
_SCOPES = frozenset({
    'accel', REQUEST_FILTER, 'capabilities', 'hw', 'hw_rng', 'hw_video', 'os',
    'pci_passthrough', 'powervm', 'quota', 'resources', 'trait', 'vmware',
})  # fmt: skip


def groups_without_resources(flavor: Flavor) -> set[str]:
    specs = list(xs.parse(flavor.extra_specs))
    suffixes = {spec.suffix for spec in specs if spec.amount}
    return {spec.suffix for spec in specs if spec.suffix} - suffixes


def misspelled(known: KnownNames, flavor: Flavor) -> Iterator[Misspelling]:
    """Yield the extra specs that have not the effect that is meant."""
    without = groups_without_resources(flavor)
    for key, value in sorted(flavor.extra_specs.items()):
        spec = next(xs.parse({key: value}), None)
        if LIKE_PREFIX.match(key):
            if spec and spec.suffix in without and value in VALUES:
                yield _group_alone(known, flavor, spec)
            elif (not spec or value not in VALUES) and (
                spec or value.strip().lower() in VALUES
            ):
                yield _no_demand(known, flavor, key, value)
        elif looks_like_trait(key) and not known.is_metadata(key):
            if value.strip().lower() in VALUES:
                yield _no_demand(known, flavor, key, value)
        elif spec is None:
            yield from _scope(known, flavor, key, value)
        elif spec.kind == 'resources':
            yield from _no_resource(known, flavor, key, spec)


def _group_alone(
    known: KnownNames, flavor: Flavor, spec: xs.ExtraSpec
) -> Misspelling:
    key = f'{spec.kind}{spec.suffix}:{spec.name}'
    return Misspelling(
        'group-without-resources',
        'error',
        flavor,
        f'has {key}={spec.value}, which is request group {spec.suffix!r} '
        'without any resources',
        'Placement refuses the query, and servers get "No valid host was '
        'found."',
        tuple(corrections(known, flavor, key, spec.value)),
    )


def _no_demand(
    known: KnownNames, flavor: Flavor, key: str, value: str
) -> Misspelling:
    return Misspelling(
        'extra-spec-without-effect',
        'warning',
        flavor,
        f'has {key}={value}, but only {xs.TRAIT_PREFIX}<name> with '
        f'{" or ".join(VALUES)} has an effect',
        'the flavor does not require the trait',
        tuple(corrections(known, flavor, key, value)),
    )


def corrections(
    known: KnownNames, flavor: Flavor, key: str, value: str
) -> Iterator[Repair]:
    """Yield how to correct what resembles a required trait.

    If its meaning is a guess, how to remove it comes last.
    """
    trait = looks_like_trait(key)
    right_value = meant_value(value)
    if trait in known.snapshot.required_by:
        # It is the key of a lock.
        right_value = right_value or xs.REQUIRED
    if right_value and tools_tags.is_trait_name(trait):
        spec = next(xs.parse({key: value}), None)
        is_alone = spec and spec.suffix in groups_without_resources(flavor)
        right = key if spec and not is_alone else xs.TRAIT_PREFIX + trait
        yield Repair(
            commands.replace_spec(flavor, right, right_value, instead_of=key)
        )
        if value.strip().lower() == right_value:
            return
    yield Repair(commands.unset(flavor, key))


def _scope(
    known: KnownNames, flavor: Flavor, key: str, value: str
) -> Iterator[Misspelling]:
    """Yield an extra spec whose scope is misspelled."""
    scope, colon, name = key.partition(':')
    if not colon or scope in _SCOPES or not name:
        return
    right = closest(scope, (REQUEST_FILTER, 'resources'))
    if right is None or (right == REQUEST_FILTER and not known.reads_specs):
        return
    yield Misspelling(
        'extra-spec-without-effect',
        'warning',
        flavor,
        f'has {key}={value}, but the scope is called {right}',
        'Nova ignores it',
        (
            Repair(
                commands.replace_spec(
                    flavor, f'{right}:{name}', value, instead_of=key
                )
            ),
            Repair(commands.unset(flavor, key)),
        ),
    )


def _no_resource(
    known: KnownNames, flavor: Flavor, key: str, spec: xs.ExtraSpec
) -> Iterator[Misspelling]:
    """Yield an extra spec whose resource class or amount cannot exist."""
    if spec.name in orc.STANDARDS or orc.is_custom(spec.name):
        if spec.amount is None:
            yield Misspelling(
                'extra-spec-without-effect',
                'warning',
                flavor,
                f'has {key}={spec.value}, and an amount must be an integer '
                'from 0 on',
                'Nova ignores it',
                (Repair(commands.unset(flavor, key)),),
            )
        return
    right = closest(spec.name, known.classes)
    put = f'resources{spec.suffix}:{right}'
    yield Misspelling(
        'extra-spec-without-effect',
        'warning',
        flavor,
        f'has {key}={spec.value}, and there can be no such resource class',
        'Nova ignores it',
        (
            *(
                [
                    Repair(
                        commands.replace_spec(
                            flavor, put, spec.value, instead_of=key
                        )
                    )
                ]
                if right
                else []
            ),
            Repair(commands.unset(flavor, key)),
        ),
    )
