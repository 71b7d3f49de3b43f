# SPDX-License-Identifier: Apache-2.0
"""What the page about restored databases shows happens on a real Nova."""

from page_cloud import PageTest
import pytest
from reservation_cloud import ReservationTest

PAGE = 'admin/restore.rst'


class RestorePageTest(PageTest, ReservationTest):
    """A cloud in which parts of records and slots get lost."""

    RUNNER = 'tests/nova_functional/test_restore_page.py'
    RESERVATION = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'

    def forget_change(self):
        """Create and extend a reservation, and lose the extension."""
        self.done(
            'create', '--id', self.RESERVATION,
            '--project', '6f70656e737461636b20342065766572', '--amount', '2',
            '--vcpus', '1', '--ram', '64', '--disk', '1',
            '--affinity', 'different', '--end', '1d',
        )  # fmt: skip
        self.done('set', self.RESERVATION, '--end', '30d')
        assert self.delete_flavors('.')

    def forget_record(self):
        """Lose the whole record."""
        assert self.delete_flavors('')

    def delete_flavors(self, rest):
        """Delete the flavors of the record whose id goes on like this."""
        flavors = [
            flavor['id']
            for flavor in self.admin_api.api_get(
                '/flavors?is_public=None'
            ).body['flavors']
            if flavor['id'].startswith(self.RESERVATION + rest)
        ]
        for flavor in flavors:
            self.admin_api.delete_flavor(flavor)
        return flavors

    def forget_slots(self):
        """Lose the slots on a host."""
        [provider] = self.placement.get(
            '/resource_providers?name=blazar_host1', version='1.39'
        ).body['resource_providers']
        answer = self.placement.delete(
            f'/resource_providers/{provider["uuid"]}/inventories/'
            f'{self.class_of(self.RESERVATION)}',
            version='1.39',
        )
        assert answer.status == 204, answer.body

    @pytest.mark.slow
    def test_the_commands_of_the_page_work_as_shown(self):
        self.play(
            PAGE,
            before={
                'reservation show': self.forget_change,
                'reservation list': self.forget_record,
                'reservation reconcile': self.forget_slots,
            },
        )
