# SPDX-License-Identifier: Apache-2.0
"""Groups servers into kinds: those that may use the same hosts alike.

Which hosts a server may use is decided by the request filters and the
Placement simulator, as for a new server with its request.
"""

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses

from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.answers import deciding
from isolate_aggregates_tools.answers.deciding import Question
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.answers.requests import Likeness, Requests
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import (
    Server,
    ServerGroup,
    may_have_shares,
)
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.mirrored.host_filters import ENABLED
from isolate_aggregates_tools.mirrored.nova_api import moves
from isolate_aggregates_tools.mirrored.nova_api.moves import MoveKind
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import Request, constraints
from isolate_aggregates_tools.server_images import ServerImages
from isolate_aggregates_tools.simulator.index import ProviderIndex

# Hints that name other servers, and the host filters that obey them.
_PAIRED = {
    'same_host': 'SameHostFilter',
    'different_host': 'DifferentHostFilter',
    'query': 'JsonFilter',
}
# Extra specs and image properties that tie a server to parts of a host which
# Placement does not count.
_PINNING = ('cpu_policy', 'numa_nodes', 'mem_page_size', 'cpu_thread_policy')


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """Servers for which the same hosts will do, with equal amounts.

    :param hosts: The hosts that they may use, if there is room.
    :param demands: What a server takes from its host, by resource class, for
        each query to Placement, of which a host needs one.
    :param refusal: Why no host may be used; empty if one may.
    :param cell: The cell that they cannot leave; empty if it does not matter.
    """

    hosts: frozenset[str]
    demands: tuple[Mapping[str, int], ...]
    refusal: str = ''
    cell: str = ''
    _queries: Callable[[], tuple[ResourceRequest, ...]] = tuple

    @lazy_property
    def amounts(self) -> Mapping[str, int]:
        """What a server takes from its host, as far as all queries agree."""
        first, *others = self.demands or ({},)
        return {
            name: amount
            for name, amount in first.items()
            if all(other.get(name) == amount for other in others)
        }

    @lazy_property
    def queries(self) -> tuple[ResourceRequest, ...]:
        """The queries to Placement, for hosts that are not counted."""
        return self._queries()


class Alike:
    """Servers that are moved alike, but for their server groups.

    :param one: One of them.
    """

    def __init__(self, one: Server, kinds: 'Kinds') -> None:
        self._one = one
        self._kinds = kinds
        # Empty if their cell is down.
        self.flavor = one.flavor.name if one.flavor else ''

    @lazy_property
    def kind(self) -> Kind:
        """Their kind."""
        return self._kinds.of_server(self._one)

    @lazy_property
    def refusal(self) -> str:
        """Why Nova does not evacuate them; empty if it does."""
        return self._kinds.refusal(MoveKind.EVACUATE, self._one)

    @lazy_property
    def unmodelled(self) -> tuple[str, ...]:
        """What of them is not counted here, in words."""
        return self._kinds.unmodelled(self._one)


