# SPDX-License-Identifier: Apache-2.0
"""Finds flavors and images whose requirements no host can meet."""

from collections.abc import Iterable, Iterator

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import quoted
from isolate_aggregates.tools.advice import Repair, commands
from isolate_aggregates.tools.advice.spelling import similar_traits
from isolate_aggregates.tools.audit.cloud import AuditedCloud
from isolate_aggregates.tools.audit.finding import About, Finding, Severity
from isolate_aggregates.tools.mirrored import nova_api
from isolate_aggregates.tools.mirrored.nova_api import Source
from isolate_aggregates.tools.request import Request

NOWHERE = 'servers get "No valid host was found."'


REFUSED = 'nova-api refuses such servers with status 400'


def contradictions(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors and images that Nova refuses."""
    asked = cloud.requests.new
    images = cloud.snapshot.images
    flavors = []
    for flavor in cloud.snapshot.flavors:
        subject = f'flavor {flavor.name}'
        if problem := _problem(cloud, Source.FLAVOR, flavor=flavor):
            yield Finding(
                'flavor-invalid',
                Severity.WARNING,
                subject,
                problem,
                REFUSED,
                about=About.of(flavors=[flavor.name]),
            )
            continue
        flavors.append(flavor)
        if problem := _unmatched(
            asked(flavor), (asked(flavor, i) for i in images)
        ):
            yield Finding(
                'flavor-without-image',
                Severity.WARNING,
                subject,
                f'Nova accepts it with no image of the cloud: {problem}',
                REFUSED,
                about=About.of(flavors=[flavor.name]),
            )
    largest = max(
        flavors,
        key=lambda flavor: (flavor.ram, flavor.disk, flavor.vcpus),
        default=Flavor(''),
    )
    for image in images:
        subject = f'image {quoted(image.name)} ({image.id})'
        if problem := _problem(cloud, Source.IMAGE, image=image):
            yield Finding(
                'image-invalid',
                Severity.INFO,
                subject,
                problem,
                REFUSED,
                about=About.of(images=[image.name]),
            )
        elif problem := _unmatched(
            asked(largest, image), (asked(f, image) for f in flavors)
        ):
            yield Finding(
                'image-without-flavor',
                Severity.INFO,
                subject,
                f'Nova accepts it with no flavor of the cloud: {problem}',
                REFUSED,
                about=About.of(images=[image.name]),
            )


def _problem(
    cloud: AuditedCloud,
    source: Source,
    flavor: Flavor | None = None,
    image: Image | None = None,
) -> str:
    """Return why Nova refuses a flavor or an image; empty if it does not."""
    try:
        _traits(cloud, flavor, image)
    except exception.InvalidRequest as exc:
        return str(exc).rstrip('.')
    request = cloud.requests.new(flavor or Flavor(''), image)
    return '; '.join(
        refusal.text
        for refusal in nova_api.refusals(request)
        if refusal.source is source
    )


def _unmatched(first: Request, others: Iterable[Request]) -> str:
    """Return why Nova refuses a request, if it refuses all others too."""
    texts = [refusal.text for refusal in nova_api.refusals(first)]
    if not texts or any(not any(nova_api.refusals(each)) for each in others):
        return ''
    return '; '.join(texts)


def traits_nowhere(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors and images with traits for which there is no host.

    They require a trait that no provider has, or forbid one that does not
    exist: then Placement rejects the query.
    """
    if not cloud.nodes:
        return
    traits = (
        cloud.snapshot.all_traits if cloud.traits is None else cloud.traits
    )
    for flavor in cloud.snapshot.flavors:
        for spec in xs.parse(flavor.extra_specs):
            forbids = spec.kind == 'trait' and spec.value == xs.FORBIDDEN
            if forbids and spec.name not in traits:
                yield _not_known(flavor, spec)
        for trait in _unknown(cloud, traits_if_valid(cloud, flavor)):
            subject = f'flavor {flavor.name}'
            key = _requiring(trait, flavor)
            # Otherwise the trait is implied by another setting.
            ways = tuple(_ways(cloud, flavor, key, trait)) if key else ()
            about = About.of(flavors=[flavor.name])
            yield _nowhere(cloud, subject, trait, ways, about)
    for image in cloud.snapshot.images:
        for trait in _unknown(cloud, traits_if_valid(cloud, image=image)):
            subject = f'image {quoted(image.name)} ({image.id})'
            key = xs.TRAIT_PREFIX + trait
            # The trait may be implied by another property.
            own = key in image.properties
            unset = Repair(commands.unset_property(image, key))
            about = About.of(images=[image.name])
            ways = (unset,) if own else ()
            yield _nowhere(cloud, subject, trait, ways, about)


def _unknown(cloud: AuditedCloud, traits: Iterable[str]) -> list[str]:
    return sorted(set(traits) - cloud.snapshot.provider_traits)


def _nowhere(
    cloud: AuditedCloud,
    subject: str,
    trait: str,
    ways: tuple[Repair, ...],
    about: About,
) -> Finding:
    is_synced = any(trait in (t.traits or ()) for t in cloud.plan.targets)
    command = commands.shown(
        [(commands.PROGRAM, 'lock', 'AGGREGATE', '--trait', trait)]
    )
    lock = Repair(
        text=f'{command}, for an aggregate of the hosts that have it; this '
        'lets only servers that require the trait use them'
    )
    return Finding(
        'trait-nowhere',
        Severity.WARNING,
        subject,
        f'requires trait {trait}, which no host has',
        NOWHERE,
        (Repair(commands.SYNC, safe=True),) if is_synced else (*ways, lock),
        about,
    )


def _ways(
    cloud: AuditedCloud, flavor: Flavor, key: str, trait: str
) -> Iterator[Repair]:
    """Yield how to correct the trait of a flavor, and how to remove it."""
    for right in similar_traits(trait, cloud.required_by):
        put = key.removesuffix(trait) + right
        yield Repair(
            commands.replace_spec(flavor, put, xs.REQUIRED, instead_of=key)
        )
    yield Repair(commands.unset_spec(flavor, key))


def _not_known(flavor: Flavor, spec: xs.ExtraSpec) -> Finding:
    return Finding(
        'trait-nowhere',
        Severity.WARNING,
        f'flavor {flavor.name}',
        f'forbids trait {spec.name}, which does not exist in Placement, so '
        'that Placement rejects the query',
        NOWHERE,
        (
            *(
                [Repair(commands.create_trait(spec.name))]
                if os_traits.is_custom(spec.name)
                else []
            ),
            Repair(
                commands.unset_spec(
                    flavor, f'{spec.kind}{spec.suffix}:{spec.name}'
                )
            ),
        ),
        about=About.of(flavors=[flavor.name]),
    )


def _requiring(trait: str, flavor: Flavor) -> str | None:
    """Return the extra spec that requires a trait."""
    for key, value in flavor.extra_specs.items():
        for spec in xs.parse({key: value}):
            required = ('trait', trait, xs.REQUIRED)
            if (spec.kind, spec.name, spec.value) == required:
                return key
    return None


def classes_nowhere(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors that request a resource class no provider has."""
    if not cloud.nodes:
        return
    resource_classes = {
        rc for p in cloud.snapshot.providers for rc in p.inventories
    }
    for flavor in cloud.snapshot.flavors:
        for key, value in sorted(flavor.extra_specs.items()):
            for spec in xs.parse({key: value}):
                is_requested = spec.kind == 'resources' and value.strip('0')
                if not is_requested or spec.name in resource_classes:
                    continue
                has_ended = spec.name.startswith(xs.RESERVATION_CLASS)
                yield Finding(
                    'reservation-flavor-left'
                    if has_ended
                    else 'resource-class-nowhere',
                    Severity.INFO if has_ended else Severity.WARNING,
                    f'flavor {flavor.name}',
                    f'requests {spec.name}, which no host has',
                    NOWHERE,
                    (
                        Repair(
                            commands.delete_flavor(flavor)
                            if has_ended
                            else commands.unset_spec(flavor, key)
                        ),
                    ),
                    about=About.of(flavors=[flavor.name]),
                )


def traits_if_valid(
    cloud: AuditedCloud,
    flavor: Flavor | None = None,
    image: Image | None = None,
) -> frozenset[str]:
    """Return the traits a flavor or image requires; empty if invalid."""
    try:
        return _traits(cloud, flavor, image)
    except exception.InvalidRequest:
        # contradictions() reports it.
        return frozenset()


def _traits(
    cloud: AuditedCloud,
    flavor: Flavor | None = None,
    image: Image | None = None,
) -> frozenset[str]:
    return cloud.requests.new(flavor or Flavor(''), image).required_traits
