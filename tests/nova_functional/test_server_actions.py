# SPDX-License-Identifier: Apache-2.0
"""What is done to a server later does not get it past the isolation."""

from base import IMAGE, ISOLATE, OTHER_IMAGE, CloudTest, OverApi, host_of
from nova.compute import instance_actions

LICENSED = 'CUSTOM_LICENSED_WINDOWS'


class LicensedCloudTest(CloudTest):
    """A cloud whose best host, host1, is for licensed servers only."""

    OPTIONS = (ISOLATE,)

    def setUp(self):
        super().setUp()
        self.give_trait('host1', LICENSED)
        self.aggregate(
            'licensed', ['host1'], {f'trait:{LICENSED}': 'required'}
        )


class MoveTest(LicensedCloudTest):
    """Move operations; each moves to the other host that can be used."""

    HOSTS = ('host1', 'host2', 'host3')

    def test_no_move_leads_to_a_host_locked_for_the_server(self):
        server = self.boot(self.flavor())
        assert host_of(server) == 'host2'

        server = self._migrate_server(server)
        assert host_of(server) == 'host3'
        server = self._confirm_resize(server)

        server = self._resize_server(server, self.flavor())
        assert host_of(server) == 'host2'
        server = self._confirm_resize(server)

        server = self._live_migrate(server)
        assert host_of(server) == 'host3'

        server = self._shelve_server(server)
        assert host_of(server) is None
        server = self._unshelve_server(server)
        assert host_of(server) == 'host2'

        self.computes['host2'].stop()
        service = self.admin_api.get_services('nova-compute', 'host2')[0]
        self.admin_api.put_service_force_down(service['id'], True)
        server = self._evacuate_server(server)
        assert host_of(server) == 'host3'

        # With a key for it, host1 it is.
        server = self._start_server(server)
        licensed = self.flavor({f'trait:{LICENSED}': 'required'})
        server = self._resize_server(server, licensed)
        assert host_of(server) == 'host1'

    def test_a_move_to_a_locked_host_named_by_an_operator_is_refused(self):
        server = self.boot(self.flavor())

        live = {'host': 'host1', 'block_migration': 'auto'}
        self.api.post_server_action(server['id'], {'os-migrateLive': live})
        self._wait_for_migration_status(server, ['error'])
        self.api.post_server_action(
            server['id'], {'migrate': {'host': 'host1'}}
        )
        self._assert_resize_migrate_action_fail(
            server, instance_actions.MIGRATE, 'NoValidHost'
        )

        assert host_of(self._show_server(server)) == 'host2'


class RebuildTest(LicensedCloudTest):
    """nova-scheduler asks no request filter when a server is rebuilt."""

    def test_a_rebuild_into_an_unlicensed_image_is_refused(self):
        licensed, newer = (
            self.image({f'trait:{LICENSED}': 'required'}) for _ in range(2)
        )
        server = self.boot(self.flavor(), image=licensed)
        assert host_of(server) == 'host1'

        self.api.post_server_action(
            server['id'], {'rebuild': {'imageRef': IMAGE}}
        )
        # Nova reports this for a rebuild that no host may serve.
        server = self._wait_for_state_change(server, 'ERROR')
        assert server['fault']['message'].startswith('No valid host was found')
        assert server['image']['id'] == licensed
        assert host_of(server) == 'host1'

        server = self._rebuild_server(server, newer)
        assert server['image']['id'] == newer
        assert host_of(server) == 'host1'

        # A host without a lock is kept with any image.
        server = self.boot(self.flavor())
        server = self._rebuild_server(server, OTHER_IMAGE)
        assert server['image']['id'] == OTHER_IMAGE
        assert host_of(server) == 'host2'


class RebuildOverApiTest(OverApi, RebuildTest):
    """The same, with the aggregates and their hosts read from Nova's API."""
