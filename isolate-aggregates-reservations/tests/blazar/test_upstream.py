# SPDX-License-Identifier: Apache-2.0
"""Runs Blazar's own plugin tests with our plugins.

They ship with Blazar and define the behaviour of its plugins. Ours delegate
reservations with aggregates and server groups, so these tests apply too.
"""

import ast
import dataclasses
import pathlib
import types
from unittest import mock

from blazar.db import api as db_api
from blazar.plugins.flavor import flavor_plugin
from blazar.plugins.instances import instance_plugin
from blazar.tests.plugins.flavor import test_flavor_plugin as upstream_flavor
from blazar.tests.plugins.instances import test_instance_plugin as upstream
import pytest

from isolate_aggregates_reservations.blazar.flavor_plugin import (
    PlacementFlavorPlugin,
)
from isolate_aggregates_reservations.blazar.instance_plugin import (
    PlacementInstancePlugin,
)


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """A test that cannot pass with our plugins.

    :param why: The reason.
    :param instead: Our test of the same, with a real blazar-manager, Nova and
        Placement, as pytest names it.
    """

    why: str
    instead: str


CALLS = (
    'it asserts the very calls to Nova and Placement that Blazar makes, for '
    'aggregates and server groups among them; ours makes others'
)
NO_DATABASE = (
    'it mocks the functions with which Blazar counts and has no database; '
    'ours reads the slots of all leases from the database'
)
READS = (
    'it asserts that the reservation is read exactly once; ours reads it '
    'again before it writes, as another blazar-manager may have ended it'
)
TIMES = 'it passes times as text; a blazar-manager passes datetimes'
LEASE = (
    'it has no lease, or one whose times are text; ours records the end of '
    'the lease'
)

INSTANCES = {
    'test_cleanup_resources_3_None': LeftOut(
        CALLS,
        'test_faults.py::test_a_lease_that_cannot_be_created_leaves_nothing',
    ),
    'test_create_resources': LeftOut(
        CALLS, 'test_life.py::test_a_lease_from_its_creation_to_its_end'
    ),
    'test_on_end': LeftOut(
        CALLS,
        'test_endings.py::'
        'test_a_server_that_is_slow_to_delete_does_not_block_other_leases',
    ),
    'test_filter_hosts_by_reservation_with_exclude': LeftOut(
        TIMES,
        'test_life.py::test_every_property_of_a_planned_lease_can_change',
    ),
    'test_pickup_host_from_free_and_reserved_host': LeftOut(
        NO_DATABASE, 'test_life.py::test_hosts_with_reservations_come_first'
    ),
    'test_pickup_host_from_less_hosts': LeftOut(
        NO_DATABASE, 'test_life.py::test_a_lease_that_does_not_fit_is_refused'
    ),
    'test_pickup_host_from_reserved_hosts': LeftOut(
        NO_DATABASE, 'test_life.py::test_each_slot_counts'
    ),
    'test_pickup_host_with_affinity': LeftOut(
        NO_DATABASE,
        'test_life.py::test_affinity_is_enforced_by_the_slots_of_each_host',
    ),
    'test_pickup_host_with_anti_affinity': LeftOut(
        NO_DATABASE,
        'test_life.py::test_affinity_is_enforced_by_the_slots_of_each_host',
    ),
    'test_reallocate_before_start': LeftOut(
        NO_DATABASE,
        'test_failed_hosts.py::test_a_lease_that_has_not_started_moves_as_well',
    ),
    'test_reallocate_before_start_affinity': LeftOut(
        NO_DATABASE,
        'test_failed_hosts.py::test_a_lease_that_has_not_started_moves_as_well',
    ),
    'test_reserve_resource': LeftOut(
        LEASE, 'test_life.py::test_a_lease_from_its_creation_to_its_end'
    ),
    'test_update_flavor_in_active': LeftOut(
        LEASE, 'test_life.py::test_an_active_lease_can_grow_and_be_extended'
    ),
    'test_update_reservation': LeftOut(
        LEASE,
        'test_life.py::test_every_property_of_a_planned_lease_can_change',
    ),
    'test_update_reservation_not_enough_hosts': LeftOut(
        LEASE,
        'test_lost_database.py::test_a_refused_extension_is_not_recorded',
    ),
    'test_update_resources': LeftOut(
        READS,
        'test_beside.py::test_old_reservations_change_with_the_old_plugin',
    ),
    'test_update_resources_in_active': LeftOut(
        READS,
        'test_beside.py::test_old_reservations_change_with_the_old_plugin',
    ),
}

FLAVORS = {
    'test_allocation_candidates_avoids_reservations': LeftOut(
        CALLS,
        'test_beside.py::test_flavor_and_instance_reservations_share_hosts',
    ),
    'test_create_resources': LeftOut(
        CALLS, 'test_beside.py::test_a_flavor_can_be_reserved'
    ),
    'test_reserve_resource': LeftOut(
        CALLS, 'test_beside.py::test_a_flavor_can_be_reserved'
    ),
    'test_update_reservation': LeftOut(
        LEASE,
        'test_lost_database.py::'
        'test_the_end_of_a_flavor_reservation_is_recorded',
    ),
    'test_update_reservation_cant_extend': LeftOut(
        LEASE,
        'test_lost_database.py::test_a_refused_extension_is_not_recorded',
    ),
}


def leaves_out(left_out):
    """Return a decorator of a class that skips some of its tests."""

    def decorate(made):
        for name, found in left_out.items():
            skip = pytest.mark.skip(reason=f'{found.why}; see {found.instead}')
            setattr(made, name, skip(getattr(made, name)))
        return made

    return decorate


@leaves_out(INSTANCES)
class InstancePluginTest(upstream.TestVirtualInstancePlugin):
    """Whatever Blazar's plugin promises, and ours does not change."""

    def setUp(self):
        super().setUp()
        ours = types.SimpleNamespace(**vars(instance_plugin))
        # A subclass, because these tests modify its attributes.
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


@leaves_out(FLAVORS)
class FlavorPluginTest(upstream_flavor.TestFlavorPlugin):
    """The same of the plugin for reservations like a flavor."""

    def setUp(self):
        super().setUp()
        ours = types.SimpleNamespace(**vars(flavor_plugin))
        ours.FlavorPlugin = type('Plugin', (PlacementFlavorPlugin,), {})
        patch = mock.patch.object(upstream_flavor, 'flavor_plugin', ours)
        patch.start()
        self.addCleanup(patch.stop)


@pytest.mark.parametrize(
    'instead',
    sorted({one.instead for one in [*INSTANCES.values(), *FLAVORS.values()]}),
)
def test_each_skipped_test_names_one_of_ours(instead):
    file, _, name = instead.partition('::')
    source = pathlib.Path(__file__).with_name(file).read_text()
    found = ast.parse(source).body
    assert name in [one.name for one in found if hasattr(one, 'name')]
