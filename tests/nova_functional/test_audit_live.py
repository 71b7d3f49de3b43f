# SPDX-License-Identifier: Apache-2.0
"""Problems of a live cloud are found, and the shown repairs fix them."""

import contextlib
import io
import re
from unittest import mock

from base import CONF, IMAGE, ISOLATE, host_of
from keystoneauth1 import exceptions as ks_exceptions
from nova.cmd import manage
from nova.scheduler.client import report
from nova.tests import fixtures as nova_fixtures
from oslo_utils.fixture import uuidsentinel
from page_cloud import PageTest
import pytest

from isolate_aggregates import conf as ia_conf

LICENSED = 'CUSTOM_LICENSED_WINDOWS'
LOCK = {f'trait:{LICENSED}': 'required'}
CONFIGURATION = """
[scheduler]
enable_isolated_aggregate_filtering = true
placement_req_required_member_prefix = lease:
placement_req_default_forbidden_member_prefix = lease:
[filter_scheduler]
enabled_filters = {filters}
[isolate_aggregates]
request_filters = isolate_aggregates,reservation_prefix
"""


class AuditTest(PageTest):
    """The APIs are real, and so is whatever is wrong."""

    REQUEST_FILTERS = ('isolate_aggregates', 'reservation_prefix')
    OPTIONS = (
        ISOLATE,
        ('scheduler', 'placement_req_required_member_prefix', ['lease:']),
        (
            'scheduler',
            'placement_req_default_forbidden_member_prefix',
            ['lease:'],
        ),
    )

    def setUp(self):
        super().setUp()
        filters = ','.join(CONF.filter_scheduler.enabled_filters)
        self.config.write_text(CONFIGURATION.format(filters=filters))

    def audit(self, *arguments):
        """Audit the cloud; return its findings by kind.

        A cloud file of the cloud has the same ones.
        """
        asked = ('audit', '-f', 'json', '--fail-on', 'info', *arguments)
        audited = self.run_command(*asked)
        findings = audited.document['findings']
        assert audited.code == (4 if findings else 0), audited
        path = str(self.config.with_name('cloud.yaml'))
        saved = self.run_command('snapshot', 'save', '--output', path)
        assert saved.code == 0, saved
        of_file = self.run_command(*asked, '--snapshot', path)
        assert of_file.document == audited.document
        return {finding['kind']: finding for finding in findings}

    def repair(self, *kinds, servers=False, which=0):
        """Expect findings, run what repairs them, and expect them gone.

        :param which: The index of the repair of each finding.
        """
        arguments = ('--servers',) if servers else ()
        findings = self.audit(*arguments)
        assert set(findings) == set(kinds), findings
        for command in dict.fromkeys(
            findings[kind]['repairs'][which]['command'] for kind in kinds
        ):
            self.execute(command)
        assert self.audit(*arguments) == {}
        return findings

    def execute(self, line):
        """Paste a command into a terminal."""
        line = re.sub(
            'isolate-aggregates ([^&]+)',
            rf'isolate-aggregates --config-file {self.config} \1 --yes',
            line,
        )
        with self.new_terminal():
            typed = self.terminal.type(line)
        assert typed.code == 0, typed.output

    def locked(self, hosts=('host1',), name='win'):
        """Make a locked aggregate as it should be, and a flavor for it."""
        for host in hosts:
            self.give_trait(host, LICENSED)
        return self.aggregate(name, hosts, LOCK)

    def set_members(self, host, *uuids):
        """Make a host a member of aggregates in Placement alone."""
        provider = self._get_provider_uuid_by_host(host)
        self.placement.put(
            f'/resource_providers/{provider}/aggregates',
            list(uuids),
            version='1.18',
        )

    @pytest.mark.slow
    def test_hosts_without_the_trait_or_outside_the_pool(self):
        assert self.audit() == {}
        win = self.aggregate('win', ['host1'], LOCK)
        self.flavor(LOCK)
        findings = self.repair('trait-missing', 'no-host')
        assert findings['trait-missing']['repairs'][0]['safe']

        self.give_trait('host2', LICENSED)
        findings = self.repair('trait-outside')
        assert findings['trait-outside']['subject'] == 'host host2'
        # Its other traits are unchanged.
        provider = self._get_provider_uuid_by_host('host2')
        assert 'COMPUTE_NODE' in self._get_provider_traits(provider)

        # sync removes the traits that it has added.
        self.execute(f'openstack aggregate remove host {win} host1')
        findings = self.audit()
        assert set(findings) == {'trait-outside'}
        [repair] = findings['trait-outside']['repairs']
        assert repair['safe']
        self.execute(repair['command'])
        # Now there is none left for the flavor.
        self.repair('no-host')

    @pytest.mark.slow
    def test_differing_memberships_are_found(self):
        win = self.locked()
        self.flavor(LOCK)
        uuid = self.live_cloud().index.with_key(f'trait:{LICENSED}')[0].uuid
        assert self.audit() == {}

        self.set_members('host1')
        # Isolation is broken, which is why it is an error.
        assert self.host_for(self.flavor()) == 'host1'
        findings = self.repair('not-in-placement')
        assert findings['not-in-placement']['severity'] == 'error'
        assert self.host_for(self.flavor()) == 'host2'

        self.set_members('host2', uuid, uuidsentinel.somebody_elses)
        self.give_trait('host2', LICENSED)
        self.execute(f'openstack aggregate add host {win} host2')
        self.execute(f'openstack aggregate remove host {win} host2')
        self.set_members('host2', uuid, uuidsentinel.somebody_elses)
        findings = self.repair('not-in-nova', 'trait-outside', which=-1)
        assert findings['not-in-nova']['subject'] == 'host host2'
        [left] = self._get_provider_aggregates(
            self._get_provider_uuid_by_host('host2')
        )
        assert left == uuidsentinel.somebody_elses

    @pytest.mark.slow
    def test_a_host_that_was_added_while_placement_was_down(self):
        win = self.locked(hosts=())
        self.give_trait('host1', LICENSED)
        self.flavor(LOCK)
        path = f'/os-aggregates/{win}'
        with mock.patch.object(
            report.SchedulerReportClient,
            'get',
            side_effect=ks_exceptions.ConnectFailure('down'),
        ):
            self.admin_api.api_post(
                f'{path}/action',
                {'add_host': {'host': 'host1'}},
                check_response_status=[500],
            )
        # It is in the aggregate for Nova, which nobody would expect.
        found = self.admin_api.api_get(path).body['aggregate']
        assert found['hosts'] == ['host1']
        self.repair('not-in-placement')

    @pytest.mark.slow
    def test_a_host_that_is_mapped_to_no_cell_is_found(self):
        self.locked()
        self.flavor(LOCK)
        assert self.audit() == {}
        cells = manage.CellV2Commands()
        with contextlib.redirect_stdout(io.StringIO()):
            cells.delete_host(self.cell_mappings['cell1'].uuid, 'host1')
        findings = self.audit()
        assert findings['host-not-mapped']['subject'] == 'host host1'
        # Nobody is told to take the host out of its aggregates.
        assert 'host-without-compute-node' not in findings
        with contextlib.redirect_stdout(io.StringIO()):
            cells.discover_hosts()
        assert self.audit() == {}

    @pytest.mark.slow
    def test_tags_without_effect_are_found(self):
        self.give_trait('host1', LICENSED)
        self.flavor(LOCK)
        for key, value in (
            (f'trait:{LICENSED}', ' required'),
            (f'traits:{LICENSED}', 'required'),
        ):
            number = self.aggregate(f'{key} {value}', ['host1'], {key: value})
            assert self.host_for(self.flavor()) == 'host1'
            self.repair('tag-without-effect')
            assert self.host_for(self.flavor()) == 'host2'
            self.tag(number, {f'trait:{LICENSED}': None})
        number = self.aggregate(
            'odd', ['host1'], {f'trait:{LICENSED}': 'Required'}
        )
        assert self.host_for(self.flavor()) == 'host2'
        self.repair('tag-depends-on-database')
        assert self.host_for(self.flavor()) == 'host2'
        self.tag(number, {f'trait:{LICENSED}': None})
        for key in ('trait:HW_NO_SUCH', f'trait:{LICENSED.lower()}'):
            number = self.aggregate(key, ['host1'], {key: 'required'})
            findings = self.audit()
            assert 'tag-that-nothing-opens' in findings
            *_, repair = findings['tag-that-nothing-opens']['repairs']
            self.execute(repair['command'])
            assert self.audit() == {}
            self.tag(number, {f'trait:{LICENSED}': None})

    @pytest.mark.slow
    def test_flavors_with_useless_or_impossible_keys_are_found(self):
        self.give_trait('host1', LICENSED)
        # From 2.86 on, Nova rejects some extra specs that it accepted before.
        self.admin_api.microversion = '2.85'
        for value in ('Required', 'required '):
            self.flavor({f'trait:{LICENSED}': value})
            self.repair('extra-spec-without-effect')
        self.admin_api.microversion = 'latest'
        split = self.flavor({f'traits:{LICENSED}': 'required'})
        assert 'No valid host' in self.refusal_of(split)
        self.repair('group-without-resources')
        assert self.host_for(split) == 'host1'
        self.flavor({'trait:CUSTOM_GONE': 'required'})
        self.repair('no-host')
        self.flavor({'resources:CUSTOM_FPGA': '1'})
        self.repair('no-host')
        self.flavor({'resources:CUSTOM_RESERVATION_1': '1'})
        self.repair('reservation-flavor-left')
        ended = self.flavor({'lease:1': 'x'})
        assert 'lease:1' in self.refusal_of(ended)
        self.repair('reservation-key-left')

    @pytest.mark.slow
    def test_locks_that_nothing_opens(self):
        self.give_trait('host1', 'CUSTOM_GPU')
        self.locked()
        gpu = {'trait:CUSTOM_GPU': 'required'}
        self.flavor(LOCK)
        both = self.flavor(gpu)
        self.aggregate('gpu', ['host1'], gpu)
        assert 'No valid host' in self.refusal_of(both)
        *_, repair = self.audit()['nothing-opens']['repairs']
        self.execute(repair['command'])
        # This was correct; now only the trait is left.
        assert set(self.audit()) == {'trait-outside'}
        assert self.host_for(self.flavor(LOCK)) == 'host1'

    @pytest.mark.slow
    def test_a_tenants_image_that_opens_a_lock_is_found(self):
        self.locked()
        self.flavor(LOCK)
        image = self.image(LOCK)
        assert self.audit() == {}
        self.glance.images[image]['visibility'] = 'private'
        assert self.host_for(self.flavor(), image=image) == 'host1'
        self.repair('tenant-image-opens')
        assert self.host_for(self.flavor(), image=image) == 'host2'

    def test_misplaced_servers_are_found(self):
        # Page after page.
        self.flags(max_limit=1, group='api')
        server = self.boot(self.flavor())
        assert host_of(server) == 'host1'
        assert self.audit('--servers') == {}
        self.locked()
        keyed = self.boot(self.flavor(LOCK))
        assert host_of(keyed) == 'host1'
        findings = self.repair('server-misplaced', servers=True)
        assert server['id'] in findings['server-misplaced']['subject']
        assert host_of(self.admin_api.get_server(server['id'])) == 'host2'

    # Before compute API 2.68 an operator may force a move to a host.

    def test_a_live_migration_that_bypassed_the_scheduler_is_found(self):
        self.locked()
        server = self.boot(self.flavor())
        assert host_of(server) == 'host2'
        self.admin_api.microversion = '2.67'
        live = {'host': 'host1', 'block_migration': 'auto', 'force': True}
        self.admin_api.post_server_action(
            server['id'], {'os-migrateLive': live}
        )
        self._wait_for_migration_status(server, ['completed'])
        findings = self.audit('--servers')['server-misplaced']
        assert server['id'] in findings['subject']

    @pytest.mark.slow
    def test_an_evacuation_that_bypassed_the_scheduler_is_found(self):
        self.locked()
        server = self.boot(self.flavor())
        assert host_of(server) == 'host2'
        self.computes['host2'].stop()
        [service] = self.admin_api.get_services('nova-compute', 'host2')
        self.admin_api.put_service_force_down(service['id'], True)
        self.admin_api.microversion = '2.67'
        self._evacuate_server(
            server, {'host': 'host1', 'force': True}, 'host1', 'ACTIVE'
        )
        findings = self.audit('--servers')['server-misplaced']
        assert server['id'] in findings['subject']

    @pytest.mark.slow
    def test_a_rebuilt_server_is_checked_as_it_was_placed(self):
        """Its image has lost the key since, and was rebuilt from."""
        self.locked()
        licensed = self.image(LOCK)
        server = self.boot(self.flavor(), image=licensed)
        assert host_of(server) == 'host1'
        self.glance.images[licensed]['properties'] = {}
        self.user(server['tenant_id']).post_server_action(
            server['id'], {'rebuild': {'imageRef': licensed}}
        )
        self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )
        assert 'server-misplaced' not in self.audit('--servers')
        for host, status in (('host1', 0), ('host2', 4)):
            checked = self.run_command(
                'check', '--server', server['id'], '--host', host
            )
            assert checked.code == status, checked.out
        self.admin_api.microversion = '2.67'
        live = {'host': 'host2', 'block_migration': 'auto', 'force': True}
        self.admin_api.post_server_action(
            server['id'], {'os-migrateLive': live}
        )
        self._wait_for_migration_status(server, ['completed'])
        findings = self.audit('--servers')['server-misplaced']
        assert server['id'] in findings['subject']

    def test_servers_are_checked_with_their_hints_and_projects(self):
        self.flags(reservation_key_sources=['hint'], group=ia_conf.GROUP)
        self.restart_scheduler()
        with self.config.open('a') as file:
            file.write('reservation_key_sources = hint\n')
        owner, stranger = 'a' * 32, 'b' * 32
        lease = {'lease:1': 'true', 'blazar:owner': owner}
        number = self.aggregate('lease', ['host1'], lease)
        flavor = self.flavor()
        server = self.boot(flavor, hints={'lease:1': 'yes'}, project=owner)
        assert host_of(server) == 'host1'
        assert self.host_for(flavor, project=stranger) == 'host2'
        assert self.audit('--servers') == {}
        self.tag(number, {'blazar:owner': stranger})
        findings = self.audit('--servers')
        assert set(findings) == {'server-misplaced'}
        assert server['id'] in findings['server-misplaced']['subject']
        # Nowhere may it be.
        assert findings['server-misplaced']['repairs'] == []

    def test_a_cell_that_is_down_is_not_called_clean(self):
        server = self.boot(self.flavor())
        assert self.audit('--servers') == {}
        with nova_fixtures.DownCellFixture():
            # Nova cannot list the compute nodes.
            audited = self.run_command('audit', '--servers')
            assert (audited.code, audited.out) == (1, '')
            assert 'DBError' in audited.err
            [found] = self.live_cloud().nova.servers()
        assert (found.id, found.flavor) == (server['id'], None)

    @pytest.mark.slow
    def test_stale_rollups_and_leftovers_are_found(self):
        first = self.locked()
        self.locked(['host2'], 'win-2')
        self.flavor(LOCK)
        self.execute('isolate-aggregates sync')
        assert self.audit() == {}
        self.execute(f'openstack aggregate remove host {first} host1')
        findings = self.repair('rollup-stale', 'trait-outside')
        assert findings['rollup-stale']['repairs'][0]['safe']
        self.execute(f'openstack aggregate add host {first} host1')
        findings = self.repair('rollup-lagging', 'trait-missing')
        assert findings['rollup-lagging']['repairs'][0]['safe']

        path = '/resource_classes/CUSTOM_RESERVATION_1'
        self.placement.put(path, None, version='1.7')
        self.repair('reservation-class-left')
        self.placement.post(
            '/resource_providers', {'name': 'blazar_host9'}, version='1.20'
        )
        self.repair('reservation-provider-left')

        self.placement.delete(
            f'/resource_providers/{self._get_provider_uuid_by_host("host2")}'
        )
        findings = self.audit()
        assert 'host2' in findings['host-without-compute-node']['problem']

    def test_fix_makes_safe_repairs(self):
        self.aggregate('win', ['host1'], LOCK)
        self.flavor(LOCK)
        # Not safe, as it is not known which of the two is right.
        self.aggregate('odd', [], {f'traits:{LICENSED}': 'required'})
        fixed = self.run_command('audit', '-f', 'json', '--fix', '--yes')
        kinds = [f['kind'] for f in fixed.document['findings']]
        assert (fixed.code, kinds) == (4, ['tag-without-effect'])
        assert 'providers changed: 1' in fixed.err
        provider = self._get_provider_uuid_by_host('host1')
        assert LICENSED in self._get_provider_traits(provider)

    @pytest.mark.slow
    def test_the_everyday_commands_leave_a_clean_cloud(self):
        self.aggregate('win', ['host1'])
        flavor = self.flavor()
        lock = ('win', '--trait', LICENSED)
        grant = ('--flavor', flavor, '--trait', LICENSED)
        run = self.run_command
        assert run('lock', 'create', *lock).code == 0
        # What is left to do.
        assert set(self.audit()) == {'nothing-opens'}
        assert run('key', 'add', *grant).code == 0
        assert self.host_for(flavor) == 'host1'
        assert self.audit('--servers') == {}
        assert run('lock', 'delete', *lock).code == 0
        assert set(self.audit()) == {'no-host'}
        assert run('key', 'remove', *grant).code == 0
        assert self.audit('--servers') == {}

    @pytest.mark.slow
    def test_disabled_isolation_is_found(self):
        self.locked()
        self.flavor(LOCK)
        self.flags(
            enable_isolated_aggregate_filtering=False, group='scheduler'
        )
        text = self.config.read_text()
        self.config.write_text(text.replace('ing = true', 'ing = false'))
        assert self.host_for(self.flavor(), image=IMAGE) == 'host1'
        [kind] = self.audit()
        assert kind == 'isolation-off'
