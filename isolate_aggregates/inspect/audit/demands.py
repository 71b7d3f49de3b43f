# SPDX-License-Identifier: Apache-2.0
"""Finds flavors and images whose requirements no host can meet."""

from collections.abc import Iterable, Iterator

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.inspect.audit import repairs
from isolate_aggregates.inspect.audit.cloud import AuditedCloud
from isolate_aggregates.inspect.audit.finding import Finding, Severity
from isolate_aggregates.request import Flavor, Image, Request
from isolate_aggregates.request import extra_specs as xs

NOWHERE = 'servers get "No valid host was found."'


def contradictions(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors and images with settings that Nova rejects."""
    for flavor in cloud.snapshot.flavors:
        try:
            _traits(flavor)
        except exception.InvalidRequest as exc:
            yield Finding(
                'flavor-invalid',
                Severity.WARNING,
                f'flavor {flavor.name}',
                str(exc).rstrip('.'),
                'servers of this flavor cannot be judged or booted',
            )
    for image in cloud.snapshot.images:
        try:
            _traits(image=image)
        except exception.InvalidRequest as exc:
            yield Finding(
                'image-invalid',
                Severity.INFO,
                f'image {image.name} ({image.id})',
                str(exc).rstrip('.'),
                'servers of this image cannot be judged or booted',
            )


def traits_nowhere(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors and images with traits for which there is no host.

    They require a trait that no provider has, or forbid one that does not
    exist: then Placement rejects the query.
    """
    if not cloud.nodes:
        return
    known = cloud.snapshot.all_traits if cloud.traits is None else cloud.traits
    for flavor in cloud.snapshot.flavors:
        for spec in xs.parse(flavor.extra_specs):
            forbids = spec.kind == 'trait' and spec.value == xs.FORBIDDEN
            if forbids and spec.name not in known:
                yield _not_known(flavor, spec)
        for trait in _unknown(cloud, traits_if_valid(flavor)):
            subject = f'flavor {flavor.name}'
            yield _nowhere(cloud, subject, trait, _unset(trait, flavor))
    for image in cloud.snapshot.images:
        for trait in _unknown(cloud, traits_if_valid(image=image)):
            subject = f'image {image.name} ({image.id})'
            key = xs.TRAIT_PREFIX + trait
            # The trait may be implied by another property.
            own = key in image.properties
            unset = repairs.unset_property(image, key) if own else ()
            yield _nowhere(cloud, subject, trait, unset)


def _unknown(cloud: AuditedCloud, traits: Iterable[str]) -> list[str]:
    return sorted(set(traits) - cloud.all_traits)


def _nowhere(
    cloud: AuditedCloud, subject: str, trait: str, unset: repairs.Commands
) -> Finding:
    synced = any(trait in (t.traits or ()) for t in cloud.plan.targets)
    return Finding(
        'trait-nowhere',
        Severity.WARNING,
        subject,
        f'requires trait {trait}, which no host has',
        NOWHERE,
        repairs.SYNC if synced else unset,
        safe=synced,
        instead=''
        if synced
        else f'isolate-aggregates lock <aggregate> --trait {trait}, if some '
        'hosts have it; first put those into an aggregate of their own',
    )


def _not_known(flavor: Flavor, spec: xs.ExtraSpec) -> Finding:
    return Finding(
        'trait-nowhere',
        Severity.WARNING,
        f'flavor {flavor.name}',
        f'forbids trait {spec.name}, which does not exist in Placement, so '
        'that Placement rejects the query',
        NOWHERE,
        repairs.unset_spec(flavor, f'{spec.kind}{spec.suffix}:{spec.name}'),
        instead='openstack --os-placement-api-version 1.6 trait create '
        f'{spec.name}, if hosts are to get it'
        if os_traits.is_custom(spec.name)
        else '',
    )


def _unset(trait: str, flavor: Flavor) -> repairs.Commands:
    for key, value in flavor.extra_specs.items():
        for spec in xs.parse({key: value}):
            required = ('trait', trait, xs.REQUIRED)
            if (spec.kind, spec.name, spec.value) == required:
                return repairs.unset_spec(flavor, key)
    # The trait is implied by another setting.
    return ()


def classes_nowhere(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors that request a resource class no provider has."""
    if not cloud.nodes:
        return
    known = {rc for p in cloud.snapshot.providers for rc in p.inventories}
    for flavor in cloud.snapshot.flavors:
        for key, value in sorted(flavor.extra_specs.items()):
            for spec in xs.parse({key: value}):
                wanted = spec.kind == 'resources' and value.strip('0')
                if not wanted or spec.name in known:
                    continue
                ended = spec.name.startswith(xs.RESERVATION_CLASS)
                yield Finding(
                    'reservation-flavor-left'
                    if ended
                    else 'resource-class-nowhere',
                    Severity.INFO if ended else Severity.WARNING,
                    f'flavor {flavor.name}',
                    f'requests {spec.name}, which no host has',
                    NOWHERE,
                    repairs.delete_flavor(flavor)
                    if ended
                    else repairs.unset_spec(flavor, key),
                )


def traits_if_valid(
    flavor: Flavor | None = None, image: Image | None = None
) -> frozenset[str]:
    """Return the traits a flavor or image requires; empty if invalid."""
    try:
        return _traits(flavor, image)
    except exception.InvalidRequest:
        # contradictions() reports it.
        return frozenset()


def _traits(
    flavor: Flavor | None = None, image: Image | None = None
) -> frozenset[str]:
    return Request(flavor or Flavor(''), image).required_traits
