# SPDX-License-Identifier: Apache-2.0
"""No write to an image pins a server, or lets it leave its reservation.

Each test is a row of a table: what happened to a server and its image, and the
hosts that it stays on, whatever is done to it then. The page on security has
the same table.
"""

import itertools
from unittest import mock

from base import ISOLATE, RESERVATIONS, CloudTest, host_of
from nova import exception as nova_exception
from nova.tests import fixtures as nova_fixtures
from nova.volume import cinder as cinder_api
import pytest

from isolate_aggregates import conf as ia_conf

MINE, FOREIGN = 'reservation:4d17d41a', 'reservation:77e1c0de'
OWNER, STRANGER = 'a' * 32, 'b' * 32
LICENSE = 'trait:CUSTOM_LICENSED_WINDOWS'
UNKNOWN = 'trait:CUSTOM_NOBODY_HAS_IT'

RESERVED = {'host1', 'host2'}
FREE = {'host3', 'host4'}


class LifeTest(CloudTest):
    """host1 and host2 are reserved, host5 is reserved for somebody else."""

    REQUEST_FILTERS = ('isolate_aggregates', 'reservation_prefix')
    HOSTS = ('host5', 'host1', 'host2', 'host3', 'host4')
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        (ia_conf.GROUP, 'reservation_key_sources', ['image']),
    )

    def setUp(self):
        super().setUp()
        self.lock()

    def lock(self):
        """Reserve the hosts."""
        self.aggregate('mine', RESERVED, {MINE: 'true', 'blazar:owner': OWNER})
        self.aggregate(
            'foreign', ['host5'], {FOREIGN: 'true', 'blazar:owner': STRANGER}
        )

    def boot_from(self, *properties, **request):
        """Boot from an image of the tenant; return the server and the id."""
        image = self.image(dict.fromkeys(properties, 'required'))
        request = {'project': OWNER, **request}
        return self.boot(self.flavor(), image=image, **request), image

    def write(self, image, *properties):
        """Let a tenant replace the properties of an image."""
        self.glance.images[image]['properties'] = dict.fromkeys(
            properties, 'required'
        )

    def rebuild(self, server, image):
        """Rebuild a server as its tenant does."""
        self.user(server['tenant_id']).post_server_action(
            server['id'], {'rebuild': {'imageRef': image}}
        )
        return self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )

    def rebuild_refused(self, server, *properties):
        """Ask for a rebuild from another image; it must be refused."""
        image = self.image(dict.fromkeys(properties, 'required'))
        return super().rebuild_refused(server, image)

    def rebuild_failed(self, server, image):
        """Ask for a rebuild that its host accepts, but cannot do."""
        driver = self.computes[host_of(server)].driver
        with mock.patch.object(
            driver, 'spawn', side_effect=nova_exception.NovaException('full')
        ):
            self.user(server['tenant_id']).post_server_action(
                server['id'], {'rebuild': {'imageRef': image}}
            )
            server = self._wait_for_state_change(server, 'ERROR')
        self.admin_api.post_server_action(
            server['id'], {'os-resetState': {'state': 'active'}}
        )
        return self._wait_for_state_change(server, 'ACTIVE')

    def migrate(self, server):
        return self._confirm_resize(self._migrate_server(server))

    def resize(self, server):
        return self._confirm_resize(self._resize_server(server, self.flavor()))

    def live_migrate(self, server):
        live = {'host': None, 'block_migration': 'auto'}
        self.api.post_server_action(server['id'], {'os-migrateLive': live})
        moved = self.moved(server, 'ACTIVE')
        # Nova's fake driver leaves it on the old host, too.
        driver = self.computes[host_of(server)].driver
        driver.instances.pop(server['id'], None)
        return moved

    def shelve(self, server):
        return self._unshelve_server(self._shelve_server(server))

    def evacuate(self, server):
        host = host_of(server)
        self.computes[host].stop()
        [service] = self.admin_api.get_services('nova-compute', host)
        self.admin_api.put_service_force_down(service['id'], True)
        self.admin_api.post_server_action(server['id'], {'evacuate': {}})
        server = self.moved(server, 'SHUTOFF')
        self._start_compute(host)
        self.admin_api.put_service_force_down(service['id'], False)
        self._run_periodics()
        return self._start_server(server)

    def moved(self, server, status):
        """Wait until a server is on another host; return it.

        Nova's fixtures take an earlier migration for this one.
        """

        def check():
            now = self._show_server(server)
            assert host_of(now) not in (None, host_of(server))
            assert now['status'] == status
            assert now['OS-EXT-STS:task_state'] is None
            migrations = self.admin_api.api_get('/os-migrations').body
            assert {
                migration['status']
                for migration in migrations['migrations']
                if migration['instance_uuid'] == server['id']
            } <= {'completed', 'confirmed', 'done', 'reverted'}
            return now

        return self._wait_for_assert(check)

    def assert_stays(self, server, hosts):
        """Move a server in every way there is."""
        for move in (
            self.migrate,
            self.live_migrate,
            self.shelve,
            self.resize,
            self.evacuate,
        ):
            server = move(server)
            assert host_of(server) in hosts, move.__name__


