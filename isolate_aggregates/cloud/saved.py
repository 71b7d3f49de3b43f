# SPDX-License-Identifier: Apache-2.0
"""A saved cloud: a snapshot that is asked instead of a live cloud."""

from collections.abc import Iterable, Mapping
import contextlib
import functools

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud import load
from isolate_aggregates.cloud.servers import Port, Server
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.cloud.survey import Survey
from isolate_aggregates.cloud.track import Track, untracked
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.provider import Provider, trees
from isolate_aggregates.placement.providers import Below
from isolate_aggregates.query_limit import Members, SnapshotMembers
from isolate_aggregates.request.spec import ResourceGroup

# So many resource providers are put into a Placement within about ten seconds.
_FEW = 200


class SnapshotCloud:
    """A :class:`~isolate_aggregates.cloud.cloud.Cloud` that never changes.

    A real Placement is made from the snapshot when it is asked.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._exit = contextlib.ExitStack()
        self.index = snapshot.index
        self.flavors = snapshot.flavors
        self.images = snapshot.images
        self.flavor = snapshot.flavor
        self.image = snapshot.image
        self.requested_host = snapshot.requested_host

    @functools.cached_property
    def placement(self) -> PlacementClient:
        """An embedded Placement that holds the snapshot.

        :raises EmbeddedPlacementUnavailable: if it cannot run.
        :raises CloudFileError: if it does not take the snapshot.
        """
        # It is asked with keystoneauth, which takes long to import.
        from isolate_aggregates.placement.embedded import EmbeddedPlacement

        placement = self._exit.enter_context(EmbeddedPlacement())
        load.into_placement(self.snapshot, placement)
        return placement

    @property
    def placement_at_hand(self) -> bool:
        """Whether Placement has the snapshot, or takes it within seconds."""
        few = len(self.snapshot.providers) <= _FEW
        return few or 'placement' in vars(self)

    @property
    def provider_names(self) -> Mapping[str, str]:
        """Names of all resource providers, by uuid."""
        return {p.uuid: p.name for p in self.snapshot.providers}

    @functools.cached_property
    def compute_nodes(self) -> Mapping[str, str]:
        """Names of the compute services, by uuid of their compute nodes."""
        return {p.uuid: p.host for p in self.snapshot.providers if p.host}

    def aggregates(self) -> tuple[Aggregate, ...]:
        """Return all host aggregates."""
        return self.snapshot.aggregates

    def roots(self, track: Track = untracked) -> tuple[Provider, ...]:
        """Return the root resource providers."""
        return tuple(p for p in self.snapshot.providers if p.parent is None)

    def traits(self) -> frozenset[str]:
        """Return all traits that the snapshot tells of."""
        return self.snapshot.traits.union(
            os_traits.get_traits(),
            *(p.traits for p in self.snapshot.providers),
        )

    def holders_below(self, traits: Iterable[str]) -> Below:
        """Return which providers below a root have some traits."""
        wanted = frozenset(traits)
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for root, tree in trees(self.snapshot.providers).items():
            for provider in tree[1:]:
                for trait in wanted & provider.traits:
                    held = found.setdefault(root, {})
                    held[trait] = (*held.get(trait, ()), provider.name)
        return found

    def survey(
        self, servers: bool = False, track: Track = untracked
    ) -> Survey:
        """Return all that there is to know: the snapshot."""
        return Survey(self.snapshot)

    def members(self, max_length: int) -> Members:
        """Return who is a member of what; nothing has to be asked."""
        return SnapshotMembers(self.snapshot.providers)

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id as it is: a snapshot has no projects."""
        return name

    # A file says in its settings which Nova it was.
    nova_releases = ()

    @property
    def owned_nodes(self) -> tuple[int, int]:
        """How many compute nodes have OWNER_NOVA, and how many have not."""
        nodes = [p for p in self.snapshot.providers if p.host]
        owned = sum('OWNER_NOVA' in node.traits for node in nodes)
        return owned, len(nodes) - owned

    def ports(self, server_id: str) -> tuple[Port, ...]:
        """Refuse: a snapshot has no servers.

        :raises NotFound: always.
        """
        raise exception.NotFound('server', server_id, self.snapshot.origin)

    def segment_aggregates(self, port: Port) -> tuple[frozenset[str], ...]:
        """Refuse: a snapshot has no networks.

        :raises NotFound: always.
        """
        raise exception.NotFound('port', port.id, self.snapshot.origin)

    def device_groups(
        self, profile: str, owner: str = ''
    ) -> tuple[ResourceGroup, ...]:
        """Refuse: a snapshot has no device profiles.

        :raises NotFound: always.
        """
        raise exception.NotFound(
            'device profile', profile, self.snapshot.origin
        )

    def server(self, server_id: str) -> Server:
        """Refuse: a snapshot has no servers.

        :raises NotFound: always.
        """
        raise exception.NotFound('server', server_id, self.snapshot.origin)

    def close(self) -> None:
        """Stop the embedded Placement."""
        self._exit.close()
