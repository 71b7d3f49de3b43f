# SPDX-License-Identifier: Apache-2.0
"""Plans of migrations are carried out by a real Nova, and survival holds."""

import os
import random
from unittest import mock

from base import IMAGE, host_of
from day_two import CommandTest
import pytest

from isolate_aggregates import exception
from isolate_aggregates_tools.compute import migrations

TRAIT = 'CUSTOM_LICENSED'
# The number of the cloud that is made up.
SEED = int(os.environ.get('ROOM_SEED', '1'))


class RoomTest(CommandTest):
    """A cloud with servers that can be moved."""

    HOSTS = ('host1', 'host2', 'host3')

    def setUp(self):
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        self.small = self.named_flavor('small', 1024)
        self.stub_out('isolate_aggregates_tools.room.carry.PAUSE', 0.1)

    def named_flavor(self, name, memory, **extra_specs):
        """Make a flavor; return its id."""
        return self._create_flavor(
            name=name,
            vcpu=1,
            memory_mb=memory,
            disk=1,
            ephemeral=0,
            extra_spec=extra_specs,
        )

    def boot_on(self, host, flavor=None, hints=None):
        """Boot a server on a host."""
        made = self._build_server(
            image_uuid=IMAGE, flavor_id=flavor or self.small, networks='none'
        )
        made = self.admin_api.post_server(
            {
                'server': {**made, 'host': host},
                'os:scheduler_hints': hints or {},
            }
        )
        return self._wait_for_state_change(made, 'ACTIVE')

    def locations(self):
        """Return the host of each server, by id."""
        return {
            each['id']: host_of(self.admin_api.get_server(each['id']))
            for each in self.admin_api.get_servers()
        }

    def history(self):
        """Return the servers of all migrations."""
        body = self.admin_api.api_get('/os-migrations').body
        return sorted(m['instance_uuid'] for m in body['migrations'])

    def relocate(self, *arguments):
        """Run ``relocation create``."""
        return self.run_command('relocation', 'create', *arguments)

    def empty(self, host, *more):
        """Empty a host."""
        return self.relocate('--host', host, '--yes', *more)

    def migrating(self, before):
        """Do something before each migration is started."""
        start = migrations.start

        def started(nova, server, target, live):
            before(server, target)
            start(nova, server, target, live)

        return mock.patch.object(migrations, 'start', started)

    # What goes well.

    @pytest.mark.slow
    def test_a_host_is_emptied_live_and_cold(self):
        running = [self.boot_on('host1') for _ in range(2)]
        off = self._stop_server(self.boot_on('host1'))
        result = self.empty('host1', '--parallel', '2', '-f', 'json')
        assert result.code == 0, result
        document = result.document
        assert {m['id']: m['live'] for m in document['plan']['moves']} == {
            **{server['id']: True for server in running},
            off['id']: False,
        }
        assert {*document['results'].values()} == {'moved'}
        assert 'host1' not in self.locations().values()
        assert document['plan']['at_least'] == 3
        assert self.history() == sorted(s['id'] for s in (*running, off))
        assert self.admin_api.get_server(off['id'])['status'] == 'SHUTOFF'
        # Run again, it moves nothing twice.
        result = self.empty('host1')
        assert result.code == 0
        assert result.out.splitlines()[0] == 'Nothing to move.'
        assert len(self.history()) == 3

    @pytest.mark.slow
    def test_a_cold_migration_is_confirmed_when_nova_is_ready(self):
        """Nova refuses it before, and again once it has begun."""
        server = self._stop_server(self.boot_on('host1'))
        confirm = migrations.confirm
        calls = []

        def refused(nova, one):
            calls.append(one)
            if len(calls) < 3:
                raise exception.BadQuery(
                    'Nova', 'http://nova', 'Instance has not been resized.'
                )
            confirm(nova, one)

        with mock.patch.object(migrations, 'confirm', refused):
            result = self.empty('host1')
        assert result.code == 0, result
        assert len(calls) >= 3
        assert self.locations()[server['id']] != 'host1'

    def test_servers_out_of_place_come_home(self):
        away = self.boot_on('host1')
        aggregate = self.aggregate('win', ['host1'])
        assert (
            self.run_command('lock', 'create', 'win', '--trait', TRAIT).code
            == 0
        )
        keyed = self.named_flavor(
            'keyed', 1024, **{f'trait:{TRAIT}': 'required'}
        )
        home = self.boot_on('host1', keyed)
        result = self.relocate('--out-of-place', '--yes', '-f', 'json')
        assert result.code == 0, result
        [move] = result.document['plan']['moves']
        assert (move['id'], move['source']) == (away['id'], 'host1')
        assert result.document['effect'] is None
        audited = self.run_command('audit', '--servers', '-f', 'json')
        assert not [
            each
            for each in audited.document['findings']
            if each['kind'] == 'server-misplaced'
        ]
        assert self.locations()[home['id']] == 'host1'
        assert aggregate

    @pytest.mark.slow
    def test_a_server_group_keeps_its_servers_apart(self):
        group = self.api.post_server_groups(
            {'name': 'apart', 'policy': 'anti-affinity', 'rules': {}}
        )
        hints = {'group': group['id']}
        one = self.boot_on('host1', hints=hints)
        other = self.boot_on('host2', hints=hints)
        result = self.empty('host1')
        assert result.code == 0, result
        assert self.locations() == {one['id']: 'host3', other['id']: 'host2'}

    @pytest.mark.slow
    def test_it_only_shows_what_it_would_do(self):
        server = self.boot_on('host1')
        result = self.relocate('--host', 'host1', '--dry-run')
        assert result.code == 3
        assert '1 move, least possible.' in result.out
        assert self.locations() == {server['id']: 'host1'}

    # What goes wrong.

    @pytest.mark.slow
    def test_a_target_that_fills_up_meanwhile(self):
        servers = [self.boot_on('host1') for _ in range(2)]
        large = self.named_flavor('large', 7168)
        taken = []

        def fill(server, target):
            if not taken:
                for host in ('host2', 'host3'):
                    # What is left is too little.
                    taken.append(self.boot_on(host, large))

        with self.migrating(fill):
            result = self.empty('host1')
        assert result.code == 1
        assert 'was not moved from host1 to' in result.err
        assert 'Run the command again' in result.err
        where = self.locations()
        assert [where[s['id']] for s in servers] == ['host1', 'host1']
        # Only the first was tried.
        assert len(self.history()) == 1

    @pytest.mark.slow
    def test_a_migration_that_fails(self):
        servers = [self.boot_on('host1') for _ in range(2)]

        def broken(self, context, instance, *args, **kwargs):
            raise exception.IsolateAggregatesError('no route to host')

        self.stub_out(
            'nova.virt.fake.FakeDriver.check_can_live_migrate_destination',
            broken,
        )
        result = self.empty('host1', '-f', 'json')
        assert result.code == 1
        assert 'host1' in result.err
        assert len(result.document['results']) == 1
        where = self.locations()
        assert {where[s['id']] for s in servers} == {'host1'}

    @pytest.mark.slow
    def test_nova_api_that_is_gone(self):
        servers = [self.boot_on('host1') for _ in range(3)]
        calls = []

        def gone(server, target):
            calls.append(server)
            if len(calls) == 2:
                raise exception.ServiceError(
                    'Nova', 'http://nova', 'answered 503.'
                )

        with self.migrating(gone):
            result = self.empty('host1', '-f', 'json')
        assert result.code == 1
        assert 'it is unknown whether it has moved' in result.err
        assert sorted(self.locations().values()).count('host1') == 2
        assert self.empty('host1').code == 0
        assert self.history() == sorted(s['id'] for s in servers)

    @pytest.mark.slow
    def test_nova_api_that_is_gone_for_a_while(self):
        servers = [self.boot_on('host1') for _ in range(2)]
        position = migrations.position
        calls = []

        def looked(nova, server):
            calls.append(server)
            # A look before a move, and one while it runs.
            if len(calls) in (1, 3):
                raise exception.ServiceError(
                    'Nova', 'http://nova', 'answered 503.'
                )
            return position(nova, server)

        with mock.patch.object(migrations, 'position', looked):
            result = self.empty('host1', '-f', 'json')
        assert result.code == 0, result
        assert {*result.document['results'].values()} == {'moved'}
        assert self.history() == sorted(s['id'] for s in servers)

    @pytest.mark.slow
    def test_nova_api_that_stays_away(self):
        self.boot_on('host1')

        def looked(nova, server):
            raise exception.ServiceError(
                'Nova', 'http://nova', 'answered 503.'
            )

        with mock.patch.object(migrations, 'position', looked):
            result = self.empty('host1', '--max-wait', '1')
        assert result.code == 1
        assert 'it is unknown whether it has moved: ' in result.err
        assert not self.history()

    @pytest.mark.slow
    def test_the_operator_interrupts(self):
        servers = [self.boot_on('host1') for _ in range(3)]
        calls = []

        def interrupt(server, target):
            calls.append(server)
            if len(calls) == 2:
                raise KeyboardInterrupt

        with self.migrating(interrupt):
            result = self.empty('host1')
        assert result.code not in (0, 3)
        # The first has moved, and no other was started.
        assert sorted(self.locations().values()).count('host1') == 2
        assert self.empty('host1').code == 0
        assert self.history() == sorted(s['id'] for s in servers)

    @pytest.mark.slow
    def test_a_server_that_has_changed_is_not_moved(self):
        first, second = (self.boot_on('host1') for _ in range(2))
        ids = {first['id'], second['id']}

        def stop(server, target):
            [other] = ids - {server}
            if self.admin_api.get_server(other)['status'] == 'ACTIVE':
                self._stop_server(self.admin_api.get_server(other))

        with self.migrating(stop):
            result = self.empty('host1')
        assert result.code == 1
        assert 'it has changed since it was planned' in result.err
        assert len(self.history()) == 1

    # Survival.

    def evacuated(self, host):
        """Let a host fail, and evacuate its servers; return who stays."""
        ids = [i for i, where in self.locations().items() if where == host]
        self.computes[host].stop()
        [service] = self.admin_api.get_services('nova-compute', host)
        self.admin_api.put_service_force_down(service['id'], True)
        for server in ids:
            self.admin_api.post_server_action(server, {'evacuate': {}})
            one = {'id': server}
            self._wait_for_server_parameter(
                one, {'OS-EXT-STS:task_state': None}
            )
        where = self.locations()
        return {server for server in ids if where[server] == host}

    @pytest.mark.slow
    def test_who_has_nowhere_to_go(self):
        chance = random.Random(SEED)
        hosts = chance.sample(self.HOSTS, chance.choice((1, 2)))
        self.aggregate('win', hosts)
        assert (
            self.run_command('lock', 'create', 'win', '--trait', TRAIT).code
            == 0
        )
        keyed = self.named_flavor(
            'keyed', 1024, **{f'trait:{TRAIT}': 'required'}
        )
        for host in self.HOSTS:
            flavor = keyed if host in hosts else self.small
            for _ in range(chance.randrange(1, 3)):
                self.boot_on(host, flavor)
        result = self.run_command('survival', 'list', '-f', 'json')
        told = result.document
        assert result.code == (0 if told['survived'] else 4)
        failing = chance.choice(self.HOSTS)
        stranded = {
            server['id']
            for case in told['cases']
            if case['hosts'] == [failing]
            for server in case['without_host']
        }
        assert self.evacuated(failing) == stranded
