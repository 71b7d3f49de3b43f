# SPDX-License-Identifier: Apache-2.0
"""What Nova does that few expect, as the page "Other tools" says."""

import contextlib
import io

from base import CloudTest, host_of
from nova.cmd import manage
from nova.tests import fixtures as nova_fixtures
import pytest


@pytest.mark.slow
class UnmappedHostTest(CloudTest):
    """``nova-manage cell_v2 delete_host`` of a host that runs."""

    def test_the_host_is_still_chosen_and_keeps_the_claim(self):
        provider = self._get_provider_uuid_by_host('host1')
        cell = self.cell_mappings['cell1'].uuid
        with contextlib.redirect_stdout(io.StringIO()):
            assert manage.CellV2Commands().delete_host(cell, 'host1') == 0
        server = self.boot(self.flavor(), status='ERROR')
        assert host_of(server) is None
        assert "Host 'host1' is not mapped to any cell" in self.told_of(server)
        claim = self.placement.get(
            f'/allocations/{server["id"]}', version='1.39'
        ).body['allocations']
        assert [*claim] == [provider]


@pytest.mark.slow
class ZoneTest(CloudTest):
    """Zones of servers that nothing holds them to."""

    def pinned_to(self, server):
        """Return the zone that a server is pinned to."""
        self.admin_api.microversion = '2.96'
        return self.admin_api.get_server(server['id'])[
            'pinned_availability_zone'
        ]

    def test_a_server_of_the_default_zone_is_pinned_but_moves_to_any(self):
        server = self.boot(self.flavor(), zone='nova')
        assert host_of(server) == 'host1'
        assert self.pinned_to(server) == 'nova'
        self.aggregate('west', ['host2'], zone='west')
        self._migrate_server(server)
        server = self._wait_for_state_change(server, 'VERIFY_RESIZE')
        assert host_of(server) == 'host2'
        assert self.pinned_to(server) == 'nova'

    def volume_server(self, volumes, status, zone=None):
        """Boot a server from a volume whose zone has to be its own."""
        self.flags(cross_az_attach=False, group='cinder')
        cinder = self.useFixture(nova_fixtures.CinderFixture(self, az=volumes))
        server = self._build_server(
            flavor_id=self.flavor(), networks='none', image_uuid='', az=zone
        )
        server['block_device_mapping_v2'] = [
            {
                'uuid': cinder.IMAGE_BACKED_VOL,
                'source_type': 'volume',
                'destination_type': 'volume',
                'boot_index': 0,
            }
        ]
        user = self.user(nova_fixtures.PROJECT_ID)
        made = user.post_server({'server': server})
        return self._wait_for_state_change(made, status)

    def test_the_zone_of_a_volume_is_that_of_the_server(self):
        self.aggregate('west', ['host2'], zone='west')
        self.aggregate('east', ['host1'], zone='east')
        server = self.volume_server('west', 'ACTIVE')
        assert host_of(server) == 'host2'
        assert self.pinned_to(server) == 'west'

    def test_a_volume_of_the_default_zone_keeps_no_server_off_a_zone(self):
        self.aggregate('east', ['host1'], zone='east')
        server = self.volume_server('nova', 'ERROR', zone='nova')
        assert self.pinned_to(server) == 'nova'
        assert 'nova-compute' in str(server['fault']) or server['fault']
        assert 'not in the same availability_zone' in self.log()
