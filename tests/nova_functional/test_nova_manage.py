# SPDX-License-Identifier: Apache-2.0
"""What nova-manage does to servers in slots of reservations."""

import contextlib
import io

from base import host_of
from nova.cmd import manage
import pytest
from reservation_cloud import ReservationTest


def healed(**options):
    """Run ``nova-manage placement heal_allocations``."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = manage.PlacementCommands().heal_allocations(
            verbose=True, **options
        )
    return code, out.getvalue()


@pytest.mark.slow
class HealTest(ReservationTest):
    """``nova-manage placement heal_allocations`` beside slots."""

    def setUp(self):
        super().setUp()
        self.reservation = self.reserve('--amount', '1')
        self.server = self.boot(self.reservation)
        self.number = self.server['id']
        self.right = self.with_slot(host_of(self.server), self.reservation)
        assert self.allocation(self.number) == self.right

    def test_it_leaves_a_server_that_has_all_of_its_allocations(self):
        code, out = healed()
        assert (code, 'Nothing to be healed' in out) == (4, True)
        assert self.allocation(self.number) == self.right

    def test_with_force_it_is_refused_as_slots_are_on_a_child(self):
        code, out = healed(force=True, instance_uuid=self.number)
        assert (code, 'Failed to update allocations' in out) == (3, True)
        assert self.allocation(self.number) == self.right

    def test_it_stops_at_a_server_without_allocations(self):
        self.placement.delete(f'/allocations/{self.number}')
        ordinary = self.boot(self.flavor())['id']
        kept = self.allocation(ordinary)
        self.placement.delete(f'/allocations/{ordinary}')
        for _ in range(2):
            code, out = healed()
            assert (code, 'Failed to update allocations' in out) == (3, True)
            assert self.allocation(self.number) == {}
        # One after it, in the order of Nova, is not healed.
        assert self.allocation(ordinary) == {}
        assert healed(instance_uuid=ordinary)[0] == 0
        assert self.allocation(ordinary) == kept
