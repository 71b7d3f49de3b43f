# SPDX-License-Identifier: Apache-2.0
"""Reservations in Placement, from the command to the server.

Nova's API, nova-scheduler with the filters, nova-compute and Placement are
real; what is reserved is reserved by the commands of an operator.
"""

from base import OTHER_IMAGE, RESERVATIONS, host_of
from nova.tests.functional.api import client
import pytest
from reservation_cloud import OWNER, STRANGER, TRAIT, ReservationTest

from isolate_aggregates import conf as ia_conf


class LifeTest(ReservationTest):
    """From the first host to the last."""

    def state(self):
        """Return the JSON output for hosts and reservations."""
        aggregates = self.admin_api.api_get('/os-aggregates').body
        providers = self.placement.get('/resource_providers', version='1.39')
        return (
            {a['name']: a['hosts'] for a in aggregates['aggregates']},
            {
                entry['name']: self._get_provider_aggregates(entry['uuid'])
                for entry in providers.body['resource_providers']
            },
            self.leftovers(),
        )

    @pytest.mark.slow
    def test_from_enabling_hosts_to_disabling_them(self):
        hosts = self.done('host', 'list')['hosts']
        assert [(h['name'], h['enabled']) for h in hosts] == [
            ('host1', True),
            ('host2', True),
        ]
        before = self.state()
        reservation = self.reserve('--amount', '2', '--affinity', 'different')
        assert self.slots(reservation) == {'host1': (1, 0), 'host2': (1, 0)}

        # By Placement's counting alone, without any server group.
        servers = [self.boot(reservation), self.boot(reservation)]
        assert {host_of(server) for server in servers} == {'host1', 'host2'}
        self._run_periodics()
        for server in servers:
            assert self.allocation(server['id']) == self.with_slot(
                host_of(server), reservation
            )
        assert self.slots(reservation) == {'host1': (1, 1), 'host2': (1, 1)}
        message = self.refusal_of(reservation)
        assert message.startswith('No valid host was found')
        assert self.host_for(self.flavor()) == 'host3'

        rebuilt = self._rebuild_server(servers[0], OTHER_IMAGE)
        assert host_of(rebuilt) == host_of(servers[0])

        text = self.refused('host', 'set', '--disable', 'host1')
        assert f'has slots of reservation {reservation}' in text
        output = self.run_command(
            'reservation', 'end', reservation, '--dry-run'
        )
        assert output.code == 3
        text = self.refused('set', reservation, '--amount', '1')
        assert 'cannot have 1 slot, because 2 have servers' in text

        self.end(reservation)
        assert self.state() == before
        assert self.done('list')['reservations'] == []

        self.done('host', 'set', '--disable', '--delete-pool', *self.POOL)
        assert self.done('host', 'list')['hosts'] == []
        assert self.host_for(self.flavor()) == 'host1'

    def test_affinity_by_the_counting_of_placement_alone(self):
        reservation = self.reserve('--amount', '2', '--affinity', 'same')
        [(host, slots)] = self.slots(reservation).items()
        assert slots == (2, 0)
        assert [self.host_for(reservation) for _ in range(2)] == [host, host]

    def test_a_planned_reservation_cannot_be_used_before_its_start(self):
        document = self.done(
            'create',
            *('--project', OWNER, '--like', self.flavor(), '--start', '1h'),
        )
        assert document['state'] == 'planned'
        with pytest.raises(client.OpenStackApiException) as caught:
            self.boot(document['id'])
        assert caught.value.response.status_code == 400
        # Whoever may use all flavors finds no slot.
        assert self.done('reconcile')['reservations'][0]['hosts'] == {
            'host1': {'slots': 1, 'open': 0, 'used': 0}
        }

    def test_hosts_with_ordinary_servers_are_refused(self):
        server = self.boot(self.flavor())
        assert host_of(server) == 'host3'
        message = self.refused('host', 'set', '--enable', 'host3')
        assert (
            f'runs servers without a reservation ({server["id"]})' in message
        )
        assert self.host_for(self.flavor()) == 'host3'


