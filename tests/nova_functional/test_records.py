# SPDX-License-Identifier: Apache-2.0
"""Staged incidents: the record alone names the true cause."""

import json
import time

from base import (
    IMAGE,
    ISOLATE,
    LOCK,
    RESERVATIONS,
    ShorteningCloudTest,
    host_of,
)
import former_log
import jsonschema
from keystoneauth1 import exceptions as ks_exceptions
from nova.scheduler.client import report
from nova.tests import fixtures as nova_fixtures
from record_schema import SCHEMA

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.nova import records, registration

OWNER, STRANGER = 'a' * 32, 'b' * 32
TRAIT = 'CUSTOM_LICENSED_WINDOWS'
KEY = {f'trait:{TRAIT}': 'required'}
LEASE = 'reservation:4d17d41a'


class Incidents(ShorteningCloudTest):
    """host1 is licensed, host2 reserved, host3 is of a tenant."""

    REQUEST_FILTERS = (
        'isolate_aggregates',
        'reservation_prefix',
        'isolate_tenants',
    )
    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        (ia_conf.GROUP, 'reservation_key_sources', ['image', 'hint']),
        (
            'filter_scheduler',
            'enabled_filters',
            [
                'ComputeFilter',
                'ImagePropertiesFilter',
                'ServerGroupAntiAffinityFilter',
                'ServerGroupAffinityFilter',
                'NUMATopologyFilter',
                'IsolatedAggregatesFilter',
            ],
        ),
    )

    def setUp(self):
        super().setUp()
        # More than Placement takes here, also on a busy machine.
        self.stub_out('isolate_aggregates.examination._SECONDS', 60.0)
        self.flags(instances=500, cores=-1, ram=-1, group='quota')
        self.licensed = self.aggregate(
            'licensed', ['host1'], {LOCK: 'required'}, zone='z1'
        )
        self.lease = self.aggregate(
            'lease', ['host2'], {LEASE: 'true', 'blazar:owner': OWNER}
        )
        self.theirs = self.aggregate(
            'theirs', ['host3'], {'filter_tenant_id': OWNER}
        )
        self.give_trait('host1', TRAIT)
        self.give_trait('host3', 'CUSTOM_ONLY3')
        for trait in ('CUSTOM_LICENCED_WINDOWS', 'CUSTOM_SSD'):
            self._create_trait(trait)
        self.key = self.flavor(KEY)
        self.former_lines = {}
        if former_log.is_wanted():
            self.keep_former_lines()

    def keep_former_lines(self):
        """Keep the line that was logged before there were records."""
        make = records._record

        def recorded(recorder, trace):
            record = make(recorder, trace)
            if trace.decision is not None:
                self.former_lines[record['server']] = former_log.line(
                    trace.decision, record['server'], record['project']
                )
            return record

        self.stub_out('isolate_aggregates.nova.records._record', recorded)

    def sized(self, specs=None, vcpu=1, memory=64, disk=1):
        return self._create_flavor(
            vcpu=vcpu,
            memory_mb=memory,
            disk=disk,
            ephemeral=0,
            extra_spec=specs,
        )

    def records_of(self, server):
        return [
            json.loads(line[line.index('{') :])
            for line in self.log().splitlines()
            if '[isolate_aggregates.decisions]' in line and server in line
        ]

    def record_of(self, server, operation='boot'):
        """Wait for the last record of a server without a host."""
        until = time.monotonic() + 60
        found = []
        while not found and time.monotonic() < until:
            found = [
                record
                for record in self.records_of(server['id'])
                if record['operation'] == operation
                and record['result'] != 'placed'
            ]
            time.sleep(0.1)
        assert found, f'no record of {server["id"]}'
        jsonschema.validate(found[-1], SCHEMA)
        if former_log.is_wanted():
            line = self.former_lines.get(server['id'], '')
            former_log.note(self.id(), found[-1], line)
        return found[-1]

    def fails(self, flavor=None, **request):
        """Boot a server that gets no host; return its record."""
        server = self.boot(flavor or self.flavor(), status='ERROR', **request)
        return self.record_of(server)

    def assert_cause(self, record, cause, **detail):
        assert record['cause'] == cause, record
        for name, value in detail.items():
            assert record['detail'].get(name) == value, record


