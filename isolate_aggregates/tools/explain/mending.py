# SPDX-License-Identifier: Apache-2.0
"""Finds the commands after which a request gets a host.

Each change that ``ways`` proposes is carried out on a copy of the cloud in
memory, and the request is decided on again; only changes that give it a host
are returned. If no single one does, pairs are tried.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
import dataclasses
import itertools

from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools import ranges
from isolate_aggregates.tools.advice import Repair, commands, outcome
from isolate_aggregates.tools.advice.commands import Commands
from isolate_aggregates.tools.answers.deciding import question
from isolate_aggregates.tools.answers.offers import Offers
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.explain.ways import Ways
from isolate_aggregates.tools.request import Request, resources

# The most ways that are returned.
_MOST = 6
# The most ways of which pairs are tried.
_PAIRED = 8
# The most full hosts that are named.
_FULL = 3


def mendings(
    snapshot: Snapshot,
    request: Request,
    pipeline: Pipeline,
    filters: Pipeline,
) -> tuple[Repair, ...]:
    """Return ways to give a host to a request that gets none.

    What gives a key comes first, and what takes a lock away last.
    """
    mender = _Mender(Ways(snapshot, request, pipeline), filters)
    return tuple(itertools.islice(mender.repairs(), _MOST))


@dataclasses.dataclass(frozen=True)
class _Mender:
    ways: Ways
    filters: Pipeline

    @property
    def snapshot(self) -> Snapshot:
        return self.ways.snapshot

    @property
    def request(self) -> Request:
        return self.ways.request

    def repairs(self) -> Iterator[Repair]:
        additions, removals = (
            list(self.ways.additions()),
            list(self.ways.removals()),
        )
        ways = [way for way in additions if self._helps(way)]
        yield from map(Repair, ways or self._pairs(additions))
        yield from self._other_requests()
        yield from self._room()
        ways += [way for way in removals if self._helps(way)]
        yield from map(Repair, [way for way in ways if way in removals])
        if not ways:
            yield from map(Repair, self._pairs(removals))

    def _pairs(self, ways: Sequence[Commands]) -> Iterator[Commands]:
        """Yield pairs of ways that help together."""
        for first, second in itertools.permutations(ways[:_PAIRED], 2):
            if self._helps((*first, *second)):
                yield (*first, *second)

    def _helps(self, todo: Commands) -> bool:
        return bool(todo and self._hosts_after(todo))

    def _hosts_after(self, todo: Commands) -> frozenset[str]:
        *_, after = outcome.outcomes(self.snapshot, todo, self.filters)
        if after is self.snapshot:
            return frozenset()
        return self.ways.hosts(after, self._changed(after))

    def _changed(self, after: Snapshot) -> Request:
        """Return the request for the flavor and image as they are then."""
        flavor, image = self.request.flavor, self.request.image
        if self.ways.flavor:
            place = self.snapshot.flavors.index(self.ways.flavor)
            flavor = after.flavors[place]
        if image in self.snapshot.images:
            image = after.images[self.snapshot.images.index(image)]
        return dataclasses.replace(self.request, flavor=flavor, image=image)

    def _other_requests(self) -> Iterator[Repair]:
        """Yield what could be asked for instead."""
        zone = self.request.availability_zone
        if zone:
            anywhere = dataclasses.replace(
                self.request, availability_zone=None
            )
            zones = self.snapshot.index
            for host in sorted(self.ways.hosts(self.snapshot, anywhere)):
                for aggregate in zones.by_host.get(host, ()):
                    other = zone_of(aggregate)
                    if other and other != zone and self._is_offered_in(other):
                        yield Repair(
                            text='request it with --availability-zone '
                            f'{commands.quoted(other)} instead of '
                            f'{commands.quoted(zone)}'
                        )
                        return
        if self.request.requested_host:
            free = dataclasses.replace(
                self.request, requested_host=None, host_forced=False
            )
            hosts = self.ways.hosts(self.snapshot, free)
            if hosts:
                yield Repair(
                    text='request no host, or one of '
                    f'{ranges.folded(hosts)}, with --host'
                )

    def _is_offered_in(self, zone: str) -> bool:
        """Return whether the request gets a host in an availability zone."""
        request = dataclasses.replace(self.request, availability_zone=zone)
        return bool(self.ways.hosts(self.snapshot, request))

    def _room(self) -> Iterator[Repair]:
        """Yield how to free some room on hosts that are only full."""
        empty = Offers(self.snapshot)
        query = question(self.request, self.snapshot.index, self.ways.pipeline)
        full = sorted(empty.hosts(query))
        amounts = ', '.join(
            f'{resource_class} {amount}'
            for resource_class, amount in sorted(self._amounts().items())
        )
        for host in full[:_FULL]:
            line = commands.shown(commands.list_servers(host))
            yield Repair(
                text=f'{line}, then openstack server migrate --live-migration '
                f'--wait SERVER for some of these servers: {host} is full, '
                f'and {amounts} must be free there'
            )

    def _amounts(self) -> Counter[str]:
        try:
            query = resources.resource_request(self.request)
        except exception.InvalidRequest:
            return Counter()
        amounts = Counter[str]()
        for group in query.groups.values():
            for resource_class, amount in group.resources.items():
                amounts[resource_class] += amount
        return amounts
