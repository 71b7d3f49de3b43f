# SPDX-License-Identifier: Apache-2.0
"""Finds flavors that require metadata of aggregates and get no host.

The checks apply only if the request filter ``aggregate_instance_extra_specs``
or Nova's host filter is in use.
"""

from collections.abc import Iterator

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.filters.aggregate_instance_extra_specs import find
from isolate_aggregates.filters.destination import Conclusion
from isolate_aggregates.filters.required_metadata import (
    HOST_FILTER,
    RequiredMetadata,
    required_metadata,
)
from isolate_aggregates.request import Flavor
from isolate_aggregates.text import listed
from isolate_aggregates.tools.advice import Repair, commands
from isolate_aggregates.tools.answers.deciding import decided
from isolate_aggregates.tools.audit.cloud import AuditedCloud
from isolate_aggregates.tools.audit.demands import traits_if_valid
from isolate_aggregates.tools.audit.finding import About, Finding, Severity
from isolate_aggregates.tools.request import constraints


def why(cloud: AuditedCloud, flavor: Flavor) -> tuple[str, tuple[Repair, ...]]:
    """Return why metadata leaves a flavor without hosts, and the repairs.

    Both are empty if it is not the reason.
    """
    requirements = required_metadata(flavor.extra_specs)
    conclusions = _conclusions(cloud, flavor) if requirements else []
    if not conclusions or _is_reported_elsewhere(cloud, requirements):
        return '', ()
    conditions = _in_words(requirements)
    hosts = {
        host for host in cloud.nodes if _may_use(cloud, host, conclusions)
    }
    if not hosts:
        # Suggest a repair only if it is unambiguous.
        single = requirements[0] if len(requirements) == 1 else None
        return (
            f'requires hosts in aggregates with {conditions}, but there are '
            f'none, so {conclusions[0].filter_name} excludes all hosts',
            tuple(_ways(flavor, single)) if single else (),
        )
    own = traits_if_valid(cloud, flavor)
    missing_traits = [_locking(cloud, host) - own for host in hosts]
    if not all(missing_traits):
        return '', ()
    fewest = min(
        map(sorted, missing_traits), key=lambda some: (len(some), some)
    )
    return (
        f'requires hosts in aggregates with {conditions}, and all of these '
        f'are locked; it lacks {" and ".join(fewest)}',
        (Repair(commands.grant(flavor, fewest)),),
    )


def _ways(flavor: Flavor, requirement: RequiredMetadata) -> Iterator[Repair]:
    """Yield how to do without metadata, and how to give it to hosts."""
    yield Repair(commands.unset_spec(flavor, requirement.extra_spec))
    if requirement.is_plain:
        pair = commands.quoted(f'{requirement.key}={requirement.value}')
        yield Repair(
            text=f'openstack aggregate set --property {pair} AGGREGATE, for '
            'an aggregate of the hosts that have it; this lets flavor '
            f'{flavor.name} use them'
        )


def _locking(cloud: AuditedCloud, host: str) -> frozenset[str]:
    """Return the traits that a server must require to use a host."""
    return frozenset().union(
        *map(tags.required_traits, cloud.index.by_host.get(host, ()))
    )


def _in_words(requirements: tuple[RequiredMetadata, ...]) -> str:
    return ' and '.join(map(str, requirements))


def _conclusions(cloud: AuditedCloud, flavor: Flavor) -> list[Conclusion]:
    """Return the conclusions from the metadata that a flavor requires."""
    try:
        destination = decided(
            cloud.requests.new(flavor), cloud.index, cloud.pipeline
        ).destination
    except exception.InvalidRequest:
        # Another check reports it.
        return []
    return [
        conclusion
        for conclusion in destination.conclusions
        if HOST_FILTER in (conclusion.host_filter, conclusion.filter_name)
    ]


def _may_use(
    cloud: AuditedCloud, host: str, conclusions: list[Conclusion]
) -> bool:
    aggregates = cloud.index.aggregates_of.get(host, frozenset())
    return not any(
        alone.refusals
        or constraints.dropped(alone, host)
        or any(
            choice.isdisjoint(aggregates)
            for choice in alone.required_aggregates
        )
        for alone in (one.alone for one in conclusions)
    )


def _is_reported_elsewhere(
    cloud: AuditedCloud, requirements: tuple[RequiredMetadata, ...]
) -> bool:
    return any(
        one.problem or find(one, cloud.index).invalid for one in requirements
    )


def not_comparable(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find extra specs and metadata on which Nova's host filter fails."""
    flavors_by_key: dict[
        tuple[str, str], list[tuple[Flavor, RequiredMetadata]]
    ] = {}
    aggregates: dict[tuple[str, str], tuple[Aggregate, str]] = {}
    for flavor in cloud.snapshot.flavors:
        requirements = required_metadata(flavor.extra_specs)
        conclusions = _conclusions(cloud, flavor) if requirements else []
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
                Repair(commands.unset_tags(aggregate, [key[1]])),
                *([] if others else [_without(*first)]),
            ),
            about=About.of(
                aggregates=[aggregate.name],
                flavors=(f.name for f, _ in flavors_by_key[key]),
            ),
        )


def _without(flavor: Flavor, requirement: RequiredMetadata) -> Repair:
    return Repair(commands.unset_spec(flavor, requirement.extra_spec))


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
        (Repair(commands.unset_spec(flavor, requirement.extra_spec)),),
        about=About.of(flavors=[flavor.name]),
    )
