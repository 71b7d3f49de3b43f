# SPDX-License-Identifier: Apache-2.0
"""Finds flavors and images that ask for what no host can give."""

from collections.abc import Iterable, Iterator

from isolate_aggregates import exception
from isolate_aggregates.inspect.audit import repairs
from isolate_aggregates.inspect.audit.facts import Facts
from isolate_aggregates.inspect.audit.finding import Finding, Severity
from isolate_aggregates.request import Flavor, Image, Request
from isolate_aggregates.request import extra_specs as xs

_RESERVATION = 'CUSTOM_RESERVATION_'
_NOWHERE = 'servers get "No valid host was found."'


def contradictions(facts: Facts) -> Iterator[Finding]:
    """Find flavors and images with settings that Nova refuses."""
    for flavor in facts.snapshot.flavors:
        try:
            _traits(flavor)
        except exception.InvalidRequest as exc:
            yield Finding(
                'flavor-invalid',
                Severity.WARNING,
                f'flavor {flavor.name}',
                str(exc).rstrip('.'),
                'servers of this flavor can not be judged, nor booted',
            )
    for image in facts.snapshot.images:
        try:
            _traits(image=image)
        except exception.InvalidRequest as exc:
            yield Finding(
                'image-invalid',
                Severity.INFO,
                f'image {image.name} ({image.id})',
                str(exc).rstrip('.'),
                'servers of this image can not be judged, nor booted',
            )


def traits_nowhere(facts: Facts) -> Iterator[Finding]:
    """Find flavors and images that require a trait no provider has."""
    if not facts.nodes:
        return
    for flavor in facts.snapshot.flavors:
        for trait in _unknown(facts, traits_of(flavor)):
            subject = f'flavor {flavor.name}'
            yield _nowhere(facts, subject, trait, _unset(trait, flavor))
    for image in facts.snapshot.images:
        for trait in _unknown(facts, traits_of(image=image)):
            subject = f'image {image.name} ({image.id})'
            key = xs.TRAIT_PREFIX + trait
            # Some other property may imply it.
            own = key in image.properties
            unset = repairs.unset_property(image, key) if own else None
            yield _nowhere(facts, subject, trait, unset)


def _unknown(facts: Facts, traits: Iterable[str]) -> list[str]:
    return sorted(set(traits) - facts.all_traits)


def _nowhere(
    facts: Facts, subject: str, trait: str, unset: str | None
) -> Finding:
    synced = any(trait in (t.traits or ()) for t in facts.plan.targets)
    return Finding(
        'trait-nowhere',
        Severity.WARNING,
        subject,
        f'requires trait {trait}, which no host has',
        _NOWHERE,
        repairs.SYNC if synced else unset,
        safe=synced,
    )


def _unset(trait: str, flavor: Flavor) -> str | None:
    for key, value in flavor.extra_specs.items():
        for spec in xs.parse({key: value}):
            if (spec.kind, spec.name) == ('trait', trait):
                return repairs.unset_spec(flavor, key)
    # Some other setting implies it.
    return None


def classes_nowhere(facts: Facts) -> Iterator[Finding]:
    """Find flavors that ask for a resource class no provider has."""
    if not facts.nodes:
        return
    known = {rc for p in facts.snapshot.providers for rc in p.inventories}
    for flavor in facts.snapshot.flavors:
        for key, value in sorted(flavor.extra_specs.items()):
            for spec in xs.parse({key: value}):
                wanted = spec.kind == 'resources' and value.strip('0')
                if not wanted or spec.name in known:
                    continue
                ended = spec.name.startswith(_RESERVATION)
                yield Finding(
                    'reservation-flavor-left'
                    if ended
                    else 'resource-class-nowhere',
                    Severity.INFO if ended else Severity.WARNING,
                    f'flavor {flavor.name}',
                    f'asks for {spec.name}, which no host has',
                    _NOWHERE,
                    repairs.delete_flavor(flavor)
                    if ended
                    else repairs.unset_spec(flavor, key),
                )


def traits_of(
    flavor: Flavor | None = None, image: Image | None = None
) -> frozenset[str]:
    """Return the traits a flavor or an image requires; none if it is invalid.

    :param flavor: The flavor, if any.
    :param image: The image, if any.
    """
    try:
        return _traits(flavor, image)
    except exception.InvalidRequest:
        # Told by itself.
        return frozenset()


def _traits(
    flavor: Flavor | None = None, image: Image | None = None
) -> frozenset[str]:
    return Request(flavor or Flavor(''), image).required_traits
