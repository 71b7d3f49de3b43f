# SPDX-License-Identifier: Apache-2.0
"""Finds flavors and images whose servers no host could ever take."""

from collections.abc import Iterator

from isolate_aggregates_tools import shell
from isolate_aggregates_tools.answers.deciding import silent
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.demands import NOWHERE, traits_if_valid
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.diagnosis.unplaceable import Nowhere


def flavors(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors whose servers no host could ever take."""
    if not cloud.nodes:
        return
    nowhere = Nowhere(cloud.causes, cloud.requests)
    with silent():
        for flavor in cloud.snapshot.flavors:
            why = nowhere.why(flavor)
            if why is not None:
                yield Finding(
                    'no-host',
                    Severity.WARNING,
                    f'flavor {flavor.name}',
                    why.problem,
                    NOWHERE,
                    why.repairs,
                    about=About.of(flavors=[flavor.name]),
                )


def images(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find images that require traits which no host has."""
    if not cloud.nodes:
        return
    existing = cloud.snapshot.provider_traits
    nowhere = Nowhere(cloud.causes, cloud.requests)
    with silent():
        for image in cloud.snapshot.images:
            traits = traits_if_valid(cloud, image=image)
            reasons = [
                cloud.causes.without_trait(trait, None, image)
                for trait in sorted(traits - existing)
            ]
            if traits and not reasons:
                reasons.extend(nowhere.of_image(image, traits))
            for why in reasons:
                yield Finding(
                    'no-host',
                    Severity.WARNING,
                    f'image {shell.quoted(image.name)} ({image.id})',
                    why.problem,
                    NOWHERE,
                    why.repairs,
                    about=About.of(images=[image.name]),
                )
