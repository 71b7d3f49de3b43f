# SPDX-License-Identifier: Apache-2.0
"""A migration to be made."""

import dataclasses

from isolate_aggregates.tools.compute.servers import Server


@dataclasses.dataclass(frozen=True)
class Move:
    """A migration of a server.

    :param server: The server, as it was when the move was planned.
    :param source: Its compute service.
    :param target: The compute service that it shall have.
    :param live: Whether it is migrated live; otherwise cold, with a restart.
    """

    server: Server
    source: str
    target: str
    live: bool
