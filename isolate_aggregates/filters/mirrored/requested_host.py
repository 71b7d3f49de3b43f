# SPDX-License-Identifier: Apache-2.0
"""Send a request that names a host to the provider tree of that host.

The ``in_tree`` parameter makes Placement look at one tree only, so that its
limit cannot drop the wanted host; see the spec `Filter Allocation Candidates
by Provider Tree
<https://docs.openstack.org/placement/latest/specs/train/implemented/2005575-alloc-candidates-in-tree.html>`_.
"""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import InTree, Refuse
from isolate_aggregates.filters.destination import Constraint
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class Requested:
    """The cause: the request names a host.

    :param host: The name of the host.
    """

    host: str

    def __str__(self) -> str:
        return f'host {self.host} was requested'


@dataclasses.dataclass(frozen=True)
class UnknownHost:
    """The cause: the request names a host that there is not.

    :param host: The name as it was asked for.
    """

    host: str

    def __str__(self) -> str:
        return f'there is no compute host named {self.host}'


@dataclasses.dataclass(frozen=True)
class SeveralNodes:
    """The cause: the requested host has several compute nodes.

    :param host: The name of the host.
    :param nodes: How many it has.
    """

    host: str
    nodes: int

    def __str__(self) -> str:
        return (
            f'host {self.host} has {self.nodes} compute nodes; request one of '
            'them by its node name'
        )


@dataclasses.dataclass(frozen=True)
class RequestedHost:
    """Require the provider tree of the requested host."""

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield at most one constraint.

        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment; not looked at.
        """
        host = request.requested_host
        if host is None:
            return
        if not host.providers:
            yield Refuse(UnknownHost(host.name))
        elif len(host.providers) > 1:
            # Placement takes one in_tree only.
            yield Refuse(SeveralNodes(host.name, len(host.providers)))
        else:
            yield InTree(host.providers[0], Requested(host.name))