class Kinds:
    """The kinds of the servers of a cloud.

    :param snapshot: The cloud, with its servers.
    :param releases: The possible releases of its Nova; empty if unknown.
    :param spares: Disabled hosts that count as enabled.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        conf: cfg.ConfigOpts,
        releases: Sequence[int] = (),
        spares: frozenset[str] = frozenset(),
    ) -> None:
        if spares:
            snapshot = changes.enabled_services(spares)(snapshot)
        self._snapshot = snapshot
        self._pipeline = chain.as_in_nova(conf)
        cloud = SnapshotCloud(snapshot)
        self.requests = Requests(cloud, conf, releases)
        self._images = ServerImages(cloud.image)
        self._filters = frozenset(conf[ENABLED[0]][ENABLED[1]] or ())
        self._likeness = Likeness()
        self._of_likeness: dict[Hashable, Kind] = {}
        self._in_cells: dict[tuple[Kind, str], Kind] = {}
        self._alike: dict[Hashable, Alike] = {}
        self._of_questions: dict[Hashable, Kind] = {}

    @lazy_property
    def groups(self) -> Mapping[str, ServerGroup]:
        """The group of each server that is in one, by its id."""
        return {
            member: group
            for group in self._snapshot.known_servers.groups or ()
            for member in group.members
        }

    @property
    def not_known(self) -> Iterator[str]:
        """What is not known of the servers, and may matter."""
        servers = self._snapshot.known_servers
        if servers.groups is None:
            yield 'which servers are in server groups'
        if self._snapshot.services is None:
            yield 'which compute services are down'
        if self.shares_unknown(servers.placed):
            yield 'which servers have shares of Manila'
        if self._cells_matter(servers.placed):
            yield 'which hosts are in which cells, which servers do not leave'

    def _cells_matter(self, servers: Iterable[Server]) -> bool:
        """Return whether a server could move, if the cell is the same."""
        hosts = {p.host for p in self._snapshot.providers if p.host}
        unknown = hosts - self._snapshot.cells.keys()
        if not unknown:
            return False
        seen = set()
        for server in servers:
            if not server.host or not server.flavor:
                continue
            try:
                kind = self.of_server(server)
            except errors.InvalidRequest:
                continue
            if server.host in unknown:
                # Whichever other host there is.
                if len(kind.hosts) > (server.host in kind.hosts):
                    return True
            elif kind not in seen:
                seen.add(kind)
                if not unknown.isdisjoint(kind.hosts):
                    return True
        return False

    @property
    def index(self) -> ProviderIndex:
        """The providers of the cloud."""
        return self._offers.index

    @lazy_property
    def _offers(self) -> Offers:
        return Offers(self._snapshot)

    def of_server(self, server: Server) -> Kind:
        """Return the kind of a server.

        :raises InvalidRequest: if its flavor is unknown.
        """
        key = self._likeness.key(server, server.flavor)
        if key not in self._of_likeness:
            self._of_likeness[key] = self.of_request(self.requests.of(server))
        kind, cell = self._of_likeness[key], self._cell(server)
        if (kind, cell) not in self._in_cells:
            self._in_cells[kind, cell] = self._within(kind, cell)
        return self._in_cells[kind, cell]

    def _cell(self, server: Server) -> str:
        """Return the cell of a server; empty if unknown."""
        return self._snapshot.cells.get(server.host or '', '')

    def _within(self, kind: Kind, cell: str) -> Kind:
        """Return the kind of servers that cannot leave their cell.

        Nova restricts live migrations and evacuations to the cell, and by
        default cold migrations, too (``compute:servers:resize:cross_cell``).
        """
        others = {
            host
            for host in kind.hosts
            if cell and self._snapshot.cells.get(host, cell) != cell
        }
        if not others:
            return kind
        return dataclasses.replace(kind, hosts=kind.hosts - others, cell=cell)

    def alike(self, server: Server) -> Alike:
        """Return the servers that are moved like one."""
        key = (
            self._likeness.key(server, server.flavor),
            self._cell(server),
            server.status,
            server.has_shares,
            any(port.accelerator for port in server.ports)
            if server.ports
            else False,
        )
        if key not in self._alike:
            self._alike[key] = Alike(server, self)
        return self._alike[key]

    def of_request(self, request: Request) -> Kind:
        """Return the kind of servers with a request."""
        with deciding.silent():
            try:
                question = deciding.asked(
                    request, self._snapshot.index, self._pipeline
                )
            except (
                exception.BadQuery,
                errors.InvalidRequest,
                exception.RequestRefused,
            ) as exc:
                return Kind(frozenset(), (), str(exc).rstrip('.'))
        key = (
            self._offers.key(question.queries),
            tuple(map(id, constraints.objections(question.destination))),
        )
        if key not in self._of_questions:
            self._of_questions[key] = self._kind(question)
        return self._of_questions[key]

    def _kind(self, question: Question) -> Kind:
        return Kind(
            self._offers.hosts(question),
            tuple(query.merged_resources() for query in question.queries),
            _queries=lambda: tuple(
                dataclasses.replace(self._offers.relevant(query), limit=None)
                for query in question.queries
            ),
        )

    def unmodelled(self, server: Server) -> tuple[str, ...]:
        """Return what of a server is not counted here, in words.

        The options of ``relocation create`` name the same.
        """
        flavor = server.flavor or Flavor('')
        specs = flavor.extra_specs
        properties = self._images.of(server).image.properties
        facts = {
            'pinned CPUs': any(
                f'hw:{name}' in specs or f'hw_{name}' in properties
                for name in _PINNING
            ),
            'devices': any(
                key.startswith(('pci_passthrough:', 'accel:')) for key in specs
            )
            or any(
                port.device_profile or port.remote_managed
                for port in server.ports or ()
            ),
        }
        return tuple(name for name, is_so in facts.items() if is_so)

    def refusal(self, action: MoveKind, server: Server) -> str:
        """Return why Nova refuses to move a server; empty if it does not.

        Before an evacuation, its host has failed.
        """
        return next(
            moves.refusals(
                action,
                server,
                self._images.of(server).image.properties,
                self.requests.releases,
                action is not MoveKind.EVACUATE
                and server.host not in self._snapshot.down_hosts,
            ),
            '',
        )

    def shares_unknown(self, servers: Iterable[Server]) -> bool:
        """Return whether some of the servers may have shares of Manila."""
        return any(
            server.has_shares is None
            and may_have_shares(server, self._traits.get(server.host, ()))
            for server in servers
        )

    @lazy_property
    def _traits(self) -> Mapping[str | None, frozenset[str]]:
        return {
            provider.host: provider.traits
            for provider in self._snapshot.providers
            if provider.host
        }

    def tied(self, server: Server) -> str:
        """Return the hint that ties a server to others; empty if none."""
        return next(
            (
                f'its scheduler hint {hint} names other servers'
                for hint, name in _PAIRED.items()
                if name in self._filters and hint in server.scheduler_hints
            ),
            '',
        )


def by_host(servers: Iterable[Server]) -> dict[str, list[Server]]:
    """Return the servers that have a host, by its name."""
    hosts: dict[str, list[Server]] = {}
    for server in servers:
        if server.host:
            hosts.setdefault(server.host, []).append(server)
    return hosts
