# SPDX-License-Identifier: Apache-2.0
"""Reads stays of servers and the state of a live cloud from Nova."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent import futures
import itertools
from typing import TypeVar

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.request import Image
from isolate_aggregates.text import counted
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.compute import past as nova_past
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.compute.past import (
    Event,
    InstanceAction,
    Migration,
    PastServer,
)
from isolate_aggregates_tools.compute.servers import out_of_reach
from isolate_aggregates_tools.ledger import nova_records, state
from isolate_aggregates_tools.ledger.keys import Keys
from isolate_aggregates_tools.ledger.state import HostState, Placement, State
from isolate_aggregates_tools.ledger.stays import Stay
from isolate_aggregates_tools.placement.provider import Provider

# Servers whose actions are read together, so that memory stays flat.
_TOGETHER = 1000

_T = TypeVar('_T')


class NovaStays:
    """The stays of servers in a period, from what Nova keeps.

    :param is_counted: Whether a stay belongs into the ledger.
    :param recorded: The servers in a ledger file.
    :param max_concurrency: How many requests to send at the same time.
    """

    def __init__(
        self,
        nova: NovaClient,
        keys: Keys,
        since: int,
        is_counted: Callable[[Stay], bool],
        recorded: Collection[str] = (),
        max_concurrency: int = ia_conf.MAX_CONCURRENCY,
    ) -> None:
        self._nova = nova
        self._max_concurrency = max_concurrency
        self._keys = keys
        self._since = since
        self._is_counted = is_counted
        self._recorded = recorded
        self._stays: dict[str, list[Stay]] = {}
        # All stays of the servers in the ledger file, as far as Nova knows
        # them: what it says of a server takes precedence.
        self.known: dict[str, list[Stay]] = {}
        self.gaps: list[str] = []
        # Servers that count because they may have the key.
        self._doubtful = 0

    @property
    def stays(self) -> Iterator[Stay]:
        """The stays, by server."""
        return itertools.chain.from_iterable(self._stays.values())

    def read(self, now: int, project: str | None = None) -> None:
        """Read all stays after the beginning of the period."""
        migrations: dict[str, list[Migration]] = {}
        for migration in nova_past.migrations(self._nova, self._since):
            migrations.setdefault(migration.server, []).append(migration)
        moved: list[tuple[PastServer, list[InstanceAction]]] = []
        with futures.ThreadPoolExecutor(self._max_concurrency) as pool:
            pasts = nova_past.servers(self._nova, self._since, project)
            for some in _batches(pasts):
                actions = pool.map(
                    lambda past: self._actions(
                        past, migrations.get(past.server.id, ())
                    ),
                    some,
                )
                for past, each in zip(some, actions, strict=True):
                    if each is None:
                        self._add(
                            past,
                            nova_records.of_unmoved(past, self._keys_of(past)),
                        )
                    else:
                        moved.append((past, each))
            flavors = nova_records.flavors_of(
                (past, migrations.get(past.server.id, ())) for past, _ in moved
            )
            for many in _batches(moved):
                events = pool.map(lambda pair: self._events(*pair), many)
                for (past, _), each_events in zip(many, events, strict=True):
                    self._add(
                        past,
                        nova_records.of_moved(
                            past,
                            each_events,
                            migrations.get(past.server.id, ()),
                            flavors,
                            self._keys_of(past),
                            now,
                        ),
                    )
        hidden = out_of_reach(self._nova.direct, self._nova.for_servers)
        if hidden:
            self.gaps.append(
                f'{counted(len(hidden), "server")} of cells that are down, '
                'which Nova does not show'
            )
        if self._doubtful:
            self.gaps.append(
                f'whether {counted(self._doubtful, "server")} had the key, '
                'all of which count: they boot from a volume, or their image '
                'or flavor is gone'
            )

    def _actions(
        self, past: PastServer, migrations: Sequence[Migration]
    ) -> list[InstanceAction] | None:
        """Return the actions on a server; None if it has never moved."""
        if not nova_records.needs_actions(past, migrations, self._since):
            return None
        try:
            actions = nova_past.actions(self._nova, past.server.id)
        except exception.ServiceNotFound:
            # Archived meanwhile.
            return []
        return None if nova_records.is_plain(actions, migrations) else actions

    def _events(
        self, past: PastServer, actions: Iterable[InstanceAction]
    ) -> dict[InstanceAction, list[Event]]:
        """Return the events of the actions that may have moved a server."""
        return {
            action: nova_past.events(self._nova, past.server.id, action)
            for action in nova_records.moving(actions)
        }

    def _keys_of(self, past: PastServer) -> nova_records.KeysOf:
        return lambda flavor: self._keys.of(past.server, flavor)

    def _add(self, past: PastServer, records: nova_records.Records) -> None:
        server = past.server.id
        if server in self._recorded:
            self.known[server] = list(records.stays)
        self._stays[server] = [
            stay
            for stay in records.stays
            if (stay.end is None or stay.end > self._since)
            and self._is_counted(stay)
        ]
        if self._stays[server]:
            self.gaps += records.gaps
        if self._keys.has_locks and any(
            stay.keys is None for stay in self._stays[server]
        ):
            self._doubtful += 1


def images_of(cloud: LiveCloud) -> Callable[[str], Image]:
    """Return what finds an image by its id; it lists all of them once."""
    listed: dict[str, Image] = {}

    def image(number: str) -> Image:
        if not listed:
            listed.update((each.id, each) for each in cloud.glance.images())
        # Images may be newer than the list, or hidden.
        return listed.get(number) or cloud.glance.image(number)

    return image


def live_state(cloud: LiveCloud) -> State:
    """Return the locks and memberships of a live cloud, without servers."""
    aggregates = cloud.aggregates()
    return State(
        state.aggregates_of(aggregates),
        _hosts(cloud.nova, aggregates, cloud.roots()),
    )


def look(
    cloud: LiveCloud,
    conf: cfg.ConfigOpts,
) -> State:
    """Return the state of a live cloud, for a ledger file."""
    result = live_state(cloud)
    keys = Keys(
        conf,
        [each.aggregate(u) for u, each in result.aggregates.items()],
        images_of(cloud),
    )
    hidden = out_of_reach(cloud.nova.direct, cloud.nova.for_servers)
    if hidden:
        # They would seem to be deleted.
        raise exception.ServiceError(
            'Nova',
            cloud.nova.direct.endpoint,
            f'does not show {counted(len(hidden), "server")} of cells that '
            'are down.',
        )
    for past in nova_past.living(cloud.nova):
        server = past.server
        if server.host is None:
            continue
        names = keys.of(server, server.flavor)
        result.servers[server.id] = Placement(
            server.host,
            server.project_id,
            server.flavor.name if server.flavor else None,
            server.flavor.vcpus if server.flavor else None,
            None if names is None else tuple(sorted(names)),
            past.launched,
        )
    return result


def _hosts(
    nova: NovaClient,
    aggregates: Iterable[Aggregate],
    roots: Iterable[Provider],
) -> dict[str, HostState]:
    required = frozenset().union(*map(tags.required_traits, aggregates))
    traits: dict[str, frozenset[str]] = {}
    for root in roots:
        if root.host:
            traits[root.host] = root.traits & required | traits.get(
                root.host, frozenset()
            )
    sizes = {each.host: each for each in nova_past.processors(nova)}
    return {
        host: HostState(
            sizes[host].sockets if host in sizes else None,
            sizes[host].cores if host in sizes else None,
            tuple(sorted(traits.get(host, ()))),
        )
        for host in sorted(traits.keys() | sizes.keys())
    }


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, _TOGETHER)):
        yield batch
