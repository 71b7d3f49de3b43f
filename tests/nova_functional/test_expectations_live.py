# SPDX-License-Identifier: Apache-2.0
"""Expectations of a real Nova and Placement, which Nova then meets."""

import time

from base import IMAGE, SECONDS, host_of
from day_two import CommandTest
import yaml

TRAIT = 'CUSTOM_LICENSED'


class ExpectationsTest(CommandTest):
    """A cloud with a locked host, tested and used."""

    HOSTS = ('host1', 'host2', 'host3')

    def setUp(self):
        super().setUp()
        # Flavors of Nova's fixtures would be described, too.
        for flavor in self.admin_api.get_flavors():
            self.admin_api.api_delete(f'/flavors/{flavor["id"]}')
        self.number = self.aggregate('licensed', ['host1'])
        self.flavors = {}
        for name, specs in (
            ('plain', {}),
            ('licensed', {f'trait:{TRAIT}': 'required'}),
        ):
            self.flavors[name] = self._create_flavor(
                name=name,
                vcpu=1,
                memory_mb=64,
                disk=1,
                ephemeral=0,
                extra_spec=specs,
            )
        locked = self.run_command(
            'lock', 'create', 'licensed', '--trait', TRAIT
        )
        assert locked.code == 0, locked
        self.path = self.config.with_name('expectations.yaml')

    def ask(self, *options):
        """Test the cloud; return the exit status and the report."""
        result = self.run_command(
            'test', str(self.path), '-f', 'json', *options
        )
        return result.code, result.document

    def gets(self, flavor, host):
        """Return whether Nova gives a new server a host."""
        request = self._build_server(
            image_uuid=IMAGE, flavor_id=self.flavors[flavor], networks='none'
        )
        made = self.admin_api.post_server(
            {'server': {**request, 'host': host}}
        )
        until = time.monotonic() + SECONDS
        while made.get('status', 'BUILD') == 'BUILD':
            assert time.monotonic() < until
            time.sleep(0.05)
            made = self.admin_api.get_server(made['id'])
        got = host_of(made)
        self._delete_server(made)
        assert got in (None, host)
        return got == host

    def test_nova_does_what_the_first_file_says(self):
        written = self.run_command(
            'test', '--init', '--output', str(self.path)
        )
        assert written.code == 0, written
        code, _ = self.ask('--mutate')
        assert code == 0
        document = yaml.safe_load(self.path.read_text('utf-8'))
        hosts = {}
        for entry in document['expectations']:
            if 'flavor' in entry and 'image' not in entry:
                place = entry['exactly']
                hosts[entry['flavor']] = place.get('host') or ['host1']
        assert hosts == {'plain': ['host2', 'host3'], 'licensed': ['host1']}
        for flavor, members in hosts.items():
            for host in self.HOSTS:
                assert self.gets(flavor, host) == (host in members)

    def test_a_test_fails_as_soon_as_the_cloud_changes(self):
        self.path.write_text(
            'version: 1\n'
            'expectations:\n'
            '- {flavor: plain, never: {aggregate: licensed}}\n'
        )
        code, report = self.ask()
        assert (code, report['failed']) == (0, 0)
        key = f'trait:{TRAIT}'
        code, foretold = self.ask('--unset', 'licensed', key)
        self.tag(self.number, {key: None})
        code, report = self.ask()
        assert code == 4
        [problem] = report['expectations'][0]['problems']
        assert problem == {
            'problem': 'flavor plain may use host1',
            'extra_hosts': ['host1'],
            'missing_hosts': [],
            'reasons': ['host1: no lock'],
        }
        assert foretold['expectations'] == report['expectations']
        assert self.gets('plain', 'host1')

    def test_a_snapshot_has_the_digest_of_its_cloud(self):
        self.path.write_text(
            'version: 1\n'
            'expectations:\n'
            '- {flavor: plain, never: {aggregate: licensed}}\n'
        )
        saved = str(self.config.with_name('cloud.yaml'))
        assert (
            self.run_command('snapshot', 'save', '--output', saved).code == 0
        )
        _, live = self.ask()
        _, of_file = self.ask('--snapshot', saved)
        assert of_file['cloud']['sha256'] == live['cloud']['sha256']
        assert live['files'] == of_file['files'][:1]
        assert live['cloud']['source'].startswith(
            'live cloud with Placement at http'
        )
