# SPDX-License-Identifier: Apache-2.0
"""Finds multipliers of weights that do not sort hosts."""

from collections.abc import Iterator
import math

from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair

# Nova's weighers read such a key instead of their option, and so do other
# weighers that call ``nova.scheduler.utils.get_weight_multiplier``.
_SUFFIX = '_weight_multiplier'


def multipliers(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find multipliers in metadata of aggregates that no weight can have."""
    for aggregate in cloud.snapshot.aggregates:
        for key, value in sorted(aggregate.metadata.items()):
            if not key.endswith(_SUFFIX) or key in cloud.required_metadata:
                continue
            wrong = _wrong(str(value))
            if wrong is None:
                continue
            problem, consequence = wrong
            yield Finding(
                'weight-multiplier-invalid',
                Severity.WARNING,
                f'aggregate {aggregate.name}',
                f'has {key}={value}, which is {problem}',
                consequence,
                (Repair(commands.unset(aggregate, key)),),
                about=About.of(
                    hosts=aggregate.hosts, aggregates=[aggregate.name]
                ),
            )


def _wrong(text: str) -> tuple[str, str] | None:
    """Return what is wrong with a multiplier, and what Nova does with it."""
    try:
        number = float(text)
    except ValueError:
        return (
            'not a number',
            'Nova uses the option of the configuration for its hosts, also if '
            'another of their aggregates has a multiplier',
        )
    if math.isfinite(number):
        return None
    return (
        'not a finite number',
        'Nova accepts it, and no longer sorts the hosts of requests that may '
        'use its hosts by weight',
    )