class OnReservedHostsTest(LifeTest):
    """A server was let into a reservation by its image."""

    def setUp(self):
        super().setUp()
        self.server, self.mine = self.boot_from(MINE)
        assert host_of(self.server) == 'host1'

    @pytest.mark.slow
    def test_as_it_booted(self):
        self.assert_stays(self.server, RESERVED)

    @pytest.mark.slow
    def test_the_key_was_removed_from_the_image(self):
        self.write(self.mine)
        self.assert_stays(self.server, RESERVED)

    @pytest.mark.slow
    def test_the_key_was_removed_and_the_server_rebuilt_from_the_image(self):
        self.write(self.mine)
        server = self.rebuild(self.server, self.mine)
        self.assert_stays(server, RESERVED)

    @pytest.mark.slow
    def test_a_foreign_key_was_added_and_the_server_rebuilt(self):
        self.write(self.mine, MINE, FOREIGN)
        server = self.rebuild(self.server, self.mine)
        self.assert_stays(server, RESERVED)

    def test_a_rebuild_into_a_foreign_reservation_was_refused(self):
        server = self.rebuild_refused(self.server, FOREIGN)
        self.assert_stays(server, RESERVED)

    @pytest.mark.slow
    def test_a_rebuild_out_of_the_reservation_was_refused(self):
        server = self.rebuild_refused(self.server)
        self.assert_stays(server, RESERVED)

    @pytest.mark.slow
    def test_a_refused_rebuild_was_repaired_from_its_own_image(self):
        server = self.rebuild_refused(self.server, FOREIGN)
        server = self.rebuild(server, self.mine)
        self.assert_stays(server, RESERVED)

    @pytest.mark.slow
    def test_a_rebuild_into_an_image_with_an_unknown_trait_was_refused(self):
        server = self.rebuild_refused(self.server, MINE, UNKNOWN)
        self.assert_stays(server, RESERVED)

    @pytest.mark.slow
    def test_a_rebuild_into_another_image_with_the_key_was_accepted(self):
        server = self.rebuild(self.server, self.image({MINE: '1'}))
        self.assert_stays(server, RESERVED)


