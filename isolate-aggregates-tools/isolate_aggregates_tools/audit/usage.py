# SPDX-License-Identifier: Apache-2.0
"""Finds resources of which more is used than there is."""

from collections.abc import Iterator

from isolate_aggregates.request.extra_specs import RESERVATION_CLASS
from isolate_aggregates.text import listed
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity


def oversold(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find resource classes that are oversold.

    Without slots: those are closed by other means, and have a finding of their
    own.
    """
    names: dict[str, list[str]] = {}
    for provider in cloud.snapshot.providers:
        for name in provider.inventories:
            if provider.free(name) < 0 and not name.startswith(
                RESERVATION_CLASS
            ):
                names.setdefault(name, []).append(provider.name)
    for name, providers in sorted(names.items()):
        yield Finding(
            'resource-oversold',
            Severity.INFO,
            f'resource class {name}',
            f'more of it is used than there is on {listed(providers)}',
            'servers there may get less than their flavor says; no new '
            'server that needs it gets there',
            about=About.of(
                hosts=[
                    provider.host
                    for provider in cloud.snapshot.providers
                    if provider.host and provider.name in providers
                ]
            ),
        )
