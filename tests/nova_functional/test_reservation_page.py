# SPDX-License-Identifier: Apache-2.0
"""What the page "Reservations" shows happens on a real Nova and Placement."""

from base import IMAGE
from page_cloud import PageTest
from reservation_cloud import ReservationTest


class ReservationPageTest(PageTest, ReservationTest):
    """The cloud of the page."""

    HOSTS = ('host1', 'host2', 'host3')
    POOL = ('host1', 'host2')
    RUNNER = 'tests/nova_functional/test_reservation_page.py'
    RESERVATION = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
    PROJECT = '6f70656e737461636b20342065766572'

    def setUp(self):
        super().setUp()
        self.done('host', 'disable', *self.POOL)
        image = self.glance.show(None, IMAGE)
        del image['id']
        self.glance.create(None, {**image, 'name': 'debian-12'})

    def fill(self):
        """Have a reservation with a server again, and a host to spare."""
        self.done('host', 'enable', *self.HOSTS)
        self.done(
            'create', '--id', self.RESERVATION, '--project', self.PROJECT,
            '--amount', '2', '--vcpus', '1', '--ram', '64', '--disk', '1',
            '--affinity', 'different',
        )  # fmt: skip
        typed = self.terminal.type(
            'openstack server create --image debian-12 --network private '
            f'--flavor reservation:{self.RESERVATION} --wait web-1'
        )
        assert typed.code == 0, typed.output

    def test_the_page_is_true(self):
        # What the page says to give to each command.
        home = self.folder / 'isolate-aggregates.conf'
        home.write_text(self.config.read_text())
        self.play(
            'admin/reservations.rst',
            before={'reservation repair': self.fill},
        )
