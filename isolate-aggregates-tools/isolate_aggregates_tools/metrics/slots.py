# SPDX-License-Identifier: Apache-2.0
"""Counts how many servers of a flavor fit in each zone and behind each lock.

In a zone, only the hosts count that a request with the flavor and no other key
may use. Behind a lock all hosts count, because the key may come from an image,
a project or a reservation.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
import dataclasses
import logging
import time

import os_resource_classes as orc
from oslo_config import cfg
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor
from isolate_aggregates.text import escaped
from isolate_aggregates_tools import candidates, errors
from isolate_aggregates_tools.answers.deciding import decided
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.capacity import Packing
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import Request, constraints, resources

LOG = logging.getLogger(__name__)

# The number of flavors, unless the configuration names some.
MOST = 10
# Seconds for which the most used flavors are cached; they are computed from a
# list of all servers.
RANKED_FOR = 3600.0

# The resources of these are defined in Cyborg.
_PROFILE = 'accel:device_profile'

_NOT_COUNTED = 'Free slots of flavor %(flavor)s cannot be counted: %(cause)s'
_PREFIX = 'isolate_aggregates'
_FLAVOR = ('flavor_id', 'flavor_name')
_SLOTS = {
    'free_slots': 'How many more servers of the flavor fit',
    'slots': 'How many servers of the flavor would fit, without any others,',
}
# Hosts by name of a zone or lock.
_Places = Mapping[str, frozenset[str]]


class SlotCounter:
    """Counts slots.

    :param clock: Returns the time in seconds.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        servers: Callable[[], Iterable[Server]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._conf = conf
        self._servers = servers
        self._clock = clock
        self._ranked: Counter[str] | None = None
        self._ranked_at = 0.0

    def families(self, cloud: AuditedCloud) -> tuple[Metric, ...]:
        """Return the metrics of a cloud, including whether they are complete.

        A flavor whose slots cannot be counted is left out. That is a fault
        only if it was configured: another may take its place otherwise.
        """
        is_configured = bool(self._conf[ia_conf.GROUP].metrics_flavors)
        in_zones, behind_locks = _Families('zone'), _Families('lock')
        is_complete = True
        counting = _Counting(cloud, self._conf)
        try:
            names = self._chosen(cloud)
        except exception.IsolateAggregatesError as exc:
            LOG.error(
                'Free slots cannot be counted, because the most used flavors '
                'are not known: %(cause)s Set [%(group)s] metrics_flavors.',
                {'cause': exc, 'group': ia_conf.GROUP},
            )
            names, is_complete = [], False
        counted_flavors: set[tuple[str, str]] = set()
        for name in names:
            if not is_configured and len(counted_flavors) == MOST:
                break
            try:
                flavor = cloud.snapshot.flavor(name)
                name = flavor.name
                # The same flavor may be configured by id and by name.
                if (flavor.id, flavor.name) not in counted_flavors:
                    counting.count(flavor, in_zones, behind_locks)
                    counted_flavors.add((flavor.id, flavor.name))
            except exception.FilterError:
                raise
            except errors.MetricsError as exc:
                LOG.log(
                    logging.ERROR if is_configured else logging.INFO,
                    _NOT_COUNTED,
                    {'flavor': escaped(name), 'cause': exc},
                )
                is_complete = is_complete and not is_configured
            except exception.IsolateAggregatesError as exc:
                LOG.error(
                    _NOT_COUNTED, {'flavor': escaped(name), 'cause': exc}
                )
                is_complete = False
        return (
            *in_zones.families,
            *behind_locks.families,
            GaugeMetricFamily(
                f'{_PREFIX}_slots_up',
                'Whether the slots of all flavors could be counted for which '
                'they are known.',
                float(is_complete),
            ),
        )

    def _chosen(self, cloud: AuditedCloud) -> list[str]:
        """Return the ids or names of the flavors to count slots for.

        Unless they are configured these are all, the most used ones first.
        """
        flavor_names = self._conf[ia_conf.GROUP].metrics_flavors
        if flavor_names:
            return list(flavor_names)
        flavors = cloud.snapshot.flavors
        if len(flavors) > MOST:
            servers = self._used(cloud)
            flavors = tuple(
                sorted(
                    flavors,
                    key=lambda flavor: (-servers[flavor.name], flavor.name),
                )
            )
        return [flavor.id or flavor.name for flavor in flavors]

    def _used(self, cloud: AuditedCloud) -> Counter[str]:
        """Return the number of servers by name of the flavor."""
        if cloud.servers is not None:
            return _by_flavor(cloud.servers.placed)
        now = self._clock()
        if self._ranked is None or now >= self._ranked_at + RANKED_FOR:
            self._ranked = _by_flavor(self._servers())
            self._ranked_at = now
        return self._ranked


def _by_flavor(servers: Iterable[Server]) -> Counter[str]:
    return Counter(server.flavor.name for server in servers if server.flavor)


class _Families:
    """The metrics for zones or for locks.

    :param what: ``zone`` or ``lock``.
    """

    def __init__(self, what: str) -> None:
        where, label = {
            'zone': ('in the availability zone', 'availability_zone'),
            'lock': ('on hosts behind the lock', 'lock'),
        }[what]
        self.families = tuple(
            GaugeMetricFamily(
                f'{_PREFIX}_{what}_{name}',
                f'{text} {where}.',
                labels=[label, *_FLAVOR],
            )
            for name, text in _SLOTS.items()
        )

    def add(
        self, flavor: Flavor, places: _Places, packings: Iterable[Packing]
    ) -> None:
        """Add the samples of a flavor."""
        for family, packing in zip(self.families, packings, strict=True):
            for name, hosts in places.items():
                family.add_metric(
                    [*map(escaped, (name, flavor.id, flavor.name))],
                    packing.servers(hosts),
                )


class _Counting:
    """Counts slots in a cloud with its usage, and without any usage."""

    def __init__(self, cloud: AuditedCloud, conf: cfg.ConfigOpts) -> None:
        self._cloud = cloud
        self._saved = SnapshotCloud(cloud.snapshot)
        self._most = conf[ia_conf.SCHEDULER].max_placement_results
        self._longest = conf[ia_conf.GROUP].max_query_length
        self._zones = _zones(cloud.snapshot)
        self._locks = {
            lock.name: frozenset().union(*(a.hosts for a in lock.aggregates))
            for lock in cloud.locks
        }
        self._snapshots = (
            cloud.snapshot,
            dataclasses.replace(
                cloud.snapshot,
                providers=tuple(
                    dataclasses.replace(provider, usages={})
                    for provider in cloud.snapshot.providers
                ),
            ),
        )

    def count(
        self, flavor: Flavor, in_zones: _Families, behind_locks: _Families
    ) -> None:
        """Add all samples of a flavor; none if an exception is raised."""
        if _PROFILE in flavor.extra_specs:
            raise errors.MetricsError(
                f'It is not known which devices its extra spec {_PROFILE} '
                'requests.'
            )
        # Each zone is counted, and each lock in all of them.
        request = dataclasses.replace(
            self._cloud.requests.new(flavor), availability_zone=None
        )
        decision = self._decided(request)
        try:
            # Devices that are not in Placement limit the number, too.
            self._cloud.requests.pci_groups(flavor)
        except ValueError as exc:
            raise errors.MetricsError(f'It is not known {exc}.') from None
        destination = decision.destination
        is_refused = bool(destination.refusals)
        if is_refused:
            destination = decided(
                request, self._cloud.index, Pipeline(self._cloud.mirrors)
            ).destination
            # A request of another project may not be refused.
            destination.refusals.clear()
        # A request with the key is not excluded by any lock.
        query = resources.resource_request(request)
        constraints.add(destination, query, ())
        if orc.PCPU in query.merged_resources() and not any(
            orc.PCPU in provider.inventories
            for provider in self._saved.snapshot.providers
        ):
            raise errors.MetricsError(
                'It requests PCPU, which no host has; Nova may use VCPU '
                'instead.'
            )
        packings_with_keys = self._packings(query, destination)
        for zone, hosts in self._zones.items():
            packings = self._in_zone(request, zone)
            in_zones.add(
                flavor,
                {zone: hosts if packings else frozenset()},
                packings or packings_with_keys,
            )
        behind_locks.add(flavor, self._locks, packings_with_keys)

    def _in_zone(self, request: Request, zone: str) -> list[Packing]:
        """Return what fits in a zone, or in none; empty if it is refused."""
        zoned = dataclasses.replace(request, availability_zone=zone or None)
        try:
            decision = self._decided(zoned)
        except errors.InvalidRequest:
            # No host is in the zone.
            return []
        if decision.destination.refusals:
            return []
        query = resources.resource_request(zoned)
        # Requirements that host filters check are not in the query.
        constraints.add(decision.destination, query, decision.forbidden)
        return self._packings(query, decision.destination)

    def _decided(self, request: Request) -> Decision:
        return candidates.decide_on(
            self._saved,
            self._cloud.pipeline,
            request,
            self._most,
            self._longest,
        )

    def _packings(
        self, query: ResourceRequest, destination: Destination
    ) -> list[Packing]:
        return [
            Packing(snapshot, query, destination)
            for snapshot in self._snapshots
        ]


def _zones(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Return the hosts in each availability zone, as Placement sees them.

    Hosts that are in no zone, in Nova and in Placement, have an empty name.
    """
    zones: dict[str, set[str]] = {}
    by_uuid: dict[str, str] = {}
    hosts_in_zones: set[str] = set()
    for aggregate in snapshot.aggregates:
        if zone := zone_of(aggregate):
            zones.setdefault(zone, set())
            by_uuid[aggregate.uuid] = zone
            hosts_in_zones |= aggregate.hosts
    for node in snapshot.providers:
        if node.host:
            own = {by_uuid.get(uuid) for uuid in node.aggregates} - {None}
            for zone in own:
                zones[str(zone)].add(node.host)
            if not own and node.host not in hosts_in_zones:
                zones.setdefault('', set()).add(node.host)
    return {zone: frozenset(zones[zone]) for zone in sorted(zones)}
