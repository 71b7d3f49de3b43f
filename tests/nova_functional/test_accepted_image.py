# SPDX-License-Identifier: Apache-2.0
"""A server is evaluated with the image properties that it was created with."""

from base import IMAGE, ISOLATE, RESERVATIONS, CloudTest, host_of
from nova import exception as nova_exception
from nova.compute import instance_actions
from nova.tests import fixtures as nova_fixtures
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates.nova import manage, registration

LEASE = 'reservation:4d17d41a'
OWNER, STRANGER = 'a' * 32, 'b' * 32
LICENSED = 'CUSTOM_LICENSED_WINDOWS'


class ImageCloudTest(CloudTest):
    """host1 is reserved, and the host that Nova likes best."""

    REQUEST_FILTERS = ('isolate_aggregates', 'reservation_prefix')
    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        (ia_conf.GROUP, 'reservation_key_sources', ['image']),
    )

    def setUp(self):
        super().setUp()
        self.lease = self.aggregate(
            'lease', ['host1'], {LEASE: 'true', 'blazar:owner': OWNER}
        )

    def write(self, image, properties):
        """Let a tenant change the properties of an image."""
        self.glance.images[image]['properties'] = properties
        self.restart_scheduler()

    def move(self, server):
        """Move a server in every way there is, without a change of keys."""
        server = self._confirm_resize(self._migrate_server(server))
        server = self._confirm_resize(
            self._resize_server(server, self.flavor())
        )
        server = self._live_migrate(server)
        server = self._unshelve_server(self._shelve_server(server))
        return self.evacuate(server)

    def evacuate(self, server):
        host = host_of(server)
        self.computes[host].stop()
        [service] = self.admin_api.get_services('nova-compute', host)
        self.admin_api.put_service_force_down(service['id'], True)
        return self._evacuate_server(server, expected_state='SHUTOFF')


class ReservedImageTest(ImageCloudTest):
    """The properties for reservations in a tenant's image."""

    @pytest.mark.slow
    def test_a_key_added_to_an_image_later_blocks_no_move(self):
        image = self.image({})
        server = self.boot(self.flavor(), image=image, project=STRANGER)
        assert host_of(server) == 'host2'
        self.write(image, {LEASE: 'true', 'reservation:none': '1'})

        assert host_of(self.move(server)) in ('host2', 'host3')

        # Who boots from it now is refused.
        assert 'no aggregate has' in self.refusal_of(
            self.flavor(), image=image, project=STRANGER
        )

    def test_a_server_of_a_deleted_image_keeps_its_reservation(self):
        self.admin_api.add_host_to_aggregate(self.lease, 'host2')
        image = self.image({LEASE: 'true'})
        server = self.boot(self.flavor(), image=image, project=OWNER)
        assert host_of(server) == 'host1'
        self.glance.delete(None, image)
        self.restart_scheduler()

        server = self._migrate_server(server)
        assert host_of(server) == 'host2'

    @pytest.mark.slow
    def test_a_rebuild_into_an_image_with_a_foreign_key_is_refused(self):
        server = self.boot(self.flavor(), project=STRANGER)
        for key in (LEASE, 'reservation:none'):
            server = self.rebuild_refused(server, self.image({key: '1'}))
            assert server['image']['id'] == IMAGE
            assert host_of(server) == 'host2'

        # Nova's records say now what the refused image says. It opens
        # nothing, and it keeps nobody from moving the server.
        assert host_of(self.move(server)) in ('host2', 'host3')

    def test_an_owner_may_rebuild_where_only_users_may_read_images(self):
        show = self.glance.show

        def for_users(context, image_id):
            if not context.project_id:
                raise nova_exception.ImageNotAuthorized(image_id=image_id)
            return show(context, image_id)

        mine, newer = (self.image({LEASE: '1'}) for _ in range(2))
        self.stub_out(
            'nova.image.glance.API.get',
            lambda api, context, image, **kwargs: for_users(context, image),
        )
        server = self.boot(self.flavor(), image=mine, project=OWNER)
        assert host_of(server) == 'host1'

        self.user(OWNER).post_server_action(
            server['id'], {'rebuild': {'imageRef': newer}}
        )

        server = self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )
        assert server['image']['id'] == newer