class KeysAndLocks(Incidents):
    """What a request lacks."""

    def closed_by(self, record):
        """Return the aggregates and locks of each host."""
        self.assert_cause(record, 'locked')
        return {
            host: [
                (entry['name'], *entry.get('locks', ())) for entry in entries
            ]
            for host, entries in record['detail']['hosts'].items()
        }

    def test_the_key_is_missing(self):
        record = self.fails()
        assert self.closed_by(record) == {
            'host1': [('licensed', f'{LOCK}=required')],
            'host2': [('lease', f'{LEASE}=true')],
            'host3': [('theirs', f'filter_tenant_id={OWNER}')],
        }
        assert record['detail']['room']

    def test_the_lock_of_a_tenant(self):
        flavor = self.flavor({'trait:CUSTOM_ONLY3': 'required'})
        assert self.closed_by(self.fails(flavor)) == {
            'host3': [('theirs', f'filter_tenant_id={OWNER}')]
        }

    def test_an_open_lock_is_not_named(self):
        self.tag(self.licensed, {'trait:CUSTOM_SSD': 'required'})
        assert self.closed_by(self.fails(self.key)) == {
            'host1': [('licensed', 'trait:CUSTOM_SSD=required')]
        }

    def test_the_trait_is_misspelt(self):
        record = self.fails(
            self.flavor({'trait:CUSTOM_LICENCED_WINDOWS': 'required'})
        )
        misspelt = 'CUSTOM_LICENCED_WINDOWS'
        self.assert_cause(record, 'traits', nowhere=[misspelt])
        # Newer releases of Nova require OWNER_NOVA, too.
        assert misspelt in record['detail']['required']

    def test_the_trait_does_not_exist(self):
        record = self.fails(self.flavor({'trait:CUSTOM_NONE': 'required'}))
        self.assert_cause(record, 'placement_rejected')
        assert 'as invalid (400)' in record['detail']['reason']
        assert 'CUSTOM_NONE' in record['detail']['reason']

    def test_an_image_requires_a_trait(self):
        image = self.image({'trait:CUSTOM_SSD': 'required'})
        record = self.fails(self.key, image=image)
        self.assert_cause(record, 'traits', nowhere=['CUSTOM_SSD'])

    def test_a_reservation_of_others(self):
        record = self.fails(hints={LEASE: 'true'}, project=STRANGER)
        self.assert_cause(record, 'refused')
        assert record['result'] == 'refused'
        [refusal] = record['refusals']
        assert refusal['cause'] == 'foreign-reservation'
        assert record['keys']['hints'] == {LEASE: ['true']}

    def test_a_reservation_that_does_not_exist(self):
        record = self.fails(self.flavor({'reservation:none': '1'}))
        self.assert_cause(record, 'refused')
        assert 'reservation:none' in record['detail']['reason']

    def test_the_zone(self):
        flavor = self.flavor({'trait:CUSTOM_ONLY3': 'required'})
        record = self.fails(flavor, project=OWNER, zone='z1')
        self.assert_cause(record, 'zone')
        assert record['keys']['zone'] == 'z1'

    def test_the_project(self):
        self.flags(
            limit_tenants_to_placement_aggregate=True, group='scheduler'
        )
        record = self.fails(self.key, project=OWNER)
        self.assert_cause(record, 'project')

    def test_novas_own_request_filter(self):
        self.flags(
            limit_tenants_to_placement_aggregate=True,
            placement_aggregate_required_for_tenants=True,
            group='scheduler',
        )
        self.assert_cause(self.fails(), 'nova_refused')

    def test_a_forced_host(self):
        server = self._build_server(
            image_uuid=IMAGE,
            flavor_id=self.flavor(),
            networks='none',
            az='nova:host2',
        )
        made = self.admin_api.post_server({'server': server})
        record = self.record_of(self._wait_for_state_change(made, 'ERROR'))
        assert self.closed_by(record) == {
            'host2': [('lease', f'{LEASE}=true')]
        }
        assert record['keys']['forced'] == ['host2']

    def test_a_rebuild(self):
        server = self.boot(self.flavor(), image=self.image(KEY))
        assert host_of(server) == 'host1'
        self.user(server['tenant_id']).post_server_action(
            server['id'], {'rebuild': {'imageRef': IMAGE}}
        )
        self._wait_for_state_change(server, 'ERROR')
        record = self.record_of(server, 'rebuild')
        assert self.closed_by(record) == {
            'host1': [('licensed', f'{LOCK}=required')]
        }

    def test_a_cold_migration(self):
        server = self.boot(self.key)
        self.admin_api.post_server_action(
            server['id'],
            {'migrate': None},
            check_response_status=[202, 400],
        )
        self.assert_cause(self.record_of(server, 'move'), 'traits')

    def test_a_shortened_query(self):
        for number in range(12):
            self.aggregate(f'more-{number}', ['host1'], {LOCK: 'required'})
        self.roll_up('host1')
        self.flags(max_query_length=300, group=ia_conf.GROUP)
        self.restart_scheduler()
        record = self.fails()
        assert record['query']['shortened']
        assert 'host1' in self.closed_by(record)

    def closed_in_placement_only(self):
        """Lock the licensed host in Placement by what no query names."""
        for number in range(12):
            self.aggregate(
                f'more-{number}', [], {'trait:CUSTOM_SSD': 'required'}
            )
        self.flags(max_query_length=300, group=ia_conf.GROUP)
        self.restart_scheduler()
        aggregates = self.admin_api.api_get('/os-aggregates').body[
            'aggregates'
        ]
        last = max(a['uuid'] for a in aggregates if 'more-' in a['name'])
        provider = self._get_provider_uuid_by_host('host1')
        members = self._get_provider_aggregates(provider)
        self.put_aggregates(provider, [*members, last])

    def test_the_only_host_is_locked_in_placement_alone(self):
        """Nova tries to use it, and finds no candidate left."""
        self.closed_in_placement_only()
        record = self.fails(self.key)
        self.assert_cause(record, 'locked', filter='IsolatedAggregatesFilter')
        assert record['host_filters']['dropped'] == {
            'IsolatedAggregatesFilter': 1
        }

    def test_placement_does_not_answer_the_check_of_hosts(self):
        self.closed_in_placement_only()

        def broken():
            raise exception.ServiceUnreachable('Placement', None, 'is gone.')

        registration.installed().hosts._placement = broken
        record = self.fails(self.key)
        self.assert_cause(record, 'source_failed')
        assert 'hosts cannot be checked' in record['detail']['reason']

    def test_a_query_that_is_too_long(self):
        self.flags(max_query_length=60, group=ia_conf.GROUP)
        self.restart_scheduler()
        self.assert_cause(self.fails(), 'query_too_long')


