# SPDX-License-Identifier: Apache-2.0
"""The data of a cloud that an audit needs."""

import dataclasses

from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.compute.servers import Servers


@dataclasses.dataclass(frozen=True)
class Survey:
    """A snapshot with further data that is not in cloud files.

    :param nova: Nova's newest microversion; None if unknown.
    :param placement: Placement's newest microversion; None if unknown.
    :param traits: All traits in Placement; None if only the standard traits
        and those that a provider has are known.
    :param resource_classes: The names of all resource classes; None if only
        those that a provider has are known.
    :param nova_releases: The possible releases of Nova, oldest first; empty if
        unknown.
    """

    snapshot: Snapshot
    nova: str | None = None
    placement: str | None = None
    traits: frozenset[str] | None = None
    resource_classes: frozenset[str] | None = None
    servers: Servers | None = None
    nova_releases: tuple[int, ...] = ()
