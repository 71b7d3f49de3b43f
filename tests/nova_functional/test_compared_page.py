# SPDX-License-Identifier: Apache-2.0
"""The migration steps on the page "Compared with" work."""

import contextlib
import pathlib
import tempfile

from base import CONF, IMAGE
from day_two import CommandTest
import pages
import pytest

from isolate_aggregates import conf as ia_conf

SSD = 'aggregate_instance_extra_specs:ssd'
# Real ids of projects are like this.
ACME = 'ac3e' * 8
PAGE = pages.SOURCE / 'admin' / 'compared.rst'


class ComparedPageTest(CommandTest):
    """A cloud in the state before the migration."""

    HOSTS = ('win-1', 'ssd-1', 'acme-1', 'any-1')
    OLD_FILTERS = (
        'AggregateImagePropertiesIsolation',
        'AggregateInstanceExtraSpecsFilter',
        'AggregateMultiTenancyIsolation',
    )

    def setUp(self):
        self.flags(
            enabled_filters=[
                *CONF.filter_scheduler.enabled_filters,
                *self.OLD_FILTERS,
            ],
            group='filter_scheduler',
        )
        super().setUp()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.chdir(folder))
        self.numbers = {
            name: self.aggregate(name, [host], metadata)
            for name, host, metadata in (
                ('win-hosts', 'win-1', {'os_distro': 'windows'}),
                ('ssd-hosts', 'ssd-1', {'ssd': 'true'}),
                ('acme-hosts', 'acme-1', {'filter_tenant_id': ACME}),
            )
        }
        self.ssd = self._create_flavor(
            name='ssd.small',
            vcpu=1,
            memory_mb=64,
            disk=1,
            ephemeral=0,
            extra_spec={SSD: 'true'},
        )
        image = self.glance.show(None, IMAGE)
        del image['id']
        image['properties']['os_distro'] = 'windows'
        self.windows = self.glance.create(
            None, {**image, 'name': 'windows-2022'}
        )['id']

    def do(self, words):
        """Run one command of the page; return its output."""
        match words:
            case ['isolate-aggregates', '--os-cloud', 'mycloud', *rest]:
                named = [ACME if word == 'acme' else word for word in rest]
                result = self.run_command(*named)
                # An audit with findings has another exit status.
                assert result.code in (0, 4 * ('audit' in rest)), result
                return result.out
            case ['openstack', 'aggregate', 'unset', '--property', key, name]:
                self.tag(self.numbers[name], {key: None})
            case ['openstack', 'flavor', 'unset', '--property', key, _]:
                url = f'/flavors/{self.ssd}/os-extra_specs/{key}'
                self.admin_api.api_delete(url)
            case _:
                raise AssertionError(words)
        return ''

    @pytest.mark.slow
    def test_each_migration_on_the_page_isolates_the_cloud(self):
        plain = self.flavor()
        # So it is with the host filters alone.
        assert self.host_for(plain) == 'win-1'
        assert self.host_for(plain, image=self.windows) == 'win-1'
        assert self.host_for(self.ssd) == 'ssd-1'

        printed = {}
        for block in pages.blocks(PAGE):
            if block.caption:
                pathlib.Path(block.caption).write_text(block.text)
            for words, _ in block.commands():
                printed[' '.join(words[3:])] = self.do(words)

        [of_acme] = [
            out for words, out in printed.items() if '--project acme' in words
        ]
        assert 'acme-1' in of_acme
        self.flags(
            enabled_filters=[
                one
                for one in CONF.filter_scheduler.enabled_filters
                if one not in self.OLD_FILTERS
            ],
            group='filter_scheduler',
        )
        self.flags(
            request_filters=['isolate_aggregates', 'isolate_tenants'],
            group=ia_conf.GROUP,
        )
        self.restart_scheduler()
        assert self.host_for(plain) == 'any-1'
        assert self.host_for(plain, project=ACME) == 'acme-1'
        assert self.host_for(plain, image=self.windows) == 'win-1'
        assert self.host_for(self.ssd) == 'ssd-1'
        assert SSD not in self.admin_api.get_extra_specs(self.ssd)
