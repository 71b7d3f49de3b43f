# SPDX-License-Identifier: Apache-2.0
"""Nova's host filters that depend only on aggregates or compute services.

If they are in ``[filter_scheduler] enabled_filters``, they drop hosts that
Placement offers; see `Compute schedulers
<https://docs.openstack.org/nova/latest/admin/scheduling.html>`_. Nova's other
host filters use data that is not available outside Nova.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.constraints import Cause
from isolate_aggregates.filters.required_metadata import (
    HOST_FILTER,
    RequiredMetadata,
    metadata_of,
    required_metadata,
    values_of,
)
from isolate_aggregates.text import quoted
from isolate_aggregates_tools.mirrored import compute_services, nova_image
from isolate_aggregates_tools.mirrored.mirror import Mirror, Settings
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.request.constraints import DropHosts

# The configuration group with the enabled host filters.
GROUP = 'filter_scheduler'
ENABLED = (GROUP, 'enabled_filters')
_NAMESPACE = (GROUP, 'aggregate_image_properties_isolation_namespace')
_SEPARATOR = (GROUP, 'aggregate_image_properties_isolation_separator')
_ISOLATED_HOSTS = (GROUP, 'isolated_hosts')
_ISOLATED_IMAGES = (GROUP, 'isolated_images')
_RESTRICT = (GROUP, 'restrict_isolated_hosts_to_isolated_images')

# Metadata keys to their values over all aggregates of a host.
_Metadata = Mapping[str, frozenset[str]]
_Rule = Callable[[_Metadata], str]


def _metadata(aggregates: Iterable[Aggregate]) -> _Metadata:
    values: dict[str, frozenset[str]] = {}
    for aggregate in aggregates:
        for key, value in metadata_of(aggregate).items():
            values[key] = values.get(key, frozenset()) | values_of(value)
    return values


def _drop(objection: Callable[[str], str], hosts: str) -> DropHosts:
    """Return the constraint that drops hosts, with a description of them."""
    return DropHosts(
        objection,
        Cause(
            'dropped-by-host-filter',
            f'after Placement has answered, Nova drops {hosts}',
        ),
    )


def _dropping(
    aggregates: AggregateIndex, objection_to: _Rule, hosts: str
) -> Iterator[DropHosts]:
    """Yield a constraint if any host is or could be dropped."""
    kinds, members = aggregates.remember(
        ('kinds of hosts',), lambda: _kinds(aggregates)
    )
    objections = [objection_to(_metadata(some)) for some in members]

    def objection(host: str) -> str:
        return objections[kinds.get(host, _IN_NONE)]

    if any(objections):
        yield _drop(objection, hosts)


# The kind of hosts that are in no aggregate.
_IN_NONE = 0


def _kinds(
    aggregates: AggregateIndex,
) -> tuple[dict[str, int], list[tuple[Aggregate, ...]]]:
    """Group hosts by their aggregates.

    Many hosts are in the same aggregates, so there are few groups.

    :returns: The number of the group by host, and the aggregates by number.
    """
    numbers: dict[tuple[str, ...], int] = {(): _IN_NONE}
    members: list[tuple[Aggregate, ...]] = [()]
    kinds = {}
    for host, some in aggregates.by_host.items():
        uuids = tuple(aggregate.uuid for aggregate in some)
        if uuids not in numbers:
            numbers[uuids] = len(members)
            members.append(some)
        kinds[host] = numbers[uuids]
    return kinds, members


def instance_extra_specs(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Drop hosts whose aggregates do not have metadata the flavor requires."""
    required = required_metadata(request.flavor.extra_specs)
    if not required:
        return

    def objection_to(metadata: _Metadata) -> str:
        missing = [
            str(each)
            for each in required
            if not any(
                _matches(each, value) for value in metadata.get(each.key, ())
            )
        ]
        return f'in no aggregate with {" and ".join(missing)}' * bool(missing)

    metadata = ' and '.join(map(str, required))
    yield from _dropping(
        aggregates,
        objection_to,
        f'hosts in no aggregate with {metadata}, which flavor '
        f'{request.flavor.name} requires',
    )


