# SPDX-License-Identifier: Apache-2.0
"""Converts a request to resources and traits, like Nova.

It follows ``nova.scheduler.utils.ResourceRequest.from_request_spec``: extra
specs of a flavor take precedence over its size, and what Nova ignores with a
warning is ignored with a warning.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import json
import logging
import math
from typing import Any

import os_resource_classes as orc
import os_traits

from isolate_aggregates.request import Flavor, trait_requirements
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.placement import group as placement_group
from isolate_aggregates_tools.request import implied
from isolate_aggregates_tools.request.request import Request, ResourceGroup

LOG = logging.getLogger(__name__)

_MIB_PER_GIB = 1024

# The extra spec that requests PCI devices.
PCI_ALIAS = 'pci_passthrough:alias'

# With these hints Nova queries all candidates, because it then chooses by the
# servers on each host.
_UNLIMITED = frozenset({'group', 'same_host', 'different_host'})


def resource_request(
    spec: Request, limit: int | None = None
) -> placement_group.ResourceRequest:
    """Return the query for a request, before any request filter.

    :param limit: The maximum number of candidates; None for all. It is ignored
        with hints that refer to other servers, or a host with several nodes.
    """
    host = spec.requested_host
    if not _UNLIMITED.isdisjoint(spec.scheduler_hints) or (
        host and len(host.providers) > 1
    ):
        limit = None
    request = placement_group.ResourceRequest(limit=limit)
    _add_extra_specs(request, spec.flavor)
    of_flavor = _suffixes(request)
    implications = implied.translate(
        spec.flavor.extra_specs,
        spec.image_properties,
        spec.flavor.vcpus,
        spec.nova_release,
        pinning=not spec.pinned_as_vcpu,
    )
    flavor_group = request.group()
    flavor_group.required_traits |= trait_requirements.image_required_traits(
        spec.image_properties
    )
    flavor_group.required_traits |= implications.required_traits
    flavor_group.required_traits |= spec.derived_traits
    flavor_group.forbidden_traits |= implications.forbidden_traits
    flavor_group.resources.update(implications.resources)
    _add_groups(request, spec.resource_groups)
    request.same_subtree.extend(spec.same_subtree)
    _add_size(request, spec)
    _strip(request)
    # Placement requires a group_policy, but flavors do not depend on ports.
    if (
        request.group_policy is None
        and len(_suffixes(request)) > 1
        and len(of_flavor) < 2
    ):
        request.group_policy = 'none'
    return request


def _suffixes(request: placement_group.ResourceRequest) -> Sequence[str]:
    return [suffix for suffix in request.groups if suffix]


def _add_groups(
    request: placement_group.ResourceRequest, groups: Iterable[ResourceGroup]
) -> None:
    """Add the request groups of ports and device profiles."""
    for extra_group in groups:
        if extra_group.id in request.groups:
            raise errors.InvalidRequest(
                f'Two request groups have the suffix {extra_group.id!r}; '
                'rename that of the flavor.'
            )
        group = request.group(extra_group.id)
        group.resources.update(extra_group.resources)
        group.required_traits |= extra_group.required_traits
        group.forbidden_traits |= extra_group.forbidden_traits


def _add_extra_specs(
    request: placement_group.ResourceRequest, flavor: Flavor
) -> None:
    for spec in xs.parse(flavor.extra_specs):
        group = request.group(spec.suffix)
        if spec.kind == 'resources':
            _add_resource(group, flavor, spec)
        elif spec.value == xs.REQUIRED:
            group.required_traits.add(spec.name)
        elif spec.value == xs.FORBIDDEN:
            group.forbidden_traits.add(spec.name)
        else:
            LOG.warning(
                'Flavor %(flavor)s: trait%(suffix)s:%(trait)s is neither '
                '"required" nor "forbidden" but %(value)r; Nova ignores it.',
                {
                    'flavor': flavor.name,
                    'suffix': spec.suffix,
                    'trait': spec.name,
                    'value': spec.value,
                },
            )
    policy = flavor.extra_specs.get(placement_group.GROUP_POLICY)
    if policy in placement_group.GROUP_POLICIES:
        request.group_policy = policy
    elif policy is not None:
        LOG.warning(
            'Flavor %(flavor)s: group_policy is neither "none" nor "isolate" '
            'but %(value)r; Nova ignores it.',
            {'flavor': flavor.name, 'value': policy},
        )


def requested_amount(spec: xs.ExtraSpec) -> int | None:
    """Return the amount that is requested; None for what Nova ignores.

    Nova ignores classes without a valid name, too.
    """
    is_known = spec.name in orc.STANDARDS or orc.is_custom(spec.name)
    return spec.amount if is_known else None


def _add_resource(
    group: placement_group.RequestGroup, flavor: Flavor, spec: xs.ExtraSpec
) -> None:
    amount = requested_amount(spec)
    if amount is not None:
        group.resources[spec.name] = amount
        return
    LOG.warning(
        'Flavor %(flavor)s: resources%(suffix)s:%(name)s=%(value)s is not a '
        'resource class with a non-negative integer; Nova ignores it.',
        {
            'flavor': flavor.name,
            'suffix': spec.suffix,
            'name': spec.name,
            'value': spec.value,
        },
    )


def _add_size(request: placement_group.ResourceRequest, spec: Request) -> None:
    """Add the flavor's size, for resource classes without an extra spec."""
    totals = request.merged_resources()
    amounts = request.group().resources
    flavor = spec.flavor
    if orc.VCPU not in totals and orc.PCPU not in totals:
        amounts[orc.VCPU] = flavor.vcpus
    if orc.MEMORY_MB not in totals:
        amounts[orc.MEMORY_MB] = flavor.ram
    if orc.DISK_GB not in totals:
        root = 0 if spec.boot_from_volume else flavor.disk
        swap = math.ceil(flavor.swap / _MIB_PER_GIB)
        amounts[orc.DISK_GB] = root + flavor.ephemeral + swap