class OnFreeHostsTest(LifeTest):
    """A server without a key."""

    def setUp(self):
        super().setUp()
        self.server, self.plain = self.boot_from()
        assert host_of(self.server) == 'host3'

    @pytest.mark.slow
    def test_as_it_booted(self):
        self.assert_stays(self.server, FREE)

    @pytest.mark.slow
    def test_a_key_was_added_to_the_image(self):
        self.write(self.plain, MINE)
        self.assert_stays(self.server, FREE)

    @pytest.mark.slow
    def test_its_own_key_was_added_and_the_server_rebuilt(self):
        """Nobody has accepted it."""
        self.write(self.plain, MINE)
        server = self.rebuild(self.server, self.plain)
        self.assert_stays(server, FREE)

    @pytest.mark.slow
    def test_a_rebuild_into_another_image_was_accepted(self):
        server = self.rebuild(self.server, self.image({}))
        self.assert_stays(server, FREE)

    @pytest.mark.slow
    def test_an_unknown_key_was_added_and_the_server_rebuilt(self):
        self.write(self.plain, 'reservation:nope')
        server = self.rebuild(self.server, self.plain)
        self.assert_stays(server, FREE)

    @pytest.mark.slow
    def test_a_foreign_key_was_added_and_the_server_rebuilt(self):
        self.write(self.plain, FOREIGN)
        server = self.rebuild(self.server, self.plain)
        self.assert_stays(server, FREE)

    @pytest.mark.slow
    def test_a_rebuild_into_a_foreign_reservation_was_refused(self):
        server = self.rebuild_refused(self.server, FOREIGN)
        self.assert_stays(server, FREE)

    @pytest.mark.slow
    def test_a_refused_rebuild_was_repaired_from_another_image(self):
        server = self.rebuild_refused(self.server, FOREIGN)
        server = self.rebuild(server, self.image({}))
        self.assert_stays(server, FREE)

    @pytest.mark.slow
    def test_a_rebuild_into_an_image_with_an_unknown_trait_was_refused(self):
        server = self.rebuild_refused(self.server, UNKNOWN)
        self.assert_stays(server, FREE)

    @pytest.mark.slow
    def test_a_rebuild_of_a_project_without_reservations_was_refused(self):
        server, _ = self.boot_from(project='c' * 32)
        server = self.rebuild_refused(server, UNKNOWN)
        self.assert_stays(server, FREE)


class RequiredOnlyTest(LifeTest):
    """Hosts with a key are open to all; a key keeps servers on them."""

    OPTIONS = (
        RESERVATIONS[0],
        (ia_conf.GROUP, 'reservation_key_sources', ['image']),
    )
    HOSTS = ('host1', 'host3', 'host2', 'host5', 'host4')

    @pytest.mark.slow
    def test_a_server_of_a_reservation_was_refused_a_foreign_one(self):
        server, _ = self.boot_from(MINE)
        server = self.rebuild_refused(server, FOREIGN)
        self.assert_stays(server, RESERVED)

    def test_a_server_without_a_key_was_refused_a_foreign_one(self):
        server, _ = self.boot_from(project='c' * 32)
        server = self.rebuild_refused(server, FOREIGN)
        self.assert_stays(server, set(self.HOSTS))

    @pytest.mark.slow
    def test_an_unknown_key_was_added_and_the_server_rebuilt(self):
        server, image = self.boot_from(project='c' * 32)
        self.write(image, 'reservation:nope')
        server = self.rebuild(server, image)
        self.assert_stays(server, set(self.HOSTS))


class OnLicensedHostsTest(LifeTest):
    """A server was let in by a trait of its image."""

    def lock(self):
        for host in RESERVED:
            self.give_trait(host, LICENSE.removeprefix('trait:'))
        self.aggregate('licensed', RESERVED, {LICENSE: 'required'})

    def setUp(self):
        super().setUp()
        self.server, self.licensed = self.boot_from(LICENSE)
        assert host_of(self.server) == 'host1'

    @pytest.mark.slow
    def test_the_trait_was_removed_and_the_server_rebuilt(self):
        self.write(self.licensed)
        server = self.rebuild(self.server, self.licensed)
        self.assert_stays(server, RESERVED)

    @pytest.mark.slow
    def test_a_rebuild_into_an_image_without_the_trait_was_refused(self):
        server = self.rebuild_refused(self.server)
        self.assert_stays(server, RESERVED)

    @pytest.mark.slow
    def test_a_rebuild_into_an_image_with_an_unknown_trait_was_refused(self):
        server = self.rebuild_refused(self.server, LICENSE, UNKNOWN)
        self.assert_stays(server, RESERVED)

    def test_a_refused_rebuild_was_repaired_from_its_own_image(self):
        """As the log advises; the record of Nova keeps the refused image."""
        server = self.rebuild_refused(self.server)
        server = self.rebuild(server, self.licensed)
        self.assert_stays(server, RESERVED)

    @pytest.mark.slow
    def test_a_rebuild_from_its_own_image_failed_on_its_host(self):
        server = self.rebuild_failed(self.server, self.licensed)
        self.assert_stays(server, RESERVED)


