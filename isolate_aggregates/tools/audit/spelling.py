# SPDX-License-Identifier: Apache-2.0
"""Finds extra specs and image properties that are misspelled."""

from collections.abc import Iterator

from isolate_aggregates.aggregates import tags
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import quoted
from isolate_aggregates.tools.advice import Repair, commands
from isolate_aggregates.tools.advice.spelling import (
    LIKE_PREFIX,
    VALUES,
    corrections,
    groups_without_resources,
    meant_value,
)
from isolate_aggregates.tools.audit.cloud import AuditedCloud, is_tenants
from isolate_aggregates.tools.audit.finding import About, Finding, Severity


def extra_specs(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find extra specs that resemble required traits but have no effect."""
    for flavor in cloud.snapshot.flavors:
        without = groups_without_resources(flavor)
        for key, value in sorted(flavor.extra_specs.items()):
            if not LIKE_PREFIX.match(key):
                continue
            spec = next(xs.parse({key: value}), None)
            if spec and spec.suffix in without and value in VALUES:
                yield _group_alone(cloud, flavor, spec)
            elif not spec or value not in VALUES:
                yield from _no_demand(cloud, flavor, key, value)


def _group_alone(
    cloud: AuditedCloud, flavor: Flavor, spec: xs.ExtraSpec
) -> Finding:
    key = f'{spec.kind}{spec.suffix}:{spec.name}'
    return Finding(
        'group-without-resources',
        Severity.ERROR,
        f'flavor {flavor.name}',
        f'has {key}={spec.value}, which is request group {spec.suffix!r} '
        'without any resources',
        'Placement refuses the query, and servers get "No valid host was '
        'found."',
        tuple(corrections(flavor, key, spec.value, cloud.required_by)),
        about=About.of(flavors=[flavor.name]),
    )


def _no_demand(
    cloud: AuditedCloud, flavor: Flavor, key: str, value: str
) -> Iterator[Finding]:
    plain = value.strip().lower()
    is_key = next(xs.parse({key: value}), None) is not None
    if plain in VALUES or is_key:
        yield Finding(
            'extra-spec-without-effect',
            Severity.WARNING,
            f'flavor {flavor.name}',
            f'has {key}={value}, but only {xs.TRAIT_PREFIX}<name> with '
            f'{" or ".join(VALUES)} has an effect',
            'the flavor does not require the trait',
            tuple(corrections(flavor, key, value, cloud.required_by)),
            about=About.of(flavors=[flavor.name]),
        )


def image_properties(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find image properties that resemble required traits without effect."""
    for image in cloud.snapshot.images:
        for key, value in sorted(image.properties.items()):
            like = LIKE_PREFIX.match(key)
            right = key.startswith(xs.TRAIT_PREFIX) and value == xs.REQUIRED
            if not like or right:
                continue
            is_required = value.strip().lower() == xs.REQUIRED
            if is_required or key.startswith(xs.TRAIT_PREFIX):
                yield Finding(
                    'image-property-without-effect',
                    Severity.INFO,
                    f'image {quoted(image.name)} ({image.id})',
                    f'has {quoted(key)}={quoted(value)}, but only '
                    f'{xs.TRAIT_PREFIX}<name>='
                    f'{xs.REQUIRED} has an effect',
                    'the image does not require the trait',
                    tuple(_image_corrections(image, key, value)),
                    about=About.of(images=[image.name]),
                )


def _image_corrections(image: Image, key: str, value: str) -> Iterator[Repair]:
    """Yield how to correct a property of an image, and how to remove it."""
    trait = key.removeprefix(xs.TRAIT_PREFIX)
    is_key = key.startswith(xs.TRAIT_PREFIX) and tags.is_trait_name(trait)
    if is_key and not is_tenants(image) and meant_value(value) == xs.REQUIRED:
        yield Repair(commands.set_property(image, key, xs.REQUIRED))
    yield Repair(commands.unset_property(image, key))
