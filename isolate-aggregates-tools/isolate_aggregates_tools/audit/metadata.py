# SPDX-License-Identifier: Apache-2.0
"""Finds metadata that Nova cannot compare with what flavors require.

The checks apply only if the request filter ``aggregate_instance_extra_specs``
or Nova's host filter is in use.
"""

from collections.abc import Iterator

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.aggregate_instance_extra_specs import find
from isolate_aggregates.filters.constraints import Conclusion
from isolate_aggregates.filters.required_metadata import (
    RequiredMetadata,
    required_metadata,
)
from isolate_aggregates.request import Flavor
from isolate_aggregates.text import listed
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair


def not_comparable(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find extra specs and metadata on which Nova's host filter fails."""
    flavors_by_key: dict[
        tuple[str, str], list[tuple[Flavor, RequiredMetadata]]
    ] = {}
    aggregates: dict[tuple[str, str], tuple[Aggregate, str]] = {}
    for flavor in cloud.snapshot.flavors:
        requirements = required_metadata(flavor.extra_specs)
        conclusions = cloud.causes.metadata_conclusions(
            cloud.requests.new(flavor)
        )
        for requirement in requirements if conclusions else ():
            if requirement.problem:
                yield _bad_extra_spec(flavor, requirement, conclusions[0])
                continue
            for aggregate, value in find(requirement, cloud.index).invalid:
                key = aggregate.uuid, requirement.key
                aggregates[key] = aggregate, value
                flavors_by_key.setdefault(key, []).append(
                    (flavor, requirement)
                )
    for key, (aggregate, value) in aggregates.items():
        flavors = listed(
            (f'{flavor.name} ({one})' for flavor, one in flavors_by_key[key]),
            20,
        )
        [first, *others] = flavors_by_key[key]
        yield Finding(
            'metadata-not-comparable',
            Severity.ERROR,
            f'aggregate {aggregate.name}',
            f'has {key[1]}={value}, which is not a number, but is compared '
            f'with numbers for flavor {flavors}',
            'requests for such a flavor are refused, or fail in Nova',
            (
                Repair(commands.unset(aggregate, key[1])),
                *([] if others else [_without(*first)]),
            ),
            about=About.of(
                aggregates=[aggregate.name],
                flavors=(f.name for f, _ in flavors_by_key[key]),
            ),
        )


def _without(flavor: Flavor, requirement: RequiredMetadata) -> Repair:
    return Repair(commands.unset(flavor, requirement.extra_spec))


def _bad_extra_spec(
    flavor: Flavor, requirement: RequiredMetadata, conclusion: Conclusion
) -> Finding:
    return Finding(
        'extra-spec-not-comparable',
        Severity.ERROR,
        f'flavor {flavor.name}',
        f'has {requirement.extra_spec}={requirement.value}, and '
        f'{requirement.problem}',
        f'{conclusion.filter_name} excludes all hosts for its servers',
        (Repair(commands.unset(flavor, requirement.extra_spec)),),
        about=About.of(flavors=[flavor.name]),
    )
