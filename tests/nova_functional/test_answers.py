# SPDX-License-Identifier: Apache-2.0
"""What a real nova-scheduler does with the answers of Placement.

``test_after_placement.py`` has the answers of all commands.
"""

from base import ISOLATE, host_of
from day_two import CommandTest

ONLY_HERE = 'CUSTOM_ONLY_HERE'


class SkippedTest(CommandTest):
    """Hosts whose compute node gives nothing."""

    def give_child(self, host, resource_class):
        """Add a child provider to a host that has one of a class."""
        answer = self.placement.put(
            f'/resource_classes/{resource_class}', {}, version='1.20'
        )
        assert answer.status in {201, 204}
        parent = self._get_provider_uuid_by_host(host)
        answer = self.placement.post(
            '/resource_providers',
            {'name': f'child of {host}', 'parent_provider_uuid': parent},
            version='1.20',
        )
        child = answer.body['uuid']
        self.placement.put(
            f'/resource_providers/{child}/inventories',
            {
                'resource_provider_generation': 0,
                'inventories': {resource_class: {'total': 4}},
            },
            version='1.20',
        )

    def test_nova_skips_a_host_whose_compute_node_gives_nothing(self):
        self.give_child('host1', 'CUSTOM_CARD')
        card = {'resources:CUSTOM_CARD': '1'}
        nothing = {
            f'resources:{name}': '0'
            for name in ('VCPU', 'MEMORY_MB', 'DISK_GB')
        }
        only_card = self._create_flavor(name='only', extra_spec=card | nothing)
        server = self.boot(only_card, status='ERROR')
        explained = self.run_command('explain', '--server', server['id'])
        assert explained.code == 0
        assert '0 of 2 hosts may be used.' in explained.out
        assert 'Nova skips it' in explained.out
        # Anything else from the compute node makes a difference.
        assert self.host_for(self.flavor(card)) == 'host1'


class FallbackTest(CommandTest):
    """Pinned CPUs on hosts that do not provide PCPU."""

    def candidates(self, flavor):
        return self.run_command(
            'candidate', 'list', '--flavor', flavor, '-f', 'json'
        ).document

    def test_nova_asks_for_vcpu_instead_of_pcpu_by_default(self):
        pinned = self.flavor({'hw:cpu_policy': 'dedicated'})
        answer = self.candidates(pinned)
        assert [host['name'] for host in answer['hosts']] == ['host1', 'host2']
        assert self.host_for(pinned) == 'host1'

    def test_nova_asks_only_for_pcpu_if_the_fallback_is_disabled(self):
        self.flags(group='workarounds', disable_fallback_pcpu_query=True)
        with self.config.open('a') as file:
            file.write('[workarounds]\ndisable_fallback_pcpu_query = true\n')
        pinned = self.flavor({'hw:cpu_policy': 'dedicated'})
        assert self.candidates(pinned)['hosts'] == []
        self.boot(pinned, status='ERROR')


class MixedTest(CommandTest):
    """A compute node that shares its inventory."""

    OPTIONS = (ISOLATE, ('filter_scheduler', 'isolated_hosts', ['host2']))

    def setUp(self):
        self.flags(
            enabled_filters=['ComputeFilter', 'IsolatedHostsFilter'],
            group='filter_scheduler',
        )
        super().setUp()

    def test_nova_starts_a_server_with_the_resources_of_another_host(self):
        self.aggregate('shared', self.HOSTS)
        self.give_trait('host2', ONLY_HERE)
        uuids = {
            host: self._get_provider_uuid_by_host(host) for host in self.HOSTS
        }
        traits = self._get_provider_traits(uuids['host1'])
        self._set_provider_traits(
            uuids['host1'], [*traits, 'MISC_SHARES_VIA_AGGREGATE']
        )
        flavor = self.flavor({f'trait:{ONLY_HERE}': 'required'})
        explained = self.run_command(
            'explain', '--flavor', flavor, '-f', 'json'
        ).document
        assert {
            host['name']: host['verdict'] for host in explained['hosts']
        } == {'host1': 'excluded', 'host2': 'candidate'}
        assert explained['summary']['nova_mixes_hosts'] == ['host1']
        # A host filter drops host2, so the mixed ones of host1 are left.
        server = self.boot(flavor)
        assert host_of(server) == 'host1'
        allocations = self._get_allocations_by_server_uuid(server['id'])
        assert uuids['host2'] in allocations
