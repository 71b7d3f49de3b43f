# SPDX-License-Identifier: Apache-2.0
"""A server keeps what it was placed with when it is resized to another cell.

Its instance, system metadata and actions are made anew there; only the request
spec, with the record, is in no cell.
"""

import types

from base import host_of
from nova.policies import base as base_policies
from nova.policies import servers as servers_policies
from nova.tests import fixtures as nova_fixtures
import pytest
import test_lives
from test_lives import LICENSE, MINE, LifeTest


class TwoCellsTest(LifeTest):
    """A server that was rebuilt twice, and its twin that never was.

    Each reserved host has a free one beside it in its cell, which any move
    would rather choose.
    """

    NUMBER_OF_CELLS = 2
    HOSTS = ('host5', 'host3', 'host4', 'host1', 'host2')
    CELLS = types.MappingProxyType({'host1': 'cell1', 'host3': 'cell1'})
    KEY = MINE

    def setUp(self):
        super().setUp()
        self.useFixture(nova_fixtures.CinderFixture(self))
        self.policy.set_rules(
            {servers_policies.CROSS_CELL_RESIZE: base_policies.RULE_ADMIN_API},
            overwrite=False,
        )
        self.flags(long_rpc_timeout=60)

    def _start_compute(self, host, cell_name=None):
        cell = cell_name or self.CELLS.get(host, 'cell2')
        return super()._start_compute(host, cell_name=cell)

    def cell_of(self, server):
        return self.CELLS.get(host_of(server), 'cell2')

    def migrate(self, server):
        return self.confirm(self._migrate_server(server), server)

    def resize(self, server):
        return self.confirm(self._resize_server(server, self.flavor()), server)

    def confirm(self, moved, server):
        has_crossed = self.cell_of(moved) != self.cell_of(server)
        return self._confirm_resize(moved, cross_cell=has_crossed)

    @pytest.mark.slow
    def test_it_stays_on_reserved_hosts(self):
        twin, _ = self.boot_from(self.KEY)
        server, _ = self.boot_from(self.KEY)
        newer = self.image({self.KEY: 'required'})
        server = self.rebuild(server, newer)
        self.write(newer)
        server = self.rebuild(server, newer)
        for move, host in (
            (self.resize, 'host2'),
            (self.shelve, 'host2'),
            (self.migrate, 'host1'),
            (self.resize, 'host2'),
        ):
            twin, server = map(move, (twin, server))
            assert [*map(host_of, (twin, server))] == [host] * 2, move.__name__


@pytest.mark.slow
class LicensedInTwoCellsTest(TwoCellsTest):
    """The same, with a trait instead of a key."""

    KEY = LICENSE
    lock = test_lives.OnLicensedHostsTest.lock
