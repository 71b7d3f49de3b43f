# SPDX-License-Identifier: Apache-2.0
"""Send a request that names a host to the provider tree of that host.

The ``in_tree`` parameter makes Placement look at one tree only, so that its
limit can not drop the wanted host; see the spec `Filter Allocation Candidates
by Provider Tree
<https://docs.openstack.org/placement/latest/specs/train/implemented/2005575-alloc-candidates-in-tree.html>`_.
"""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.destination import Constraint, InTree, Refuse
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class RequestedHostFilter:
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
            yield Refuse(f'there is no compute host named {host.name}')
        elif len(host.providers) > 1:
            # Placement takes one in_tree only.
            yield Refuse(
                f'host {host.name} has {len(host.providers)} compute nodes; '
                'request one of them by its node name'
            )
        else:
            yield InTree(host.providers[0], f'host {host.name} was requested')
