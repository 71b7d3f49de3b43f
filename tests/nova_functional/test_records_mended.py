# SPDX-License-Identifier: Apache-2.0
"""What the record names as the cause is mended, and the request gets a host.

So the record tells what was so, whatever the cloud is like afterwards.
"""

from base import IMAGE, host_of
from nova import objects
from nova.scheduler import request_filter
from nova.scheduler.client import report
from nova.tests import fixtures as nova_fixtures
import pytest
from test_records import KEY, LEASE, LOCK, OWNER, TRAIT, Incidents

ONLY1 = {'trait:CUSTOM_ONLY1': 'required'}
ONLY3 = {'trait:CUSTOM_ONLY3': 'required'}
LICENSE = ('licensed', f'{LOCK}=required')
POOL = 'd14f2a4c-6f2e-4c5f-9d4b-4a4a1c7b9d11'


class Mended(Incidents):
    """host1 is licensed, host2 reserved, host3 is of a tenant."""

    def setUp(self):
        super().setUp()
        self.give_trait('host1', 'CUSTOM_ONLY1')

    def locks_of(self, record):
        """Return the locks of each host, which must be there."""
        self.assert_cause(record, 'locked')
        self.assert_true(record)
        return {
            host: [
                (entry['name'], *entry['locks'])
                for entry in entries
                if 'locks' in entry
            ]
            for host, entries in record['detail']['hosts'].items()
        }

    def assert_true(self, record):
        found = self.admin_api.api_get('/os-aggregates').body['aggregates']
        aggregates = {each['uuid']: each for each in found}
        for host, entries in record['detail']['hosts'].items():
            for entry in entries:
                if 'uuid' in entry:
                    aggregate = aggregates[entry['uuid']]
                    assert host in aggregate['hosts'], entry
                    for lock in entry['locks']:
                        key, _, value = lock.partition('=')
                        assert aggregate['metadata'][key] == value, entry

    def put(self, path, body, version='1.36'):
        answer = self.placement.put(path, body, version=version)
        assert answer.status in {200, 201, 204}, answer.body

    def generation(self, provider):
        return self.placement.get(f'/resource_providers/{provider}').body[
            'generation'
        ]

    def stock(self, provider, **totals):
        """Replace the inventories of a provider."""
        self.put(
            f'/resource_providers/{provider}/inventories',
            {
                'resource_provider_generation': self.generation(provider),
                'inventories': {
                    name: {'total': total} for name, total in totals.items()
                },
            },
        )

    def provider(self, name, parent=None):
        """Make a provider and return its uuid."""
        answer = self.placement.post(
            '/resource_providers',
            {'name': name, 'parent_provider_uuid': parent},
            version='1.36',
        )
        assert answer.status == 200, answer.body
        return answer.body['uuid']

    def act(self, server, action, states=(202, 400)):
        self.admin_api.post_server_action(
            server['id'], action, check_response_status=list(states)
        )


