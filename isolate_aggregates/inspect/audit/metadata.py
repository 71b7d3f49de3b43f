# SPDX-License-Identifier: Apache-2.0
"""Finds flavors that require metadata of aggregates and get no host.

The checks apply only if the request filter ``aggregate_instance_extra_specs``
or Nova's host filter is in use.
"""

from collections.abc import Iterator

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.aggregate_instance_extra_specs import find
from isolate_aggregates.filters.destination import Conclusion
from isolate_aggregates.filters.wanted import (
    HOST_FILTER,
    Wanted,
    wanted_metadata,
)
from isolate_aggregates.inspect.audit import repairs
from isolate_aggregates.inspect.audit.cloud import AuditedCloud
from isolate_aggregates.inspect.audit.demands import (
    NOWHERE,
    traits_if_valid,
)
from isolate_aggregates.inspect.audit.finding import Finding, Severity
from isolate_aggregates.request import Flavor, Request
from isolate_aggregates.text import listed


def nowhere(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors that require metadata that no host's aggregates have."""
    for flavor in cloud.snapshot.flavors if cloud.nodes else ():
        wanted = wanted_metadata(flavor.extra_specs)
        looking = _looking(cloud, flavor) if wanted else []
        if not looking or _is_told_by_itself(cloud, wanted):
            continue
        if any(_may_use(cloud, host, looking) for host in cloud.nodes):
            continue
        told = _told(wanted)
        # Suggest a repair only if it is unambiguous.
        single = wanted[0] if len(wanted) == 1 else None
        yield Finding(
            'metadata-nowhere',
            Severity.WARNING,
            f'flavor {flavor.name}',
            f'requires hosts in aggregates with {told}, but there are none, '
            f'so {looking[0].filter_name} excludes all hosts',
            NOWHERE,
            repairs.unset_spec(flavor, single.extra_spec) if single else (),
            instead='openstack aggregate set --property '
            f'{single.key}={single.value} <aggregate>, if some hosts have '
            'it; first put those into an aggregate of their own'
            if single and single.is_plain
            else '',
        )


def behind_locks(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors that require metadata that only locked hosts have.

    Only trait locks are considered, as hints and projects open the others.
    """
    if not any(one in cloud.running for one in cloud.isolating):
        return
    images = {frozenset[str]()}
    if cloud.images_open:
        images |= {
            traits_if_valid(image=image) for image in cloud.snapshot.images
        }
    for flavor in cloud.snapshot.flavors:
        wanted = wanted_metadata(flavor.extra_specs)
        looking = _looking(cloud, flavor) if wanted else []
        if not looking or _is_told_by_itself(cloud, wanted):
            continue
        own = traits_if_valid(flavor)
        hosts = {
            host
            for aggregate in find(wanted[0], cloud.index).aggregates
            for host in aggregate.hosts & cloud.nodes.keys()
            if _may_use(cloud, host, looking)
        }
        missing = {_locking(cloud, host) - own for host in hosts}
        # nowhere() reports flavors without hosts.
        if not missing or any(
            traits <= image for traits in missing for image in images
        ):
            continue
        fewest = min(map(sorted, missing), key=lambda some: (len(some), some))
        yield Finding(
            'metadata-locked',
            Severity.WARNING,
            f'flavor {flavor.name}',
            f'requires hosts in aggregates with {_told(wanted)}, and all of '
            f'these are locked; it lacks {" and ".join(fewest)}',
            NOWHERE,
            repairs.grant(flavor, fewest),
        )


def _locking(cloud: AuditedCloud, host: str) -> frozenset[str]:
    """Return the traits that a server must require to use a host."""
    return frozenset().union(
        *map(tags.required_traits, cloud.index.by_host.get(host, ()))
    )


def _told(wanted: tuple[Wanted, ...]) -> str:
    return ' and '.join(map(str, wanted))


def _looking(cloud: AuditedCloud, flavor: Flavor) -> list[Conclusion]:
    """Return the conclusions from the metadata that a flavor requires."""
    try:
        request = Request(flavor)
        found = decide(request, cloud.index, cloud.pipeline).destination
    except exception.InvalidRequest:
        # Another check reports it.
        return []
    return [
        conclusion
        for conclusion in found.conclusions
        if HOST_FILTER in (conclusion.host_filter, conclusion.filter_name)
    ]


def _may_use(
    cloud: AuditedCloud, host: str, looking: list[Conclusion]
) -> bool:
    held = cloud.index.aggregates_of.get(host, frozenset())
    return not any(
        alone.refusals
        or alone.dropped(host)
        or any(choice.isdisjoint(held) for choice in alone.required_aggregates)
        for alone in (one.alone for one in looking)
    )


def _is_told_by_itself(
    cloud: AuditedCloud, wanted: tuple[Wanted, ...]
) -> bool:
    return any(one.problem or find(one, cloud.index).bad for one in wanted)


def not_comparable(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find extra specs and metadata on which Nova's host filter fails."""
    wanting: dict[tuple[str, str], list[tuple[Flavor, Wanted]]] = {}
    aggregates: dict[tuple[str, str], tuple[Aggregate, str]] = {}
    for flavor in cloud.snapshot.flavors:
        wanted = wanted_metadata(flavor.extra_specs)
        looking = _looking(cloud, flavor) if wanted else []
        for one in wanted if looking else ():
            if one.problem:
                yield _bad_extra_spec(flavor, one, looking[0])
                continue
            for aggregate, value in find(one, cloud.index).bad:
                key = aggregate.uuid, one.key
                aggregates[key] = aggregate, value
                wanting.setdefault(key, []).append((flavor, one))
    for key, (aggregate, value) in aggregates.items():
        flavors = listed(
            (f'{flavor.name} ({one})' for flavor, one in wanting[key]), 20
        )
        [first, *others] = wanting[key]
        yield Finding(
            'metadata-not-comparable',
            Severity.ERROR,
            f'aggregate {aggregate.name}',
            f'has {key[1]}={value}, which is not a number, but is compared '
            f'with numbers for flavor {flavors}',
            'requests for such a flavor are refused, or fail in Nova',
            repairs.unset_tags(aggregate, [key[1]]),
            instead='' if others else _without(*first),
        )


def _without(flavor: Flavor, wanted: Wanted) -> str:
    unset = repairs.shown(repairs.unset_spec(flavor, wanted.extra_spec))
    return f'{unset}, if the metadata means something else'


def _bad_extra_spec(
    flavor: Flavor, wanted: Wanted, looking: Conclusion
) -> Finding:
    return Finding(
        'extra-spec-not-comparable',
        Severity.ERROR,
        f'flavor {flavor.name}',
        f'has {wanted.extra_spec}={wanted.value}, and {wanted.problem}',
        f'{looking.filter_name} excludes all hosts for its servers',
        repairs.unset_spec(flavor, wanted.extra_spec),
    )
