# SPDX-License-Identifier: Apache-2.0
"""What the page "Reservations" shows happens on a real Nova and Placement."""

import threading

from base import IMAGE, host_of
from nova.virt import fake
from page_cloud import PageTest
import pytest
from reservation_cloud import ReservationTest
import runners

PAGE = 'admin/reservations.rst'


class ReservationPageTest(PageTest, ReservationTest):
    """The cloud of the page."""

    HOSTS = ('host1', 'host2', 'host3')
    POOL = ('host1', 'host2')
    RUNNER = 'tests/nova_functional/test_reservation_page.py'
    RESERVATION = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
    PROJECT = '6f70656e737461636b20342065766572'

    def setUp(self):
        super().setUp()
        self.may_delete = threading.Event()
        self.done('host', 'set', '--disable', '--delete-pool', *self.POOL)
        image = self.glance.show(None, IMAGE)
        del image['id']
        self.glance.create(None, {**image, 'name': 'debian-12'})

    def fill(self):
        """Create a reservation with a server, and a spare host."""
        # The limits of the page would refuse it.
        unset = self.terminal.type(
            'openstack aggregate unset --property reservation_limit freepool'
        )
        assert unset.code == 0, unset.output
        self.done('host', 'set', '--enable', *self.HOSTS)
        self.done(
            'create', '--id', self.RESERVATION, '--project', self.PROJECT,
            '--amount', '2', '--vcpus', '1', '--ram', '64', '--disk', '1',
            '--affinity', 'different',
        )  # fmt: skip
        [create] = [
            command
            for command in runners.commands_of(PAGE, self.RUNNER)
            if command.text.startswith('openstack server create')
        ]
        assert self.terminal.type(create.text).code == 0

    def enable_pool(self):
        """Enable hosts again, which the page has disabled."""
        self.done('host', 'set', '--enable', *self.POOL)

    def break_web_1(self):
        """Let the host break that web-1 has come to."""
        [server] = self.admin_api.get_servers(search_opts={'all_tenants': 1})
        server = self._wait_for_server_parameter(
            server, {'OS-EXT-STS:task_state': None, 'status': 'ACTIVE'}
        )
        assert host_of(server) != 'host1'
        self.done('reconcile')
        self.break_host(host_of(server))

    def let_servers_go(self):
        """Let nova-compute process the deletions."""
        self.may_delete.set()
        self._wait_for_assert(self.no_servers)

    def no_servers(self):
        """Check that there are no servers."""
        assert self.admin_api.get_servers(search_opts={'all_tenants': 1}) == []

    @pytest.mark.slow
    def test_the_commands_of_the_page_work_as_shown(self):
        # On the page it takes a while.
        destroy = fake.FakeDriver.destroy

        def destroy_later(*args, **kwargs):
            self.may_delete.wait()
            return destroy(*args, **kwargs)

        self.stub_out('nova.virt.fake.FakeDriver.destroy', destroy_later)
        self.addCleanup(self.may_delete.set)
        self.play(
            PAGE,
            before={
                'reservation reconcile -c': self.let_servers_go,
                'property reservation_limit=': self.enable_pool,
                'reservation repair --yes': self.fill,
                'reservation repair --evacuate': self.break_web_1,
            },
            # The values that the page leaves open in each command.
            files={'isolate-aggregates.conf': self.config.read_text()},
        )
