# SPDX-License-Identifier: Apache-2.0
"""Blazar plugin for flavor-based reservations, kept in Placement.

It replaces Blazar's plugin of the same resource type, and uses our instance
plugin instead of Blazar's.
"""

from typing import Any

from blazar.plugins.flavor import flavor_plugin
from blazar.plugins.oshosts import host_plugin
from blazar.utils.openstack import placement

from isolate_aggregates_reservations.blazar.instance_plugin import (
    PlacementInstancePlugin,
)
from isolate_aggregates_reservations.blazar.planning import CHOOSING


class PlacementFlavorPlugin(flavor_plugin.FlavorPlugin):
    title = 'Plugin for Nova flavor-based server reservations with Placement'

    def __init__(self) -> None:
        # Do not call the parent's __init__: it creates an instance plugin of
        # Blazar, and each one takes part in healing all reservations.
        self._placement_client = placement.BlazarPlacementClient()
        self._host_plugin = host_plugin.PhysicalHostPlugin()
        self._instance_plugin = PlacementInstancePlugin()
        self.monitor = self._instance_plugin.monitor

    def reserve_resource(
        self, reservation_id: str, values: dict[str, Any]
    ) -> Any:
        with CHOOSING:
            resource = super().reserve_resource(reservation_id, values)
        self._instance_plugin.create(reservation_id)
        return resource

    def update_reservation(
        self, reservation_id: str, values: dict[str, Any]
    ) -> None:
        """Check whether a lease can change, and record its end."""
        with self._instance_plugin.agreeing(reservation_id, values):
            super().update_reservation(reservation_id, values)

    def _create_resources(self, instance_reservation: Any) -> tuple[Any, Any]:
        flavor, _, aggregate = self._instance_plugin._create_resources(
            instance_reservation
        )
        return flavor.id, aggregate.id
