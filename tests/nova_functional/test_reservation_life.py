# SPDX-License-Identifier: Apache-2.0
"""The life of a reservation with a real Nova and a real Placement.

The sections are those of the spec `Placement API support for instance
reservation
<https://specs.openstack.org/openstack/blazar-specs/specs/rocky/placement-api.html>`_,
without Blazar.
"""

import datetime

from base import ISOLATE, RESERVATIONS_CLOSE, CloudTest, OverApi, host_of
from keystoneauth1 import session, token_endpoint
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
from oslo_utils.fixture import uuidsentinel
import pytest

from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names

NOW = datetime.datetime.now(datetime.UTC)
HOUR = datetime.timedelta(hours=1)
OWNER, STRANGER = nova_fixtures.PROJECT_ID, 'c' * 32
SHAPE = reservations.Shape(vcpus=4, ram=512, disk=5)


class ReservationTest(OverApi, CloudTest):
    """Three hosts, two of which can be reserved."""

    # What the Placement of Nova's fixtures takes for its administrator.
    TOKEN = 'admin'
    HOSTS = ('host1', 'host2', 'host3')
    REQUEST_FILTERS = ('isolate_aggregates', 'reservation_prefix')
    OPTIONS = (
        ISOLATE,
        RESERVATIONS_CLOSE,
    )

    def setUp(self):
        super().setUp()
        compute = f'http://{uuidsentinel.osapi_host}:80/v2.1'
        connection = Connection(
            session.Session(token_endpoint.Token(compute, self.TOKEN)),
            endpoints={
                'compute': compute,
                'placement': self.placement.fixture.endpoint,
            },
        )
        self.store = reservations.ReservationStore(connection)

    def enable(self, *hosts):
        for host in hosts:
            reservations.enable_host(self.store, host)

    def reserve(self, amount, start=NOW, end=None, affinity=None):
        reservation = reservations.new(
            OWNER, amount, SHAPE, start, end, affinity
        )
        return reservations.create(self.store, reservation, NOW).reservation

    def child(self, host):
        return names.provider_uuid(self._get_provider_uuid_by_host(host))

    def allocations(self, server):
        """Return what a server takes, by the name of the provider."""
        found = self._get_allocations_by_server_uuid(server['id'])
        providers = {
            entry['uuid']: entry['name']
            for entry in self.store.placement.resource_providers()
        }
        return {
            providers[uuid]: allocation['resources']
            for uuid, allocation in found.items()
        }

    def ended(self, reservation, now=NOW):
        """End a reservation and wait until nothing is left of it."""
        status = reservations.end(self.store, reservation.id, now)
        for _ in range(50):
            if status.state is reservations.Phase.ENDED:
                return
            [status] = reservations.reconcile_all(self.store, now)
        raise AssertionError(status)

    @pytest.mark.smoke
    def records(self):
        """Return the records of reservations, without what is kept of them."""
        return [
            entry
            for entry in self.store.compute.records()
            if not names.archive_of(entry.flavor.id)
        ]

    def test_the_life_of_a_reservation(self):
        # When creating a host.
        self.enable('host1', 'host2')
        providers = {
            entry['name']: entry
            for entry in self.store.placement.resource_providers()
        }
        assert (
            providers['blazar_host1']['parent_provider_uuid']
            == providers['host1']['uuid']
        )

        # When creating a lease.
        reservation = self.reserve(3, NOW + HOUR, NOW + 2 * HOUR)
        flavor = self.admin_api.api_get(f'/flavors/{reservation.id}').body[
            'flavor'
        ]
        assert flavor['os-flavor-access:is_public'] is False
        assert (
            flavor['extra_specs'][f'resources:{reservation.resource_class}']
            == '1'
        )
        with pytest.raises(client.OpenStackApiException):
            self.boot(reservation.id)

        # When starting a lease.
        later = NOW + HOUR
        [status] = reservations.reconcile_all(self.store, later)
        assert status.state is reservations.Phase.ACTIVE
        assert status.slots == 3

        # When launching instances. Nobody else can.
        with pytest.raises(client.OpenStackApiException):
            self.boot(reservation.id, project=STRANGER)
        servers = [self.boot(reservation.id) for _ in range(3)]
        # On as few hosts as can be.
        assert {host_of(server) for server in servers} == {'host1'}
        host = host_of(servers[0])
        assert self.allocations(servers[0]) == {
            host: {'VCPU': 4, 'MEMORY_MB': 512, 'DISK_GB': 5},
            f'blazar_{host}': {reservation.resource_class: 1},
        }
        # There is room for a fourth, but no slot: counting alone decides.
        message = self.refusal_of(reservation.id)
        assert message.startswith('No valid host was found')
        # The allocations outlive the periodic update of the compute node.
        self._run_periodics()
        assert self.allocations(servers[0])[f'blazar_{host}'] == {
            reservation.resource_class: 1
        }
        [status] = reservations.list_reservations(self.store, later)
        assert (status.used, status.problems) == (3, ())

        # When terminating a lease.
        self.ended(reservation, later)
        assert self.records() == []
        classes = self.store.placement.get('/resource_classes')
        assert reservation.resource_class not in str(classes)
        for server in servers:
            self._wait_until_deleted(server)
        assert not [
            server
            for server in self.admin_api.get_servers()
            if server['status'] != 'ERROR'
        ]

        # When deleting a host.
        reservations.disable_host(self.store, 'host1')
        assert self.host_for(self.flavor()) == 'host1'
        names_left = {
            entry['name']
            for entry in self.store.placement.resource_providers()
        }
        assert names_left == {'host1', 'host2', 'host3', 'blazar_host2'}

    def test_ordinary_servers_never_land_in_the_pool(self):
        self.enable('host1', 'host2')
        reservation = self.reserve(2)
        plain = self.flavor()
        claims = self.image({f'trait:{names.TRAIT}': 'required'})
        tagged = self.image({names.POOL_KEY: 'true'})

        assert self.host_for(plain) == 'host3'
        assert self.host_for(plain, image=tagged) == 'host3'
        # What claims the trait of the pool gets nothing at all.
        assert self.refusal_of(plain, image=claims)
        assert self.host_for(reservation.id) in ('host1', 'host2')

    def test_affinity_is_enforced_by_the_slots_of_each_host(self):
        self.enable('host1', 'host2')
        together = self.reserve(2, affinity=True)
        apart = self.reserve(2, affinity=False)
        hosts = [self.host_for(together.id) for _ in range(2)]
        assert len(set(hosts)) == 1
        hosts = [self.host_for(apart.id) for _ in range(2)]
        assert len(set(hosts)) == 2

    @pytest.mark.slow
    def test_a_host_with_ordinary_servers_is_refused(self):
        server = self.boot(self.flavor())
        with pytest.raises(errors.ReservationHostError) as caught:
            self.enable('host1')
        assert server['id'] in str(caught.value)
        assert self.store.read().hosts == {}

    @pytest.mark.slow
    def test_shelved_and_soft_deleted_servers_end_too(self):
        self.flags(reclaim_instance_interval=3600)
        self.enable('host1')
        reservation = self.reserve(2)
        shelved = self._shelve_server(self.boot(reservation.id))
        deleted = self.boot(reservation.id)
        self.user(OWNER).delete_server(deleted['id'])
        self._wait_for_state_change(
            self.admin_api.get_server(deleted['id']), 'SOFT_DELETED'
        )
        assert shelved['status'].startswith('SHELVED')

        self.ended(reservation)
        for server in (shelved, deleted):
            self._wait_until_deleted(server)
        assert self.records() == []

    @pytest.mark.slow
    def test_reserved_servers_move_within_the_slots(self):
        self.enable('host1', 'host2')
        reservation = self.reserve(2, affinity=False)
        server = self.boot(reservation.id)
        came = host_of(server)
        goes = 'host2' if came == 'host1' else 'host1'

        server = self._migrate_server(server)
        server = self._confirm_resize(server)
        assert host_of(server) == goes
        assert self.allocations(server)[f'blazar_{goes}'] == {
            reservation.resource_class: 1
        }
        self._live_migrate(server, 'completed')
        server = self.admin_api.get_server(server['id'])
        assert host_of(server) == came
        # Both slots have a server now, so there is nowhere to go.
        self.boot(reservation.id)
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_action_fail_completion(
            server, 'migrate', 'conductor_migrate_server'
        )
        assert host_of(self.admin_api.get_server(server['id'])) == came

    def test_a_server_is_evacuated_to_another_slot(self):
        self.enable('host1', 'host2')
        reservation = self.reserve(2, affinity=False)
        server = self.boot(reservation.id)
        failed = host_of(server)
        other = 'host2' if failed == 'host1' else 'host1'
        self.computes[failed].stop()
        self._force_service_down(failed)

        [status] = reservations.reconcile_all(self.store, NOW)
        assert status.problems == (
            f'host {failed} is down: 1 slot there, 1 with a server; start its '
            f'nova-compute, or run reservation repair {reservation.id} --from '
            f'{failed} --evacuate',
        )
        server = self._evacuate_server(server, expected_host=other)
        assert self.allocations(server)[f'blazar_{other}'] == {
            reservation.resource_class: 1
        }

    def test_a_server_that_is_resized_leaves_the_reservation(self):
        self.enable('host1', 'host2')
        reservation = self.reserve(1)
        plain = self._create_flavor(
            vcpu=1, memory_mb=64, disk=5, ephemeral=0, name='plain'
        )
        server = self._resize_server(self.boot(reservation.id), plain)
        assert host_of(server) == 'host3'

        # Nobody has confirmed it.
        self.ended(reservation)
        server = self._wait_for_state_change(server, 'ACTIVE')
        assert set(self.allocations(server)) == {'host3'}

    @pytest.mark.slow
    def test_a_deleted_compute_service_leaves_nothing_behind(self):
        self.enable('host1', 'host2')
        reservation = self.reserve(1)
        [host] = reservations.show(self.store, reservation.id, NOW).hosts
        other = 'host2' if host == 'host1' else 'host1'
        service = self.admin_api.get_services(binary='nova-compute', host=host)
        self.computes[host].stop()
        self._force_service_down(host)
        self.admin_api.api_delete(f'/os-services/{service[0]["id"]}')

        # Nova deletes the reservation provider as well, with its slots.
        [status] = reservations.reconcile_all(self.store, NOW)
        assert set(status.hosts) == {other}
        assert status.problems == ()
        assert [h.name for h in reservations.list_hosts(self.store)] == [other]

    def _force_service_down(self, host):
        self.admin_api.put_service_force_down(
            self.admin_api.get_services(binary='nova-compute', host=host)[0][
                'id'
            ],
            True,
        )
