# SPDX-License-Identifier: Apache-2.0
"""Finds flavors and images whose requirements no host can meet."""

from collections.abc import Iterable, Iterator

from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import quoted
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.audit import leftovers
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.mirrored import nova_api
from isolate_aggregates_tools.mirrored.nova_api import Source
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.request import Request

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
    except errors.InvalidRequest as exc:
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


def reservation_flavors(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors of reservations that have ended."""
    if not cloud.nodes:
        return
    known = leftovers.living(cloud) | {
        rc for p in cloud.snapshot.providers for rc in p.inventories
    }
    for flavor in cloud.snapshot.flavors:
        for spec in xs.parse(flavor.extra_specs):
            if (
                spec.amount
                and spec.name.startswith(xs.RESERVATION_CLASS)
                and spec.name not in known
            ):
                yield Finding(
                    'reservation-flavor-left',
                    Severity.INFO,
                    f'flavor {flavor.name}',
                    f'requests {spec.name}, which no host has',
                    NOWHERE,
                    (Repair(commands.delete_flavor(flavor)),),
                    about=About.of(flavors=[flavor.name]),
                )


def traits_if_valid(
    cloud: AuditedCloud,
    flavor: Flavor | None = None,
    image: Image | None = None,
) -> frozenset[str]:
    """Return the traits a flavor or image requires; empty if invalid."""
    key = id(flavor), id(image)
    if key not in cloud.known_traits:
        try:
            traits = _traits(cloud, flavor, image)
        except errors.InvalidRequest:
            # contradictions() reports it.
            traits = frozenset()
        # They are kept, so that no others get their identity.
        cloud.known_traits[key] = flavor, image, traits
    *_, traits = cloud.known_traits[key]
    return traits


def _traits(
    cloud: AuditedCloud,
    flavor: Flavor | None = None,
    image: Image | None = None,
) -> frozenset[str]:
    return cloud.requests.new(flavor or Flavor(''), image).required_traits