class RefusedTraitTest(ImageCloudTest):
    """Traits of an image that a server was refused."""

    def test_an_image_that_was_refused_opens_nothing(self):
        self.give_trait('host1', LICENSED)
        self.tag(self.lease, {f'trait:{LICENSED}': 'required', LEASE: None})
        licensed = self.image({f'trait:{LICENSED}': 'required'})
        server = self.boot(self.flavor())
        assert host_of(server) == 'host2'

        server = self.rebuild_refused(server, licensed)
        # Nor is a host with its trait required.
        assert host_of(self._migrate_server(server)) == 'host3'

        # A server that was accepted with it moves as ever.
        self.tag(self.lease, {f'trait:{LICENSED}': None})
        server = self.boot(self.flavor(), image=licensed)
        assert host_of(server) == 'host1'
        self.give_trait('host3', LICENSED)
        licensed_too = self.aggregate(
            'licensed', ['host1', 'host3'], {f'trait:{LICENSED}': 'required'}
        )
        assert licensed_too
        assert host_of(self._migrate_server(server)) == 'host3'

    def test_nor_does_it_for_a_server_on_a_volume_without_image(self):
        cinder = self.useFixture(nova_fixtures.CinderFixture(self))
        lock = {f'trait:{LICENSED}': 'required'}
        self.tag(self.lease, {**lock, LEASE: None})
        self.give_trait('host1', LICENSED)
        asked = self._build_server(
            image_uuid='', flavor_id=self.flavor(), networks='none'
        )
        asked['block_device_mapping_v2'] = [
            {
                'uuid': cinder.SWAP_OLD_VOL,
                'source_type': 'volume',
                'destination_type': 'volume',
                'boot_index': 0,
            }
        ]
        user = self.user(nova_fixtures.PROJECT_ID)
        server = user.post_server({'server': asked})
        server = self._wait_for_state_change(server, 'ACTIVE')
        assert host_of(server) == 'host2'

        server = self.rebuild_refused(server, self.image(lock))
        assert host_of(self._migrate_server(server)) == 'host3'


class License(RequestFilter):
    """Keeps servers with a license out of aggregates without one."""

    IMAGE_PROPERTIES = ('license:*',)

    def __init__(self):
        self.seen = []

    def __call__(self, request, aggregates):
        self.seen.append(dict(request.image_properties))
        if 'license:oracle' in request.image_properties:
            unlicensed = tuple(a for a in aggregates if a.name == 'free')
            yield Forbid(unlicensed, 'there is no license')


class NeededTest(ImageCloudTest):
    """A property that keeps a server from hosts."""

    def setUp(self):
        super().setUp()
        self.license = License()
        self.install()
        self.aggregate('free', ['host2'])

    def install(self):
        runner = registration.installed()
        runner.filters = (LoadedFilter('license', self.license),)
        runner._pipelines.clear()

    @pytest.mark.slow
    def test_a_server_of_a_deleted_image_stays_on_licensed_hosts(self):
        image = self.image({'license:oracle': 'true'})
        server = self.boot(self.flavor(), image=image)
        assert host_of(server) == 'host1'
        self.glance.delete(None, image)
        self.restart_scheduler()
        self.install()

        server = self._confirm_resize(self._migrate_server(server))
        assert host_of(server) == 'host3'
        server = self._live_migrate(server)
        assert host_of(server) == 'host1'
        assert all(
            seen == {'license:oracle': 'true'} for seen in self.license.seen
        )

    def test_a_trait_removed_from_an_image_later_still_counts(self):
        image = self.image({'license:oracle': 'true'})
        server = self.boot(self.flavor(), image=image)
        self.write(image, {})
        self.install()
        server = self._confirm_resize(self._migrate_server(server))
        assert host_of(server) == 'host3'
        assert host_of(self.evacuate(server)) == 'host1'

    def test_a_server_without_a_record_is_not_moved_after_a_refusal(self):
        """It was placed before this package was installed."""
        server = self.boot(self.flavor())
        assert manage.forget().done == 1
        self.give_trait('host3', LICENSED)
        server = self.rebuild_refused(
            server, self.image({f'trait:{LICENSED}': 'required'})
        )
        assert manage.record().unknown == [server['id']]
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        self._assert_resize_migrate_action_fail(
            server, instance_actions.MIGRATE, 'NoValidHost'
        )

        # After a rebuild from another image it has one, as the log says.
        self.user(server['tenant_id']).post_server_action(
            server['id'], {'rebuild': {'imageRef': self.image({})}}
        )
        server = self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )
        assert host_of(self._migrate_server(server)) == 'host2'
