# SPDX-License-Identifier: Apache-2.0
"""Nova's host filters that depend only on aggregates.

If they are in ``[filter_scheduler] enabled_filters``, they drop hosts that
Placement offers; see `Compute schedulers
<https://docs.openstack.org/nova/latest/admin/scheduling.html>`_. Nova's other
host filters use data that is not available outside Nova.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.constraints import DropHosts
from isolate_aggregates.filters.mirrored.mirror import Mirror, Settings
from isolate_aggregates.filters.wanted import (
    HOST_FILTER,
    Wanted,
    metadata_of,
    values_of,
    wanted_metadata,
)
from isolate_aggregates.request import Request, nova_image

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
_Judge = Callable[[_Metadata], str]


@dataclasses.dataclass(frozen=True)
class DroppedLater:
    """The cause: a host filter drops hosts.

    :param what: The dropped hosts, for example "hosts without ssd=true".
    """

    what: str

    def __str__(self) -> str:
        return f'after Placement has answered, Nova drops {self.what}'


def _metadata(aggregates: Iterable[Aggregate]) -> _Metadata:
    found: dict[str, frozenset[str]] = {}
    for aggregate in aggregates:
        for key, value in metadata_of(aggregate).items():
            found[key] = found.get(key, frozenset()) | values_of(value)
    return found


def _dropping(
    aggregates: AggregateIndex, judge: _Judge, what: str
) -> Iterator[DropHosts]:
    """Yield a constraint if any host is or could be dropped.

    :param judge: Returns why hosts with some metadata are dropped.
    """
    kinds, members = aggregates.remember(
        ('kinds of hosts',), lambda: _kinds(aggregates)
    )
    told = [judge(_metadata(some)) for some in members]

    def objection(host: str) -> str:
        return told[kinds.get(host, _IN_NONE)]

    if any(told):
        yield DropHosts(objection, DroppedLater(what))


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
    wanted = wanted_metadata(request.flavor.extra_specs)
    if not wanted:
        return

    def judge(metadata: _Metadata) -> str:
        missing = [
            str(each)
            for each in wanted
            if not any(
                _is_met(each, one) for one in metadata.get(each.key, ())
            )
        ]
        return f'in no aggregate with {" and ".join(missing)}' * bool(missing)

    told = ' and '.join(map(str, wanted))
    yield from _dropping(
        aggregates,
        judge,
        f'hosts in no aggregate with {told}, which flavor '
        f'{request.flavor.name} requires',
    )


def _is_met(wanted: Wanted, value: str) -> bool:
    try:
        return wanted.is_met_by(value)
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
    kept = {
        name: value
        for name in sorted(nova_image.KNOWN)
        if name.startswith(start)
        and (value := nova_image.kept(properties, name, request.nova_release))
        # Nova ignores false values.
        and value not in ('False', '0')
    }

    def judge(metadata: _Metadata) -> str:
        for name, value in kept.items():
            values = metadata.get(name)
            if values is not None and value not in values:
                return (
                    f'in aggregates with {name}={",".join(sorted(values))}, '
                    f'but the image has {name}={value}'
                )
        return ''

    yield from _dropping(
        aggregates,
        judge,
        'hosts whose aggregates have other values for image properties',
    )


_PROJECTS = 'filter_tenant_id'


def multi_tenancy(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Drop hosts whose aggregates name other projects."""

    def judge(metadata: _Metadata) -> str:
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
        aggregates, judge, f'hosts whose {_PROJECTS} names other projects'
    )


_TYPES = 'instance_type'


def type_affinity(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Drop hosts whose aggregates name other flavors."""

    def judge(metadata: _Metadata) -> str:
        flavors = metadata.get(_TYPES)
        if flavors is None or request.flavor.name in flavors:
            return ''
        return (
            f'in aggregates with {_TYPES}={",".join(sorted(flavors))}, '
            f'not {request.flavor.name}'
        )

    yield from _dropping(
        aggregates, judge, f'hosts whose {_TYPES} names other flavors'
    )


def isolated_hosts(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[DropHosts]:
    """Restrict images to hosts, and optionally hosts to these images."""
    hosts = frozenset(settings[_ISOLATED_HOSTS])
    images = frozenset(settings[_ISOLATED_IMAGES])
    restricted = settings[_RESTRICT]
    is_isolated = bool(request.image and request.image.id in images)
    others = 'the image is not in isolated_images'

    def objection(host: str) -> str:
        if is_isolated and host not in hosts:
            return 'not in isolated_hosts, but the image is in isolated_images'
        if not is_isolated and host in hosts and restricted:
            return f'in isolated_hosts, but {others}'
        return ''

    if is_isolated:
        what = (
            'hosts that are not in isolated_hosts, because the image is '
            'isolated'
        )
    elif hosts and restricted:
        what = f'hosts in isolated_hosts, because {others}'
    else:
        return
    yield DropHosts(objection, DroppedLater(what))


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
