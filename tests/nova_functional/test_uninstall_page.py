# SPDX-License-Identifier: Apache-2.0
"""What the page "Uninstall" shows is what happens on a real Nova."""

from base import ISOLATE
from page_cloud import PageTest
import pytest

from isolate_aggregates_tools.placement import edits, providers

TRAIT = 'CUSTOM_LICENSED_WINDOWS'


class UninstallPageTest(PageTest):
    """Two aggregates with the same lock, whose hosts sync looks after."""

    HOSTS = ('win-1', 'win-2', 'linux-1')
    RUNNER = 'tests/nova_functional/test_uninstall_page.py'
    OPTIONS = (ISOLATE,)

    def setUp(self):
        super().setUp()
        self._create_flavor(
            name='win.small',
            vcpu=1,
            memory_mb=2048,
            disk=20,
            ephemeral=0,
            extra_spec={f'trait:{TRAIT}': 'required'},
        )
        tag = {f'trait:{TRAIT}': 'required'}
        self.aggregate('win-hosts', ['win-1'], tag)
        self.aggregate('win-hosts-2', ['win-2'], tag)
        self.ran = []
        self.sync()

    def sync(self):
        assert self.run_command('sync', '--yes').code == 0

    def own(self):
        """Return the objects in Placement that only we can have created."""
        placement = self.live_cloud().placement
        traits = {
            trait
            for trait in edits.known_traits(placement)
            if trait.startswith('CUSTOM_ISOLATE_')
        }
        uuids = {
            aggregate['uuid']
            for aggregate in self.admin_api.api_get('/os-aggregates').body[
                'aggregates'
            ]
        }
        members = {
            uuid
            for host in ('win-1', 'win-2')
            for uuid in placement.aggregates(self.provider(host))
        }
        return traits | (members - uuids)

    def provider(self, host):
        return self._get_provider_uuid_by_host(host)

    def traits(self, host):
        placement = self.live_cloud().placement
        return providers.traits(placement, self.provider(host))

    def begin_anew(self):
        """Be where the page began, now that it has shown one of two ways."""
        if self.ran:
            return
        # The traits are there, and nothing else.
        assert self.own() == set()
        assert TRAIT in self.traits('win-1') & self.traits('win-2')
        self.ran.append(1)
        for host in ('win-1', 'win-2'):
            edits.change_traits(
                self.live_cloud().placement,
                self.provider(host),
                lambda traits: traits - {TRAIT},
            )
        self.sync()
        assert self.own() != set()

    @pytest.mark.slow
    def test_the_commands_of_the_page_work_as_shown(self):
        assert self.own() != set()
        self.play('admin/uninstall.rst', before={' list -c': self.begin_anew})
        assert self.ran
        assert self.own() == set()
        assert TRAIT not in self.traits('win-1') | self.traits('win-2')
        names = edits.known_traits(self.live_cloud().placement)
        assert TRAIT not in names
