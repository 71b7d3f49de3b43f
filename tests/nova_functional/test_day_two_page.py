# SPDX-License-Identifier: Apache-2.0
"""What the page "Day 2" shows is what happens on a real Nova and Placement."""

from base import IMAGE
from page_cloud import PageTest


class DayTwoPageTest(PageTest):
    """The cloud of the page."""

    HOSTS = ('win-1', 'win-2', 'win-3', 'win-4', 'linux-1')
    RUNNER = 'tests/nova_functional/test_day_two_page.py'

    def test_the_commands_of_the_page_work_as_shown(self):
        # There is an m1.small already.
        self._create_flavor(
            name='win.small', vcpu=1, memory_mb=2048, disk=20, ephemeral=0
        )
        image = self.glance.show(None, IMAGE)
        del image['id']
        self.glance.create(None, {**image, 'name': 'windows-2022'})
        self.play('admin/day-two.rst')
