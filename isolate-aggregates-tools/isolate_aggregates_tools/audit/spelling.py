# SPDX-License-Identifier: Apache-2.0
"""Finds what is misspelled in flavors, images and aggregates."""

from collections.abc import Iterator
import itertools

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor
from isolate_aggregates.text import quoted
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.diagnosis.spelling import (
    aggregates,
    flavors,
    images,
)


def misspelled(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find what has not the effect that is meant, for its spelling."""
    names, snapshot = cloud.names, cloud.snapshot
    for each in itertools.chain(
        *(flavors.misspelled(names, flavor) for flavor in snapshot.flavors),
        *map(images.misspelled, snapshot.images),
        *(aggregates.misspelled(names, a) for a in snapshot.aggregates),
    ):
        thing = each.thing
        if isinstance(thing, Aggregate):
            subject = f'aggregate {thing.name}'
            about = About.of(hosts=thing.hosts, aggregates=[thing.name])
        elif isinstance(thing, Flavor):
            subject = f'flavor {thing.name}'
            about = About.of(flavors=[thing.name])
        else:
            subject = f'image {quoted(thing.name)} ({thing.id})'
            about = About.of(images=[thing.name])
        yield Finding(
            each.kind,
            Severity[each.severity.upper()],
            subject,
            each.problem,
            each.consequence,
            each.repairs,
            about=about,
        )
