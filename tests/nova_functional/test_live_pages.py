# SPDX-License-Identifier: Apache-2.0
"""The commands of pages about a cloud work on a real Nova.

All of them share a cloud, as starting one takes longer than a page.
"""

from base import IMAGE, host_of
from page_cloud import PageTest
import runners

from isolate_aggregates import conf as ia_conf

FIRST = 'user/tutorial.rst'
LICENSED = 'CUSTOM_LICENSED_WINDOWS'


class LivePagesTest(PageTest):
    """A cloud as described on the pages."""

    HOSTS = ('win-1', 'linux-1')
    RUNNER = 'tests/nova_functional/test_live_pages.py'
    OPTIONS = (*PageTest.OPTIONS, (ia_conf.GROUP, 'servers_recorded', True))

    def setUp(self):
        super().setUp()
        image = self.glance.show(None, IMAGE)
        del image['id']
        for name in ('debian-12', 'windows-2022'):
            self.glance.create(None, {**image, 'name': name})

    def test_the_commands_of_the_pages_work_as_shown(self):
        # It creates objects for the other pages.
        self.play(FIRST)
        server = self.boot(self.flavor({f'trait:{LICENSED}': 'required'}))
        assert host_of(server) == 'win-1'
        known = {
            '<id>': server['flavor']['original_name'],
            '<provider>': self._get_provider_uuid_by_host('win-1'),
            '7c9a52a4-64d5-4d06-9d4b-2e3b37d0f6a1': server['id'],
        }
        wrong = []
        for name, runner in runners.ON_NOVA.items():
            if runner == self.RUNNER and name != FIRST:
                wrong += self.faults(
                    name, {'--to later.yaml': self.save_later}, known
                )
        assert wrong == [], '\n'.join(wrong)

    def save_later(self):
        """Have another picture of the cloud."""
        typed = self.terminal.type('cp cloud.yaml later.yaml')
        assert typed.code == 0