def _matches(required: RequiredMetadata, value: str) -> bool:
    try:
        return required.matches(value)
    except ValueError:
        # Nova's scheduler raises an exception, so no host passes.
        return False


def image_properties(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Drop hosts whose aggregates have other values than the image."""
    properties = request.image_properties
    namespace = settings[_NAMESPACE]
    start = f'{namespace}{settings[_SEPARATOR]}' if namespace else ''
    visible = {
        name: value
        for name in sorted(nova_image.KNOWN | nova_image.LISTS)
        if name.startswith(start)
        and (value := nova_image.kept(properties, name, request.nova_release))
        # Nova ignores false values.
        and not nova_image.is_false(name, value)
    }

    def objection_to(metadata: _Metadata) -> str:
        for name, value in visible.items():
            values = metadata.get(name)
            if values is not None and value not in values:
                return (
                    f'in aggregates with {name}={",".join(sorted(values))}, '
                    f'but the image has {name}={quoted(value)}'
                )
        return ''

    yield from _dropping(
        aggregates,
        objection_to,
        'hosts whose aggregates have other values for image properties',
    )


_PROJECTS = 'filter_tenant_id'


def multi_tenancy(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Drop hosts whose aggregates name other projects."""

    def objection_to(metadata: _Metadata) -> str:
        projects = frozenset[str]().union(
            *(v for k, v in metadata.items() if k.startswith(_PROJECTS))
        )
        if not projects or request.project_id in projects:
            return ''
        why = (
            f'project {request.project_id} is not one of them'
            if request.project_id
            else 'the request has no project'
        )
        return f'reserved for the projects in {_PROJECTS}; {why}'

    yield from _dropping(
        aggregates,
        objection_to,
        f'hosts whose {_PROJECTS} names other projects',
    )


_TYPES = 'instance_type'


def type_affinity(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Drop hosts whose aggregates name other flavors."""

    def objection_to(metadata: _Metadata) -> str:
        flavors = metadata.get(_TYPES)
        if flavors is None or request.flavor.name in flavors:
            return ''
        return (
            f'in aggregates with {_TYPES}={",".join(sorted(flavors))}, '
            f'not {request.flavor.name}'
        )

    yield from _dropping(
        aggregates, objection_to, f'hosts whose {_TYPES} names other flavors'
    )


def isolated_hosts(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Restrict images to hosts, and optionally hosts to these images."""
    hosts = frozenset(settings[_ISOLATED_HOSTS])
    images = frozenset(settings[_ISOLATED_IMAGES])
    is_exclusive = settings[_RESTRICT]
    is_isolated = bool(request.image and request.image.id in images)
    others = 'the image is not in isolated_images'

    def objection(host: str) -> str:
        if is_isolated and host not in hosts:
            return 'not in isolated_hosts, but the image is in isolated_images'
        if not is_isolated and host in hosts and is_exclusive:
            return f'in isolated_hosts, but {others}'
        return ''

    if is_isolated:
        description = (
            'hosts that are not in isolated_hosts, because the image is '
            'isolated'
        )
    elif hosts and is_exclusive:
        description = f'hosts in isolated_hosts, because {others}'
    else:
        return
    yield _drop(objection, description)


def _host_filter(
    name: str, rule: Callable[..., Iterator[DropHosts]], *options: str
) -> Mirror:
    return Mirror(
        name,
        name,
        rule,
        options=tuple((GROUP, option) for option in options),
        host_filter=True,
    )


MIRRORS = (
    _host_filter(compute_services.NAME, compute_services.active_services),
    _host_filter(HOST_FILTER, instance_extra_specs),
    _host_filter(
        'AggregateImagePropertiesIsolation',
        image_properties,
        _NAMESPACE[1],
        _SEPARATOR[1],
    ),
    _host_filter('AggregateMultiTenancyIsolation', multi_tenancy),
    _host_filter('AggregateTypeAffinityFilter', type_affinity),
    _host_filter(
        'IsolatedHostsFilter',
        isolated_hosts,
        _ISOLATED_HOSTS[1],
        _ISOLATED_IMAGES[1],
        _RESTRICT[1],
    ),
)