@pytest.mark.slow
class Locks(Mended):
    """A lock is taken away."""

    def test_one_lock_among_many(self):
        for number in range(40):
            self.aggregate(
                f'other-{number}', [], {'trait:CUSTOM_SSD': 'required'}
            )
        record = self.fails(self.flavor(ONLY1))
        assert self.locks_of(record) == {'host1': [LICENSE]}
        self.tag(self.licensed, {LOCK: None})
        assert self.host_for(self.flavor(ONLY1)) == 'host1'

    def test_in_a_zone(self):
        record = self.fails(self.flavor(), zone='z1')
        assert self.locks_of(record) == {'host1': [LICENSE]}
        self.tag(self.licensed, {LOCK: None})
        assert self.host_for(self.flavor(), zone='z1') == 'host1'

    def test_a_second_lock_on_the_same_host(self):
        self.tag(self.theirs, {LOCK: 'required'})
        self.give_trait('host3', TRAIT)
        flavor = self.flavor({**KEY, **ONLY3})
        assert self.locks_of(self.fails(flavor)) == {
            'host3': [('theirs', f'filter_tenant_id={OWNER}')]
        }
        self.tag(self.theirs, {'filter_tenant_id': None})
        assert self.host_for(flavor) == 'host3'

    def test_a_resize(self):
        server = self.boot(self.key)
        larger = self.flavor(ONLY3)
        self.act(server, {'resize': {'flavorRef': larger}})
        assert self.locks_of(self.record_of(server, 'move')) == {
            'host3': [('theirs', f'filter_tenant_id={OWNER}')]
        }
        self.tag(self.theirs, {'filter_tenant_id': None})
        self.act(server, {'resize': {'flavorRef': larger}})
        self._wait_for_state_change(server, 'VERIFY_RESIZE')

    def test_a_requested_host(self):
        asked = self._build_server(
            image_uuid=IMAGE, flavor_id=self.flavor(), networks='none'
        )
        asked['host'] = 'host2'
        made = self.admin_api.post_server({'server': asked})
        made = self._wait_for_state_change(made, 'ERROR')
        assert self.locks_of(self.record_of(made)) == {
            'host2': [('lease', f'{LEASE}=true')]
        }
        self.tag(self.lease, {LEASE: None})
        made = self.admin_api.post_server({'server': asked})
        self._wait_for_state_change(made, 'ACTIVE')

    def test_pinned_cpus(self):
        specs = {**ONLY1, 'hw:cpu_policy': 'dedicated'}
        provider = self._get_provider_uuid_by_host('host1')
        self.stock(provider, PCPU=4, MEMORY_MB=8192, DISK_GB=1000)
        record = self.fails(self.flavor(specs))
        assert self.locks_of(record) == {'host1': [LICENSE]}
        assert record['detail']['room']
        self.tag(self.licensed, {LOCK: None})
        # The fake hypervisor has none to pin, so Nova has a filter for it.
        again = self.fails(self.flavor(specs))
        self.assert_cause(again, 'host_filter', filter='NUMATopologyFilter')

    def test_several_servers(self):
        asked = self._build_server(
            image_uuid=IMAGE, flavor_id=self.flavor(ONLY1), networks='none'
        )
        asked['min_count'] = asked['max_count'] = 2
        user = self.user(nova_fixtures.PROJECT_ID)
        made = self._wait_for_state_change(
            user.post_server({'server': asked}), 'ERROR'
        )
        record = self.record_of(made)
        assert self.locks_of(record) == {'host1': [LICENSE]}
        assert record['servers']['number'] == 2
        self.tag(self.licensed, {LOCK: None})
        made = user.post_server({'server': asked})
        self._wait_for_state_change(made, 'ACTIVE')


@pytest.mark.slow
class Aggregates(Mended):
    """Request filters that require or forbid aggregates."""

    REQUEST_FILTERS = (
        *Incidents.REQUEST_FILTERS,
        'aggregate_instance_extra_specs',
    )

    def test_a_host_outside_of_the_required_aggregates(self):
        flavor = self.flavor(
            {**ONLY3, 'aggregate_instance_extra_specs:ssd': 'true'}
        )
        self.tag(self.lease, {'ssd': 'true'})
        record = self.fails(flavor, project=OWNER)
        self.assert_cause(record, 'locked')
        assert record['detail']['hosts'] == {
            'host3': [
                {
                    'filter': 'aggregate_instance_extra_specs',
                    'in_none_of': ['lease'],
                }
            ]
        }
        self.tag(self.theirs, {'ssd': 'true'})
        assert self.host_for(flavor, project=OWNER) == 'host3'

    def test_the_request_filter_of_another_package(self):
        """The lock on the same aggregate is open to the request."""
        uuids = {
            each['name']: each['uuid']
            for each in self.admin_api.api_get('/os-aggregates').body[
                'aggregates'
            ]
        }

        def forbidding(context, spec):
            target = spec.requested_destination = objects.Destination()
            target.forbidden_aggregates = {uuids['licensed']}
            return True

        filters = request_filter.ALL_REQUEST_FILTERS
        filters.append(forbidding)
        try:
            record = self.fails(self.key)
        finally:
            filters.remove(forbidding)
        self.assert_cause(record, 'aggregates')
        assert host_of(self.boot(self.key)) == 'host1'