class RoomAndHosts(Incidents):
    """What hosts lack, and what Nova itself decides."""

    def test_full_behind_the_lock(self):
        self.boot(self.sized(disk=900), project=OWNER)
        record = self.fails(self.sized(disk=200), project=OWNER)
        self.assert_cause(
            record, 'full', short=['DISK_GB:200'], room_behind_locks=True
        )

    def test_larger_than_any_host(self):
        record = self.fails(self.sized(KEY, vcpu=100))
        self.assert_cause(
            record, 'full', short=['VCPU:100'], room_behind_locks=False
        )

    def test_nothing_is_left_of_a_host(self):
        """Neither memory, disk nor processors, as of a bare metal node."""
        server = self.boot(self.key)
        provider = self._get_provider_uuid_by_host('host1')
        inventory = self._get_provider_inventory(provider)
        used = self._get_provider_usages(provider)
        for name, of_class in inventory.items():
            total = of_class['total'] - of_class['reserved']
            free = total * of_class['allocation_ratio'] - used[name]
            if free:
                self.placement.put(
                    f'/resource_providers/{provider}/inventories/{name}',
                    {
                        'resource_provider_generation': self.generation(
                            provider
                        ),
                        **of_class,
                        'allocation_ratio': 1.0,
                        'total': used[name] + of_class['reserved'],
                        'max_unit': max(1, used[name]),
                    },
                )
        record = self.fails(self.key)
        self.assert_cause(record, 'full')
        assert server

    def generation(self, provider):
        return self.placement.get(f'/resource_providers/{provider}').body[
            'generation'
        ]

    def test_some_of_several_servers_fit(self):
        server = self._build_server(
            image_uuid=IMAGE,
            flavor_id=self.sized(KEY, disk=400),
            networks='none',
        )
        server['min_count'] = server['max_count'] = 3
        made = self.user(nova_fixtures.PROJECT_ID).post_server(
            {'server': server}
        )
        made = self._wait_for_state_change(made, 'ERROR')
        record = self.record_of(made)
        self.assert_cause(record, 'full', servers=3, placed=2)

    def test_pinned_cpus(self):
        record = self.fails(
            self.sized({**KEY, 'hw:cpu_policy': 'dedicated'}, vcpu=20)
        )
        self.assert_cause(record, 'full')
        assert 'PCPU' in json.dumps(record['detail']['short'])

    def test_an_image_for_another_hypervisor(self):
        image = self.image({'img_hv_type': 'xen'})
        self.assert_cause(
            self.fails(self.key, image=image),
            'host_filter',
            filter='ImagePropertiesFilter',
        )

    def test_numa(self):
        flavor = self.sized({**KEY, 'hw:numa_nodes': '2'}, vcpu=2)
        self.assert_cause(
            self.fails(flavor), 'host_filter', filter='NUMATopologyFilter'
        )

    def test_a_server_group(self):
        group = self.user(nova_fixtures.PROJECT_ID).post_server_groups(
            {'name': 'g', 'policy': 'anti-affinity'}
        )
        hints = {'group': group['id']}
        assert host_of(self.boot(self.key, hints=hints)) == 'host1'
        record = self.fails(self.key, hints=hints)
        self.assert_cause(
            record, 'host_filter', filter='ServerGroupAntiAffinityFilter'
        )
        assert record['host_filters'] == {
            'start': 1,
            'dropped': {'ServerGroupAntiAffinityFilter': 1},
        }

    def test_a_service_is_disabled_or_down(self):
        service = self.admin_api.get_services(
            host='host1', binary='nova-compute'
        )[0]['id']
        self.admin_api.put_service(service, {'status': 'disabled'})
        self.assert_cause(self.fails(self.key), 'disabled')
        self.admin_api.put_service(service, {'status': 'enabled'})
        self.admin_api.put_service(service, {'forced_down': True})
        self.assert_cause(
            self.fails(self.key), 'host_filter', filter='ComputeFilter'
        )

    def test_claims_are_lost(self):
        self.stub_out(
            'nova.scheduler.client.report.SchedulerReportClient'
            '.claim_resources',
            lambda *args, **kwargs: False,
        )
        self.assert_cause(self.fails(self.key), 'claims')

    def test_the_aggregates_cannot_be_read(self):
        def broken():
            raise exception.ServiceUnreachable(
                "Nova's database", None, 'does not answer.'
            )

        registration.installed()._cache._read = broken
        record = self.fails(self.key)
        self.assert_cause(record, 'source_failed')
        assert 'does not answer' in record['detail']['reason']

    def test_placement_is_down(self):
        get = report.SchedulerReportClient.get

        def down(client, url, **kwargs):
            if url.startswith('/allocation_candidates'):
                raise ks_exceptions.ConnectFailure('down')
            return get(client, url, **kwargs)

        self.stub_out(
            'nova.scheduler.client.report.SchedulerReportClient.get', down
        )
        self.assert_cause(self.fails(self.key), 'placement_down')

    def test_a_cell_is_down(self):
        """Nova knows none of its hosts, which Placement offers."""
        self.stub_out(
            'nova.scheduler.host_manager.HostManager._get_computes_for_cells',
            lambda *args, **kwargs: ({}, {}),
        )
        self.assert_cause(self.fails(self.key), 'unknown_hosts', offered=1)
