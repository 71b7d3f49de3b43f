# SPDX-License-Identifier: Apache-2.0
"""Blazar's own tests of its instance plugin, run with ours.

They ship with Blazar and say what its plugin promises. What they say of
reservations with aggregates and server groups is true of ours too.
"""

import types
from unittest import mock

from blazar.db import api as db_api
from blazar.plugins.instances import instance_plugin
from blazar.tests.plugins.instances import test_instance_plugin as upstream
import pytest

from isolate_aggregates.reservations.blazar.instance_plugin import (
    PlacementInstancePlugin,
)

# Why some cannot pass, whatever ours does, and which tests of ours look at
# the same with a real blazar-manager, Nova and Placement.
CALLS = (
    'it wants certain calls to Nova and Placement, for aggregates among them, '
    'which are not made any more; test_life.py and test_endings.py look at '
    'what comes of the calls that are'
)
EVENTS = (
    'it puts its answers in the place of queries by which Blazar chose hosts; '
    'ours counts the slots of all leases in the database, where it has none; '
    'test_life.py chooses hosts beside real leases, also by affinity and with '
    'more slots than there are'
)
ROWS = (
    'it hands over a reservation that the database does not have; ours reads '
    'it again there; test_life.py changes, and test_failed_hosts.py moves, '
    'real ones before and after their start'
)

LEFT_OUT = {
    'test_cleanup_resources_3_None': CALLS,
    'test_create_resources': CALLS,
    'test_on_end': CALLS,
    'test_filter_hosts_by_reservation_with_exclude': EVENTS,
    'test_pickup_host_from_free_and_reserved_host': EVENTS,
    'test_pickup_host_from_less_hosts': EVENTS,
    'test_pickup_host_from_reserved_hosts': EVENTS,
    'test_pickup_host_with_affinity': EVENTS,
    'test_pickup_host_with_anti_affinity': EVENTS,
    'test_reallocate_active': ROWS,
    'test_reallocate_active_affinity': ROWS,
    'test_reallocate_before_start': ROWS,
    'test_reallocate_before_start_affinity': ROWS,
    'test_reallocate_missing_resources': ROWS,
    'test_reallocate_missing_resources_with_affinity': ROWS,
    'test_update_resources': ROWS,
    'test_update_resources_in_active': ROWS,
}


class InstancePluginTest(upstream.TestVirtualInstancePlugin):
    """Whatever Blazar's plugin promises, and ours does not change."""

    def setUp(self):
        super().setUp()
        ours = types.SimpleNamespace(**vars(instance_plugin))
        # A class of its own: these tests change its attributes.
        ours.VirtualInstancePlugin = type(
            'Plugin', (PlacementInstancePlugin,), {}
        )
        for patch in (
            mock.patch.object(upstream, 'instance_plugin', ours),
            # Hosts that Blazar knew before it asked Placement.
            mock.patch.object(
                db_api,
                'host_resource_inventory_get_all_per_host',
                return_value=[],
            ),
        ):
            patch.start()
            self.addCleanup(patch.stop)


for _name, _reason in LEFT_OUT.items():
    _test = getattr(upstream.TestVirtualInstancePlugin, _name)
    setattr(InstancePluginTest, _name, pytest.mark.skip(reason=_reason)(_test))
