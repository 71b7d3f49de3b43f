# SPDX-License-Identifier: Apache-2.0
"""A client of a mocked Placement."""

from http_fakes import PLACEMENT, client

from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.testing import PlacementFixture, make_snapshot


def placement_with(http, *providers):
    """Return a client of a mocked Placement with some providers."""
    snapshot = make_snapshot([], providers)
    PlacementFixture(snapshot, url=PLACEMENT, http=http).start()
    return PlacementClient(client(PLACEMENT))
