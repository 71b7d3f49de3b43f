# SPDX-License-Identifier: Apache-2.0
"""Finds extra specs and image properties that are misspelled."""

from collections.abc import Iterator

from isolate_aggregates.aggregates import tags
from isolate_aggregates.inspect.audit import repairs
from isolate_aggregates.inspect.audit.cloud import AuditedCloud
from isolate_aggregates.inspect.audit.finding import Finding, Severity
from isolate_aggregates.inspect.audit.tags import LIKE_PREFIX
from isolate_aggregates.request import Flavor
from isolate_aggregates.request import extra_specs as xs

_VALUES = (xs.REQUIRED, xs.FORBIDDEN)


def extra_specs(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find extra specs that resemble required traits but have no effect."""
    for flavor in cloud.snapshot.flavors:
        without = _groups_without_resources(flavor)
        for key, value in sorted(flavor.extra_specs.items()):
            like = LIKE_PREFIX.match(key)
            if not like:
                continue
            trait = key[like.end() :].strip().upper()
            spec = next(xs.parse({key: value}), None)
            if spec and spec.suffix in without and value in _VALUES:
                yield _group_alone(flavor, spec, trait)
            elif not spec or value not in _VALUES:
                yield from _no_demand(flavor, key, value, trait)


def _groups_without_resources(flavor: Flavor) -> set[str]:
    specs = list(xs.parse(flavor.extra_specs))
    given = {spec.suffix for spec in specs if spec.kind == 'resources'}
    return {spec.suffix for spec in specs if spec.suffix} - given


def _group_alone(flavor: Flavor, spec: xs.ExtraSpec, trait: str) -> Finding:
    key = f'{spec.kind}{spec.suffix}:{spec.name}'
    return Finding(
        'group-without-resources',
        Severity.ERROR,
        f'flavor {flavor.name}',
        f'has {key}={spec.value}, which is request group {spec.suffix!r} '
        'without any resources',
        'Placement refuses the query, and servers get "No valid host was '
        'found."',
        _corrected(flavor, key, trait, spec.value),
    )


def _no_demand(
    flavor: Flavor, key: str, value: str, trait: str
) -> Iterator[Finding]:
    meant = value.strip().lower()
    is_key = next(xs.parse({key: value}), None) is not None
    if meant in _VALUES or is_key:
        yield Finding(
            'extra-spec-without-effect',
            Severity.WARNING,
            f'flavor {flavor.name}',
            f'has {key}={value}, but only {xs.TRAIT_PREFIX}<name> with '
            f'{" or ".join(_VALUES)} has an effect',
            'the flavor does not require the trait',
            _corrected(flavor, key, trait, meant),
        )


def _corrected(
    flavor: Flavor, key: str, trait: str, value: str
) -> repairs.Commands:
    """Return the commands that correct the spelling of an extra spec."""
    if value not in _VALUES or not tags.is_trait_name(trait):
        return repairs.unset_spec(flavor, key)
    right = xs.TRAIT_PREFIX + trait
    return repairs.replace_spec(flavor, key, right, value)


def image_properties(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find image properties that resemble required traits without effect."""
    for image in cloud.snapshot.images:
        for key, value in sorted(image.properties.items()):
            like = LIKE_PREFIX.match(key)
            right = key.startswith(xs.TRAIT_PREFIX) and value == xs.REQUIRED
            if not like or right:
                continue
            meant = value.strip().lower() == xs.REQUIRED
            if meant or key.startswith(xs.TRAIT_PREFIX):
                yield Finding(
                    'image-property-without-effect',
                    Severity.INFO,
                    f'image {image.name} ({image.id})',
                    f'has {key}={value}, but only {xs.TRAIT_PREFIX}<name>='
                    f'{xs.REQUIRED} has an effect',
                    'the image does not require the trait',
                    repairs.unset_property(image, key),
                )
