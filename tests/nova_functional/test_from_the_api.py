# SPDX-License-Identifier: Apache-2.0
"""From the body of ``POST /servers`` on, commands ask what Nova asks.

Each body is sent to a real nova-api. What nova-scheduler then sends to
Placement is what ``candidate list --query`` prints for the same arguments, and
a server gets a host only if ``explain`` calls it a candidate.
"""

import json
import time
from urllib import parse

from base import IMAGE, SECONDS, host_of
from day_two import CommandTest
from nova import utils
from nova.scheduler.client import report
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
import pytest


class FromTheApiTest(CommandTest):
    """A cloud whose queries to Placement are recorded."""

    def setUp(self):
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        self.queries = []
        ask = report.SchedulerReportClient.get_allocation_candidates

        def recorded(client, context, resources):
            self.queries.append(resources.to_querystring())
            return ask(client, context, resources)

        self.stub_out(
            f'{report.__name__}.SchedulerReportClient'
            '.get_allocation_candidates',
            recorded,
        )

    def small_flavor(self, **more):
        """Make a flavor that fits often into a host."""
        # From 2.86 on, Nova validates each extra spec alone.
        with utils.temporary_mutation(
            self.api_fixture.admin_api, microversion='2.85'
        ):
            return self._create_flavor(
                **{
                    'name': 'small',
                    'id': 'small',
                    'vcpu': 1,
                    'memory_mb': 64,
                    'disk': 1,
                    'ephemeral': 0,
                    **more,
                }
            )

    def sent(self, flavor, image=IMAGE, networks='none', hints=None, **more):
        """Boot a server; return it and the queries to Placement."""
        self.queries.clear()
        server = self._build_server(
            image_uuid=image, flavor_id=flavor, networks=networks
        )
        made = self.admin_api.post_server(
            {
                'server': {**server, **more},
                'os:scheduler_hints': hints or {},
            }
        )
        until = time.monotonic() + SECONDS
        while made.get('status', 'BUILD') == 'BUILD':
            assert time.monotonic() < until
            time.sleep(0.05)
            made = self.admin_api.get_server(made['id'])
        return made, list(self.queries)

    def candidates(self, *arguments):
        """Return the hosts that ``explain`` calls candidates."""
        result = self.run_command('explain', *arguments, '-f', 'json')
        assert (result.code, result.err) == (0, '')
        return {
            host['name']
            for host in result.document['hosts']
            if host['verdict'] == 'candidate'
        }

    def query(self, *arguments):
        """Return the query that the command prints."""
        result = self.run_command('candidate', 'list', '--query', *arguments)
        assert (result.code, result.err) == (0, '')
        return result.out.strip()


class ZoneTest(FromTheApiTest):
    """Zones in the body, with and without a forced host."""

    @pytest.mark.slow
    def test_the_zone_of_a_forced_host_replaces_the_requested_one(self):
        self.aggregate('first', ['host1'], zone='az1')
        self.aggregate('second', ['host2'], zone='az2')
        self._start_compute('host3')
        self.small_flavor()
        self.flags(default_schedule_zone='az1')
        self.config.write_text(
            f'{self.config.read_text()}'
            '[DEFAULT]\ndefault_schedule_zone = az1\n'
        )
        for zone, expected in (
            (None, 'host1'),
            ('az2', 'host2'),
            ('az2:host2', 'host2'),
            ('az1:host2', 'host2'),
            (':host2', 'host2'),
            ('az1::host2', 'host2'),
            ('az1:host2:host2', 'host2'),
            ('az2:host3', 'host3'),
            ('nova:host3', 'host3'),
            ('nova:host2', 'host2'),
            ('az2:', 'host2'),
        ):
            more = {} if zone is None else {'availability_zone': zone}
            server, queries = self.sent('small', **more)
            arguments = ('--flavor', 'small') + (
                () if zone is None else ('--availability-zone', zone)
            )
            assert host_of(server) == expected, zone
            assert [self.query(*arguments)] == queries, zone
            assert expected in self.candidates(*arguments), zone

    def test_a_host_that_is_only_requested_must_be_in_the_zone(self):
        self.aggregate('first', ['host1'], zone='az1')
        self.aggregate('second', ['host2'], zone='az2')
        self.small_flavor()
        for zone, status in (('az1', 'ERROR'), ('az2', 'ACTIVE')):
            server, queries = self.sent(
                'small', availability_zone=zone, host='host2'
            )
            assert server['status'] == status
            arguments = (
                *('--flavor', 'small', '--host', 'host2'),
                *('--availability-zone', zone),
            )
            assert [self.query(*arguments)] == queries
            assert bool(self.candidates(*arguments)) == (status == 'ACTIVE')

    def test_a_zone_whose_compute_services_are_disabled_is_refused(self):
        self.aggregate('second', ['host2'], zone='az2')
        self.small_flavor()
        [service] = self.admin_api.get_services(
            binary='nova-compute', host='host2'
        )
        self.admin_api.put_service(service['id'], {'status': 'disabled'})
        with pytest.raises(client.OpenStackApiException, match='not availab'):
            self.sent('small', availability_zone='az2')
        arguments = ('--flavor', 'small', '--availability-zone', 'az2')
        result = self.run_command('explain', *arguments)
        assert (result.code, result.err) == (
            4,
            'nova-api refuses availability zone az2, as the compute services '
            'of all hosts in it are disabled; specify one of nova.\n',
        )
        # It is not refused while any of them is enabled, even if that is down.
        self._start_compute('host3')
        [second] = self.admin_api.api_get('/os-aggregates').body['aggregates']
        self.admin_api.add_host_to_aggregate(second['id'], 'host3')
        [service] = self.admin_api.get_services(
            binary='nova-compute', host='host3'
        )
        self.admin_api.put_service_force_down(service['id'], True)
        server, _ = self.sent('small', availability_zone='az2')
        assert server['status'] == 'ERROR'
        assert self.candidates(*arguments) == set()