@pytest.mark.slow
class Room(Mended):
    """What hosts, storage and ports have too little of."""

    def shared(self, total):
        """Have host1 use a storage that others could use, too."""
        storage = self.provider('storage')
        self._set_provider_traits(storage, ['MISC_SHARES_VIA_AGGREGATE'])
        self.stock(storage, DISK_GB=total)
        host = self._get_provider_uuid_by_host('host1')
        self.stock(host, VCPU=10, MEMORY_MB=8192)
        own = self._get_provider_aggregates(host)
        self.put_aggregates(host, [*own, POOL])
        self.put_aggregates(storage, [POOL])
        return storage

    def test_a_shared_storage_is_full(self):
        storage = self.shared(10)
        flavor = self.sized(KEY, disk=20)
        record = self.fails(flavor)
        self.assert_cause(
            record, 'full', short=['DISK_GB:20'], room_behind_locks=False
        )
        self.stock(storage, DISK_GB=100)
        assert self.host_for(flavor) == 'host1'

    def test_a_locked_host_with_shared_storage(self):
        self.shared(100)
        flavor = self.sized(ONLY1, disk=20)
        record = self.fails(flavor)
        assert self.locks_of(record) == {'host1': [LICENSE]}
        assert record['detail']['room']
        self.tag(self.licensed, {LOCK: None})
        assert self.host_for(flavor) == 'host1'

    def boot_with_port(self, flavor, status):
        self.neutron._ports.clear()
        port = self.neutron.port_with_resource_request
        self.neutron._ports[port['id']] = dict(port)
        asked = self._build_server(
            image_uuid=IMAGE,
            flavor_id=flavor,
            networks=[{'port': port['id']}],
        )
        made = self.user(nova_fixtures.PROJECT_ID).post_server(
            {'server': asked}
        )
        return self._wait_for_state_change(made, status)

    def test_the_bandwidth_of_a_port(self):
        bandwidth = 'NET_BW_IGR_KILOBIT_PER_SEC', 'NET_BW_EGR_KILOBIT_PER_SEC'
        for trait in ('CUSTOM_PHYSNET2', 'CUSTOM_VNIC_TYPE_NORMAL'):
            self._create_trait(trait)
        record = self.record_of(self.boot_with_port(self.key, 'ERROR'))
        # No host has any.
        self.assert_cause(record, 'full', everywhere=True)
        assert sorted(record['detail']['short']) == sorted(
            f'{name}:1000' for name in bandwidth
        )
        host = self._get_provider_uuid_by_host('host1')
        bridge = self.provider('bridge', self.provider('agent', host))
        self._set_provider_traits(
            bridge, ['CUSTOM_PHYSNET2', 'CUSTOM_VNIC_TYPE_NORMAL']
        )
        self.stock(bridge, **dict.fromkeys(bandwidth, 500))
        # Equal queries are asked once in a while.
        other = self.sized(KEY, memory=65)
        record = self.record_of(self.boot_with_port(other, 'ERROR'))
        self.assert_cause(record, 'full', room_behind_locks=False)
        assert sorted(record['detail']['short']) == sorted(
            f'{name}:1000' for name in bandwidth
        )
        self.stock(bridge, **dict.fromkeys(bandwidth, 5000))
        assert host_of(self.boot_with_port(self.key, 'ACTIVE')) == 'host1'

    def test_an_evacuation_to_a_full_host(self):
        self.give_trait('host2', TRAIT)
        self.tag(self.lease, {LEASE: None})
        flavor = self.sized(KEY, disk=200)
        server = self.boot(flavor)
        assert host_of(server) == 'host1'
        other = self.boot(self.sized(disk=900))
        assert host_of(other) == 'host2'
        self.computes['host1'].stop()
        [service] = self.admin_api.get_services(
            host='host1', binary='nova-compute'
        )
        self.admin_api.put_service(service['id'], {'forced_down': True})
        self.act(server, {'evacuate': {}}, [200])
        record = self.record_of(server, 'move')
        self.assert_cause(
            record, 'full', short=['DISK_GB:200'], room_behind_locks=False
        )
        self._delete_server(other)
        self.act(server, {'evacuate': {}}, [200])
        self._wait_for_server_parameter(
            server, {'OS-EXT-SRV-ATTR:host': 'host2'}
        )


