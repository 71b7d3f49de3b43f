# SPDX-License-Identifier: Apache-2.0
"""All that there is to know of a cloud, for an audit."""

import dataclasses

from isolate_aggregates.cloud.servers import Servers
from isolate_aggregates.cloud.snapshot import Snapshot


@dataclasses.dataclass(frozen=True)
class Survey:
    """A cloud at one moment, with what no cloud file has.

    :param snapshot: Aggregates, resource providers, flavors and images.
    :param nova: The newest microversion of Nova; None if it is not known.
    :param placement: The newest microversion of Placement; None if it is not
        known.
    :param traits: All traits that Placement knows; None if only the standard
        ones and those that some provider has are known.
    :param resource_classes: Names of all resource classes; None if only those
        that some provider has are known.
    :param servers: The servers; None if they are not checked.
    :param nova_releases: The releases of Nova that it may be, oldest first;
        none if that is not known.
    """

    snapshot: Snapshot
    nova: str | None = None
    placement: str | None = None
    traits: frozenset[str] | None = None
    resource_classes: frozenset[str] | None = None
    servers: Servers | None = None
    nova_releases: tuple[int, ...] = ()
