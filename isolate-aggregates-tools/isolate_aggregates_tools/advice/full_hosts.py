# SPDX-License-Identifier: Apache-2.0
"""Finds the hosts that are only full, and how to free room on them."""

from collections import Counter
from collections.abc import Iterator
import dataclasses
import itertools

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import counted
from isolate_aggregates_tools import errors, shell
from isolate_aggregates_tools.advice.proposals import Ways
from isolate_aggregates_tools.answers.deciding import question
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.mirrored.nova_api import moves
from isolate_aggregates_tools.mirrored.nova_api.moves import MoveKind
from isolate_aggregates_tools.placement.provider import (
    Provider,
    below,
    nodes_by_host,
)
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.request import resources

# The most full hosts that are named.
_MOST = 3


@dataclasses.dataclass(frozen=True)
class FullHosts:
    """The hosts that would do for a request if they were empty.

    :param ways: The changes that might give the request a host.
    :param requests: Builds the requests of servers.
    """

    ways: Ways
    requests: Requests

    @property
    def _snapshot(self) -> Snapshot:
        return self.ways.snapshot

    @lazy_property
    def hosts(self) -> frozenset[str]:
        """Their names."""
        asked = question(
            self.ways.request, self._snapshot.index, self.ways.pipeline
        )
        return Offers(self._snapshot).hosts(asked)

    def repairs(self) -> Iterator[Repair]:
        """Yield how to free some room on them, or to reserve more."""
        more_slots = list(self._more_slots())
        yield from more_slots
        hosts = sorted(self.hosts)
        leavable = list(
            itertools.islice(filter(self._can_be_left, hosts), _MOST)
        )
        move = commands.shown(commands.migrate('SERVER', live=True))
        for host in leavable:
            yield self._emptied(
                host, f', then {move} for some of these servers'
            )
        if leavable or more_slots:
            return
        shelve = shell.command(shell.Kind.SERVER_SHELVE, names=['SERVER'])
        for host in hosts[:_MOST]:
            yield self._emptied(
                host,
                f', then {shelve} for some of these servers, as no other host '
                'could take enough of them now',
            )

    def _emptied(self, host: str, how: str) -> Repair:
        amounts = ', '.join(
            f'{resource_class} {amount}'
            for resource_class, amount in sorted(self._amounts.items())
        )
        line = commands.shown(commands.list_servers(host))
        return Repair(
            text=f'{line}{how}: {host} is full, and {amounts} must be free '
            'there'
        )

    @lazy_property
    def _amounts(self) -> Counter[str]:
        amounts = Counter[str]()
        if self.ways.query:
            amounts.update(self.ways.query.merged_resources())
        return amounts

    @lazy_property
    def _trees(self) -> dict[str, tuple[Provider, ...]]:
        """All providers of hosts, by name of the compute service."""
        children = below(self._snapshot.providers)
        return {
            host: tuple(
                provider
                for node in nodes
                for provider in (node, *children.get(node.uuid, ()))
            )
            for host, nodes in nodes_by_host(self._snapshot.providers).items()
        }

    # Servers that leave.

    def _can_be_left(self, host: str) -> bool:
        """Return whether enough servers may have other hosts.

        If the servers are not known, another host must have some of each
        resource class that they would need there as well.
        """
        lacking = {
            name: amount - self._free(host, name)
            for name, amount in self._amounts.items()
            if amount > self._free(host, name)
        }
        if self._snapshot.servers is None:
            return all(self._is_elsewhere(name, host) for name in lacking)
        freed = Counter[str]()
        leaving = 0
        for server in self._snapshot.servers.placed:
            if server.host == host and self._can_leave(server, host):
                leaving += 1
                freed.update(self._takes(server))
        return bool(leaving) and all(
            freed[name] >= amount for name, amount in lacking.items()
        )

    def _free(self, host: str, resource_class: str) -> int:
        return sum(
            max(0, provider.free(resource_class))
            for provider in self._trees.get(host, ())
            if resource_class in provider.inventories
        )

    def _is_elsewhere(self, resource_class: str, host: str) -> bool:
        """Return whether another host has some of a resource class free.

        One that shares it does not lack it for long.
        """
        return any(
            self._free(other, resource_class)
            for other in self._trees
            if other != host
        ) or any(
            provider.is_sharing and resource_class in provider.inventories
            for provider in self._snapshot.providers
        )

    def _can_leave(self, server: Server, host: str) -> bool:
        """Return whether Nova can move a server to another host now."""
        image = None
        if self._snapshot.servers:
            image = self._snapshot.servers.images.get(server.image_id or '')
        properties = {
            **(image.properties if image else {}),
            **(server.image_properties or {}),
        }
        is_up = host not in self._snapshot.down_hosts
        if any(
            moves.refusals(
                MoveKind.LIVE,
                server,
                properties,
                self.requests.releases,
                is_up,
            )
        ):
            return False
        try:
            request = self.requests.of(server, with_ports=False)
        except errors.InvalidRequest:
            return False
        cells = self._snapshot.cells
        cell = cells.get(host)
        return any(
            other != host and (not cell or cells.get(other, cell) == cell)
            for other in self.ways.hosts(self._snapshot, request)
        )

    def _takes(self, server: Server) -> dict[str, int]:
        try:
            request = self.requests.of(server, with_ports=False)
            return resources.resource_request(request).merged_resources()
        except errors.InvalidRequest:
            return {}

    # Slots.

    def _more_slots(self) -> Iterator[Repair]:
        """Yield how a reservation of which all slots are used gets more."""
        records = {
            flavor.id
            for flavor in self._snapshot.flavors
            if flavor.name == f'reservation:{flavor.id}'
        }
        for name in sorted(self._amounts):
            reservation = xs.reservation_of(name)
            if reservation is None or reservation not in records:
                continue
            slots = [
                (provider.inventories[name].total, provider.usages.get(name))
                for provider in self._snapshot.providers
                if name in provider.inventories
            ]
            number = sum(total for total, _ in slots)
            if number and number <= sum(used or 0 for _, used in slots):
                line = commands.shown(
                    commands.set_amount(reservation, number + 1)
                )
                yield Repair(
                    text=f'{line}, if a host for reservations has room for '
                    f'another slot: {counted(number, "slot")} '
                    f'{"are" if number > 1 else "is"} in use; if the '
                    'reservation is a lease of Blazar, update the lease '
                    'instead',
                    is_tried=False,
                )