class FenceTest(ReservationTest):
    """The filter ``isolate_aggregates`` by itself guards the pool."""

    def test_reserved_and_other_servers_never_share_a_host(self):
        reservation = self.reserve('--amount', '2')
        [host] = self.slots(reservation)
        plain = self.flavor()
        assert self.host_for(plain) == 'host3'
        assert self.host_for(reservation) == host

        with pytest.raises(client.OpenStackApiException) as caught:
            self.boot(reservation, project=STRANGER)
        assert caught.value.response.status_code == 400
        assert 'could not be found' in str(caught.value)

        # What tenants may write opens nothing: they get another host or none.
        trait = self.image({f'trait:{TRAIT}': 'required'})
        message = self.refusal_of(plain, image=trait)
        assert message.startswith('No valid host was found')
        key = self.image({'reservation:pool': 'true'})
        self.ask_with_key(plain, {'image': key})
        self.ask_with_key(plain, {'hints': {'reservation:pool': 'true'}})
        self.ask_with_key(plain, {'hints': {'reservation': 'freepool'}})

        # Naming a host does not help an operator either.
        server = self.boot(plain)
        self.api.post_server_action(
            server['id'], {'migrate': {'host': 'host2'}}
        )
        self._wait_for_action_fail_completion(
            server, 'migrate', 'conductor_migrate_server'
        )
        assert host_of(self._show_server(server)) == 'host3'

        # Rather none than one of the pool.
        self.compute('host3', status='disabled')
        message = self.refusal_of(plain)
        assert message.startswith('No valid host was found')
        # In the other direction, there is no slot elsewhere.
        self.compute(host, status='disabled')
        message = self.refusal_of(reservation)
        assert message.startswith('No valid host was found')

    def ask_with_key(self, flavor, claim):
        """Ask with what a tenant claims to have."""
        assert self.host_for(flavor, **claim) == 'host3'


@pytest.mark.slow
class FenceByPrefixTest(FenceTest):
    """So does the filter ``reservation_prefix``."""

    REQUEST_FILTERS = ('reservation_prefix',)
    OPTIONS = (
        *RESERVATIONS,
        (ia_conf.GROUP, 'request_filters', list(REQUEST_FILTERS)),
        (ia_conf.GROUP, 'reservation_key_sources', ['image', 'hint']),
    )

    def ask_with_key(self, flavor, claim):
        if claim == {'hints': {'reservation': 'freepool'}}:
            return super().ask_with_key(flavor, claim)
        message = self.refusal_of(flavor, **claim)
        assert 'does not own it' in message
        return None


@pytest.mark.slow
class FenceByBlazarFilterTest(FenceTest):
    """And so does the filter ``blazar_reservation``."""

    REQUEST_FILTERS = ('blazar_reservation',)
    OPTIONS = ((ia_conf.GROUP, 'request_filters', list(REQUEST_FILTERS)),)

    def ask_with_key(self, flavor, claim):
        if claim != {'hints': {'reservation': 'freepool'}}:
            return super().ask_with_key(flavor, claim)
        message = self.refusal_of(flavor, **claim)
        assert message.startswith('the hint reservation=freepool names')
        return None


class OthersTest(ReservationTest):
    """The commands that are not for reservations know about them."""

    @pytest.mark.slow
    def test_sync_and_audit_accept_the_pool(self):
        reservation = self.reserve('--amount', '2')
        self.boot(reservation)
        self.boot(self.flavor())

        synced = self.run_command('sync', '--yes', '-f', 'json')
        assert (synced.code, synced.err) == (0, '')
        for host in self.POOL:
            provider = self._get_provider_uuid_by_host(host)
            assert TRAIT not in self._get_provider_traits(provider)
        audited_cloud = self.run_command('audit', '--servers', '-f', 'json')
        # Some flavors are larger than these hosts.
        kinds = {f['kind'] for f in audited_cloud.document['findings']}
        assert kinds <= {'no-host'}

        locked = self.run_command(
            'lock', 'create', 'freepool', '--trait', TRAIT
        )
        assert locked.code == 1
        assert 'only reservation providers may have it' in locked.err