class OnLicensedVolumeTest(LifeTest):
    """A server on a volume, let in by a trait of the image of that."""

    lock = OnLicensedHostsTest.lock

    def setUp(self):
        super().setUp()
        cinder = self.useFixture(nova_fixtures.CinderFixture(self))
        self.volume = cinder.IMAGE_BACKED_VOL
        self.licensed = self.image({LICENSE: 'required'})
        get = cinder_api.API.get

        def with_image(api, context, volume_id, *args, **kwargs):
            volume = get(context, volume_id, *args, **kwargs)
            volume['volume_image_metadata'] = {
                'image_id': self.licensed,
                LICENSE: 'required',
            }
            return volume

        self.stub_out('nova.volume.cinder.API.get', with_image)
        asked = self._build_server(
            image_uuid='', flavor_id=self.flavor(), networks='none'
        )
        asked['block_device_mapping_v2'] = [
            {
                'uuid': self.volume,
                'source_type': 'volume',
                'destination_type': 'volume',
                'boot_index': 0,
            }
        ]
        made = self.user(OWNER).post_server({'server': asked})
        self.server = self._wait_for_state_change(made, 'ACTIVE')
        assert host_of(self.server) == 'host1'

    def assert_stays(self, server):
        for move in (self.migrate, self.shelve):
            server = move(server)
            assert host_of(server) in RESERVED, move.__name__

    @pytest.mark.slow
    def test_a_rebuild_from_the_same_image_failed_on_its_host(self):
        server = self.rebuild_failed(self.server, self.licensed)
        self.assert_stays(server)

    def test_a_rebuild_from_a_plain_image_was_refused(self):
        server = self.rebuild_refused(self.server)
        self.assert_stays(server)


class WithAReplacementTest(LifeTest):
    """The hosts of a reservation change while a server without key is in."""

    def lock(self):
        """Reserve the hosts; return the aggregate."""
        self.mine = self.aggregate(
            'mine', RESERVED, {MINE: 'true', 'blazar:owner': OWNER}
        )

    @pytest.mark.slow
    def test_its_host_leaves_and_another_one_joins(self):
        server, image = self.boot_from(MINE)
        self.write(image)
        server = self.rebuild(server, image)
        # An ordinary drain.
        self.admin_api.remove_host_from_aggregate(self.mine, host_of(server))
        self.admin_api.add_host_to_aggregate(self.mine, 'host3')
        server = self.migrate(server)
        assert host_of(server) in {'host2', 'host3'}
        server = self.migrate(server)
        assert host_of(server) in {'host2', 'host3'}

    @pytest.mark.slow
    def test_a_replacement_joins_before_two_moves(self):
        server, image = self.boot_from(MINE)
        self.write(image)
        server = self.rebuild(server, image)
        self.admin_api.add_host_to_aggregate(self.mine, 'host3')
        self.admin_api.remove_host_from_aggregate(self.mine, 'host2')
        for _ in range(2):
            server = self.migrate(server)
            assert host_of(server) in {'host1', 'host3'}


@pytest.mark.slow
class EachAfterEachTest(LifeTest):
    """Every pair of what can be done to a server."""

    def live(self, server, hosts, *written):
        """Do everything after everything, with a key written in between."""
        image = server['image']['id']

        def rebuild_same(server):
            self.write(image, *written)
            return self.rebuild(server, image)

        def rebuild_refused(server):
            return self.rebuild_refused(server, FOREIGN)

        steps = [
            self.migrate,
            self.live_migrate,
            self.shelve,
            self.resize,
            self.evacuate,
            rebuild_same,
            rebuild_refused,
        ]
        # A sequence that has each pair once.
        pairs = [
            step
            for number, first in enumerate(steps)
            for step in (
                first,
                *itertools.chain.from_iterable(
                    (first, second) for second in steps[number + 1 :]
                ),
            )
        ]
        assert set(itertools.pairwise([*pairs, steps[0]])) == set(
            itertools.product(steps, repeat=2)
        )
        for before, step in itertools.pairwise([steps[-1], *pairs, steps[0]]):
            server = step(server)
            assert host_of(server) in hosts, (before, step)

    def test_a_server_stays_in_its_reservation(self):
        server, _ = self.boot_from(MINE)
        self.live(server, RESERVED)

    def test_a_server_is_moved_on_free_hosts(self):
        server, _ = self.boot_from(project='c' * 32)
        self.live(server, FREE, 'reservation:nope')
