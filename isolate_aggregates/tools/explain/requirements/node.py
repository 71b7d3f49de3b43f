# SPDX-License-Identifier: Apache-2.0
"""Requirements that are not part of a query, but of its way through Nova."""

import dataclasses

from isolate_aggregates.tools import taken
from isolate_aggregates.tools.explain.host import HostProviders
from isolate_aggregates.tools.explain.requirements.requirement import (
    Requirement,
)
from isolate_aggregates.tools.placement.group import ResourceRequest


@dataclasses.dataclass(frozen=True)
class FromNode(Requirement):
    """An allocation from the compute node itself, which Nova relies on.

    Nova looks up allocation candidates by compute node. It skips a host if all
    resources come from child providers or sharing providers.
    """

    kind = 'compute-node'

    @property
    def label(self) -> str:
        return 'Nova: takes something from the compute node itself'

    def add_to(self, request: ResourceRequest) -> None:
        """Do nothing: Placement does not know this requirement."""

    def reason(self, host: HostProviders) -> str:
        return taken.SKIPPED


@dataclasses.dataclass(frozen=True)
class Accepted(Requirement):
    """A query that Placement does not reject as invalid."""

    kind = 'accepted-query'

    @property
    def label(self) -> str:
        return 'Placement accepts the query'

    def add_to(self, request: ResourceRequest) -> None:
        """Do nothing: it is about the query as a whole."""

    def reason(self, host: HostProviders) -> str:
        return 'Placement rejects the query'