@pytest.mark.slow
class Hosts(Mended):
    """What hosts are, and what Placement does."""

    def test_a_forbidden_trait(self):
        self.give_trait('host1', 'CUSTOM_OLD')
        flavor = self.flavor({**KEY, 'trait:CUSTOM_OLD': 'forbidden'})
        record = self.fails(flavor)
        self.assert_cause(record, 'traits', forbidden=['CUSTOM_OLD'])
        provider = self._get_provider_uuid_by_host('host1')
        traits = set(self._get_provider_traits(provider)) - {'CUSTOM_OLD'}
        self._set_provider_traits(provider, sorted(traits))
        assert self.host_for(flavor) == 'host1'

    def test_a_live_migration_to_a_disabled_host(self):
        """Other hosts could take the server, but nobody asks for them."""
        self.give_trait('host2', TRAIT)
        self.give_trait('host3', TRAIT)
        self.tag(self.lease, {LEASE: None})
        self.tag(self.theirs, {'filter_tenant_id': None})
        server = self.boot(self.key)
        [service] = self.admin_api.get_services(
            host='host2', binary='nova-compute'
        )
        self.admin_api.put_service(service['id'], {'status': 'disabled'})
        move = {'os-migrateLive': {'host': 'host2', 'block_migration': 'auto'}}
        self.act(server, move)
        record = self.record_of(server, 'move')
        self.assert_cause(record, 'disabled')
        assert record['keys']['requested_host'] == 'host2'
        self.admin_api.put_service(service['id'], {'status': 'enabled'})
        self.act(server, move)
        self._wait_for_server_parameter(
            server, {'OS-EXT-SRV-ATTR:host': 'host2', 'status': 'ACTIVE'}
        )

    def test_a_requested_host_without_inventories(self):
        provider = self._get_provider_uuid_by_host('host3')
        had = {'VCPU': 10, 'MEMORY_MB': 8192, 'DISK_GB': 1000}
        self.stock(provider)
        flavor = self.flavor()
        record = self.record_of(self.forced('host3', flavor, 'ERROR'))
        self.assert_cause(record, 'host', in_tree=provider)
        self.tag(self.theirs, {'filter_tenant_id': None})
        self.stock(provider, **had)
        self.forced('host3', flavor, 'ACTIVE')

    def forced(self, host, flavor, status):
        asked = self._build_server(
            image_uuid=IMAGE, flavor_id=flavor, networks='none'
        )
        made = self.admin_api.post_server({'server': {**asked, 'host': host}})
        return self._wait_for_state_change(made, status)

    def test_placement_fails(self):
        """Once; it accepts the same query afterwards."""
        get = report.SchedulerReportClient.get

        def broken(client, url, **kwargs):
            answer = get(client, url, **kwargs)
            if url.startswith('/allocation_candidates'):
                answer.status_code = 503
            return answer

        name = 'nova.scheduler.client.report.SchedulerReportClient.get'
        self.stub_out(name, broken)
        self.assert_cause(self.fails(self.key), 'placement_down')
        self.stub_out(name, get)
        assert self.host_for(self.key) == 'host1'
