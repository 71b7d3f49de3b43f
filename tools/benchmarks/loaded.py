# SPDX-License-Identifier: Apache-2.0
"""A large cloud in a real Placement, loaded directly into its tables."""

import uuid

import placement_rows

from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.client import PlacementClient


class LoadedCloud(SnapshotCloud):
    """A snapshot whose Placement is loaded row by row.

    :param snapshot: The snapshot.
    :param placement: The client of an embedded Placement that is running.
    """

    def __init__(self, snapshot: Snapshot, placement: PlacementClient) -> None:
        super().__init__(snapshot)
        placement_rows.load(snapshot.providers)
        self.placement = placement


def identity(*parts: object) -> str:
    """Return a uuid that is derived from the arguments."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, repr(parts)))