class BodyTest(FromTheApiTest):
    """Flavors, images and other parts of the body."""

    def agree(
        self,
        extra_specs=None,
        properties=None,
        arguments=(),
        needs=None,
        **body,
    ):
        """Check that the query is Nova's, or that both refuse the request.

        Return the server, if nova-api accepts it.
        """
        number = len(self.api.get_flavors())
        flavor = self.small_flavor(
            name=f'flavor-{number}',
            id=f'flavor-{number}',
            vcpu=2,
            extra_spec=extra_specs,
        )
        image = self.image(properties or {})
        self.glance.images[image].update(needs or {})
        asked = ('--flavor', flavor, '--image', image, *arguments)
        try:
            server, queries = self.sent(flavor, image, **body)
        except client.OpenStackApiException as exc:
            if exc.response.status_code != 400:
                raise
            finished = self.run_command('candidate', 'list', '--query', *asked)
            assert finished.code == 4
            assert finished.err.startswith('nova-api refuses flavor '), asked
            return None
        query = self.query(*asked)
        # Nova may ask again with VCPU for PCPU.
        assert query == queries[0]
        return server

    def not_known(self, *arguments):
        """Return the sentences about what the answer does not consider."""
        finished = self.run_command('explain', *arguments, '-f', 'json')
        assert finished.code == 0, finished.err
        return finished.document['summary']['not_known']

    @pytest.mark.slow
    def test_flavors_and_images_lead_to_the_same_query(self):
        self._create_trait('CUSTOM_A')
        for extra_specs, properties in (
            ({}, {}),
            ({'hw:cpu_policy': 'dedicated'}, {}),
            (
                {
                    'hw:cpu_policy': 'mixed',
                    'hw:cpu_dedicated_mask': '^0',
                    'hw:emulator_threads_policy': 'isolate',
                },
                {},
            ),
            ({'hw:mem_page_size': 'any'}, {'hw_mem_page_size': '2048'}),
            ({'hw:numa_nodes': '2'}, {}),
            ({}, {'hw_cpu_policy': 'dedicated'}),
            (
                {'hw:mem_encryption': 'true'},
                {'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'},
            ),
            ({'resources:VCPU': '1', 'resources:MEMORY_MB': '32'}, {}),
            ({'resources:PCPU': '2'}, {}),
            ({'trait:CUSTOM_A': 'required'}, {}),
            ({'trait:CUSTOM_A': 'forbidden'}, {}),
            ({}, {'trait:CUSTOM_A': 'required'}),
            ({'hw:tpm_version': '2.0', 'hw:tpm_model': 'tpm-crb'}, {}),
            ({'os:secure_boot': 'required'}, {}),
            ({'hw:virtio_packed_ring': 'true'}, {}),
            ({}, {'hw_pci_numa_affinity_policy': 'socket'}),
        ):
            assert self.agree(extra_specs, properties), extra_specs

    def test_what_the_api_refuses_has_no_query(self):
        for extra_specs, properties in (
            ({'hw:cpu_thread_policy': 'isolate'}, {}),
            ({'hw:locked_memory': 'true'}, {}),
            ({}, {'hw_mem_page_size': 'large'}),
            ({'hw:numa_nodes': '4'}, {}),
            ({'hw:mem_encryption': 'true'}, {}),
            ({'hw:cpu_policy': 'mixed'}, {}),
            ({'resources:PCPU': '3'}, {}),
            ({'resources:PCPU': '2', 'resources:VCPU': '2'}, {}),
            ({'hw:cpu_realtime': 'true'}, {}),
            ({'hw:emulator_threads_policy': 'isolate'}, {}),
            ({'hw:pmu': 'true'}, {'hw_pmu': 'false'}),
            ({'hw:serial_port_count': '1'}, {'hw_serial_port_count': '2'}),
            ({}, {'hw_disk_bus': 'odd'}),
            ({}, {'hw_video_ram': 'much'}),
        ):
            assert not self.agree(extra_specs, properties), extra_specs

    def test_an_image_must_fit_into_the_flavor(self):
        for key, small, large in (
            ('min_ram', 64, 65),
            ('min_disk', 1, 2),
            ('size', 1 << 30, (1 << 30) + 1),
        ):
            assert self.agree(needs={key: small}), key
            assert not self.agree(needs={key: large}), key

    @pytest.mark.slow
    def test_several_servers_are_requested_like_one(self):
        assert self.agree(min_count=2, max_count=2)

    def test_a_volume_needs_no_disk_of_the_host(self):
        volume = {
            'source_type': 'volume',
            'destination_type': 'volume',
            'boot_index': 0,
            'uuid': nova_fixtures.CinderFixture.IMAGE_BACKED_VOL,
        }
        assert self.agree(
            arguments=('--boot-from-volume',),
            imageRef='',
            block_device_mapping_v2=[volume],
        )

    @pytest.mark.slow
    def test_a_server_group_removes_the_limit(self):
        for policy in ('affinity', 'anti-affinity'):
            group = self.api.post_server_groups(
                {'name': policy, 'policy': policy}
            )['id']
            assert self.agree(
                arguments=('--hint', f'group={group}'), hints={'group': group}
            )
        self.config.write_text(
            '[filter_scheduler]\nenabled_filters = ServerGroupAffinityFilter\n'
        )
        assert 'ServerGroupAffinityFilter' in str(
            self.not_known('--flavor', '1', '--hint', f'group={group}')
        )

    def test_a_port_requests_resources(self):
        port = self.neutron.port_with_resource_request
        flavor = self.small_flavor()
        _, [query] = self.sent(flavor, networks=[{'port': port['id']}])
        request = port['resource_request']
        asked = ','.join(
            [f'{rc}={n}' for rc, n in request['resources'].items()]
            + request['required']
        )
        ours = self.query(
            *('--flavor', flavor, '--image', IMAGE, '--port-request', asked)
        )
        # The suffix of a group has no meaning.
        assert ours.replace('_port_1', port['id']) == query

    @pytest.mark.slow
    def test_a_remote_managed_port_requires_a_trait(self):
        port = {
            **self.neutron.port_1,
            'id': 'd0000000-0000-4000-8000-000000000001',
            'binding:vnic_type': 'remote-managed',
        }
        self.neutron._ports[port['id']] = port
        flavor = self.small_flavor()
        _, [query] = self.sent(flavor, networks=[{'port': port['id']}])
        assert 'COMPUTE_REMOTE_MANAGED_PORTS' in query
        ours = self.query(
            *('--flavor', flavor, '--image', IMAGE),
            *('--port-request', 'remote-managed'),
        )
        assert ours == query

    @pytest.mark.slow
    def test_a_device_profile_is_named_as_not_known_without_cyborg(self):
        self.useFixture(nova_fixtures.CyborgFixture())
        flavor = self.small_flavor(
            extra_spec={'accel:device_profile': 'fakedev-dp'}
        )
        _, [query] = self.sent(flavor)
        asked = ('--flavor', flavor, '--image', IMAGE)
        ours = self.query(*asked)
        theirs = parse.parse_qsl(query)
        assert set(parse.parse_qsl(ours)) < set(theirs)
        assert all(
            'device_profile' in key
            for key, _ in set(theirs) - set(parse.parse_qsl(ours))
        )
        assert self.not_known(*asked)[0].startswith(
            'what device profile fakedev-dp requests: '
        )

    @pytest.mark.slow
    def test_pci_devices_in_placement_are_named_as_not_known(self):
        alias = {'name': 'a1', 'vendor_id': '1234', 'product_id': '1235'}
        self.flags(alias=[json.dumps(alias)], group='pci')
        self.flags(pci_in_placement=True, group='filter_scheduler')
        flavor = self.small_flavor(
            extra_spec={'pci_passthrough:alias': 'a1:1'}
        )
        _, [query] = self.sent(flavor)
        asked = ('--flavor', flavor, '--image', IMAGE)
        theirs = set(parse.parse_qsl(query)) - {
            *parse.parse_qsl(self.query(*asked))
        }
        assert 'CUSTOM_PCI_1234_1235:1' in dict(theirs).values()
        assert self.not_known(*asked)[0].startswith(
            'which PCI devices pci_passthrough:alias=a1:1 requests from '
        )
        # An alias that Nova does not know is refused.
        self.flags(alias=[], group='pci')
        with pytest.raises(client.OpenStackApiException, match='not defined'):
            self.sent(flavor)

    def test_routed_networks_of_a_new_server_are_named_as_not_known(self):
        flavor = self.small_flavor()
        self.config.write_text(
            f'{self.config.read_text()}'
            'query_placement_for_routed_network_aggregates = true\n'
        )
        assert self.not_known('--flavor', flavor, '--image', IMAGE)[0] == (
            'the segments of the network of the server, whose aggregates '
            'Nova requires, are not known'
        )
