# SPDX-License-Identifier: Apache-2.0
"""The record names the true cause if a server finds no other host."""

from base import LOCK, host_of
from nova.tests import fixtures as nova_fixtures
from test_records import KEY, LEASE, OWNER, Incidents


class Moves(Incidents):
    """What becomes of servers that exist."""

    def locks_of(self, record):
        self.assert_cause(record, 'locked')
        return {
            host: [lock for entry in entries for lock in entry['locks']]
            for host, entries in record['detail']['hosts'].items()
        }

    def test_an_evacuation(self):
        server = self.boot(self.flavor(), project=OWNER)
        assert host_of(server) == 'host3'
        self.computes['host3'].stop()
        [service] = self.admin_api.get_services(
            host='host3', binary='nova-compute'
        )
        self.admin_api.put_service(service['id'], {'forced_down': True})

        self.admin_api.post_server_action(server['id'], {'evacuate': {}})

        record = self.record_of(server, 'move')
        assert self.locks_of(record) == {
            'host1': [f'{LOCK}=required'],
            'host2': [f'{LEASE}=true'],
        }
        assert record['project'] == OWNER
        assert 'host3' in record['keys']['ignored']

    def test_an_unshelving(self):
        server = self.boot(self.flavor(), project=OWNER)
        self.flags(shelved_offload_time=0)
        self.user(OWNER).post_server_action(server['id'], {'shelve': {}})
        self._wait_for_state_change(server, 'SHELVED_OFFLOADED')
        self.tag(self.theirs, {LOCK: 'required'})

        self.user(OWNER).post_server_action(server['id'], {'unshelve': None})

        assert self.locks_of(self.record_of(server, 'move')) == {
            'host1': [f'{LOCK}=required'],
            'host2': [f'{LEASE}=true'],
            'host3': [f'{LOCK}=required'],
        }

    def test_a_resize_whose_own_host_is_too_small(self):
        server = self.boot(self.flavor(), project=OWNER)
        assert host_of(server) == 'host3'
        self.flags(allow_resize_to_same_host=False)
        self.boot(self.sized(disk=900), project=OWNER)
        larger = self.sized(disk=200)

        self.user(OWNER).post_server_action(
            server['id'],
            {'resize': {'flavorRef': larger}},
            check_response_status=[202, 400],
        )

        record = self.record_of(server, 'move')
        assert record['keys']['ignored'] == ['host3']
        assert self.locks_of(record) == {
            'host1': [f'{LOCK}=required'],
            'host2': [f'{LEASE}=true'],
        }
        assert record['detail']['room']

    def test_a_live_migration_to_a_locked_host(self):
        server = self.boot(self.flavor(), project=OWNER)
        self.admin_api.post_server_action(
            server['id'],
            {'os-migrateLive': {'host': 'host1', 'block_migration': 'auto'}},
        )
        record = self.record_of(server, 'move')
        assert self.locks_of(record) == {'host1': [f'{LOCK}=required']}
        assert record['keys']['requested_host'] == 'host1'


class Nodes(Incidents):
    """Hosts that one server takes as a whole."""

    def setUp(self):
        super().setUp()
        answer = self.placement.put(
            '/resource_classes/CUSTOM_NODE', {}, version='1.20'
        )
        assert answer.status in {201, 204}
        for host in ('host1', 'host3'):
            provider = self._get_provider_uuid_by_host(host)
            path = f'/resource_providers/{provider}'
            generation = self.placement.get(path).body['generation']
            answer = self.placement.post(
                f'{path}/inventories',
                {
                    'resource_provider_generation': generation,
                    'resource_class': 'CUSTOM_NODE',
                    'total': 1,
                },
                version='1.20',
            )
            assert answer.status == 201, answer.body

    def node(self, specs=None):
        """Make a flavor as of bare metal: it asks for nothing but a node."""
        nothing = {
            f'resources:{name}': '0'
            for name in ('VCPU', 'MEMORY_MB', 'DISK_GB')
        }
        return self.flavor(
            {**nothing, 'resources:CUSTOM_NODE': '1', **(specs or {})}
        )

    def test_all_nodes_are_locked(self):
        record = self.fails(self.node())
        self.assert_cause(record, 'locked')
        assert sorted(record['detail']['hosts']) == ['host1', 'host3']
        assert record['detail']['room'] is True

    def test_the_only_node_is_taken(self):
        flavor = self.node(KEY)
        assert host_of(self.boot(flavor)) == 'host1'
        record = self.fails(flavor)
        # That of host3 is free, but has not the trait.
        self.assert_cause(
            record, 'full', short=['CUSTOM_NODE:1'], room_behind_locks=False
        )

    def test_several_nodes_of_which_one_is_left(self):
        server = self._build_server(
            flavor_id=self.node(KEY),
            networks='none',
            image_uuid=self.image({}),
        )
        server['min_count'] = server['max_count'] = 2
        made = self.user(nova_fixtures.PROJECT_ID).post_server(
            {'server': server}
        )
        made = self._wait_for_state_change(made, 'ERROR')
        self.assert_cause(self.record_of(made), 'full')