def _strip(request: placement_group.ResourceRequest) -> None:
    """Remove amounts of zero and empty groups."""
    for suffix, group in list(request.groups.items()):
        group.resources = {rc: n for rc, n in group.resources.items() if n}
        if group.is_empty:
            del request.groups[suffix]


def alias_names(wanted: str) -> frozenset[str]:
    """Return the names of aliases that a flavor requests PCI devices with."""
    return frozenset(
        part.partition(':')[0].strip() for part in wanted.split(',')
    )


def pci_groups(wanted: str, aliases: Iterable[str]) -> Iterator[ResourceGroup]:
    """Yield the request groups of a flavor.

    :param wanted: The value of ``pci_passthrough:alias``.
    :param aliases: The values of ``[pci] alias``, each of them JSON.
    :raises ValueError: if an alias is missing or cannot be read.
    """
    known = pci_aliases(aliases)
    for place, part in enumerate(wanted.split(',')):
        name, _, count = part.partition(':')
        alias = known.get(name.strip())
        if alias is None:
            raise ValueError(
                f'[pci] alias has no {name.strip()}, so nova-api refuses it'
            )
        for number in range(int(count)):
            yield ResourceGroup(
                f'pci_{place}_{number}',
                {_resource_class(alias): 1},
                frozenset(_traits(alias.get('traits', ''))),
            )


def pci_aliases(aliases: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the aliases of PCI devices by name.

    :param aliases: The values of ``[pci] alias``, each of them JSON.
    :raises ValueError: if one cannot be read.
    """
    known: dict[str, Mapping[str, Any]] = {}
    for text in aliases:
        try:
            alias = json.loads(text)
            known[alias['name'].strip()] = alias
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise ValueError(f'[pci] alias has {text!r}, which is not JSON '
                             'with a name') from exc  # fmt: skip
    return known


def _resource_class(alias: Mapping[str, Any]) -> str:
    name = alias.get('resource_class')
    if not name:
        ids = alias.get('vendor_id'), alias.get('product_id')
        return 'CUSTOM_PCI_{}_{}'.format(*ids).upper()
    name = str(name).upper()
    if name in orc.STANDARDS or orc.is_custom(name):
        return name
    return str(orc.normalize_name(name))


def _traits(text: str) -> Iterator[str]:
    standard, others = os_traits.check_traits(filter(None, text.split(',')))
    yield from standard
    for name in others:
        name = name.upper()
        yield (
            name
            if os_traits.is_custom(name)
            else os_traits.normalize_name(name)
        )
