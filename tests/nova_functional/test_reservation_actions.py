# SPDX-License-Identifier: Apache-2.0
"""Later operations on servers of a reservation, on a real Nova.

A slot is on a host: a server that moves needs a free one elsewhere, and gives
its own back once it is gone for good.
"""

from base import host_of
import pytest
from reservation_cloud import TAKEN, ReservationTest

from isolate_aggregates_reservations.commands import times
from isolate_aggregates_reservations.problems import LATE


class MoveTest(ReservationTest):
    """Moves within the pool."""

    def reserved_server(self):
        """Return a reservation of one slot, with its server on host1."""
        reservation = self.reserve('--amount', '1')
        server = self.boot(reservation)
        host = host_of(server)
        return (
            reservation,
            server,
            host,
            {'host1': 'host2', 'host2': 'host1'}[host],
        )

    def spare_slot(self, reservation, host):
        """Drain a host: all slots that come now are elsewhere."""
        self.compute(host, status='disabled')
        self.done('set', reservation, '--amount', '2')

    @pytest.mark.slow
    def test_without_a_free_slot_elsewhere_nothing_moves(self):
        found, server, host, _ = self.reserved_server()
        self.api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_action_fail_completion(
            server, 'migrate', 'conductor_migrate_server'
        )
        live = {'host': None, 'block_migration': 'auto'}
        self.api.post_server_action(server['id'], {'os-migrateLive': live})
        self._wait_for_migration_status(server, ['error'])
        assert host_of(self._show_server(server)) == host
        assert self.allocation(server['id']) == self.with_slot(host, found)

    @pytest.mark.slow
    def test_a_live_migration_moves_to_another_slot(self):
        found, server, host, other = self.reserved_server()
        self.spare_slot(found, host)
        assert self.slots(found) == {host: (1, 1), other: (1, 0)}
        server = self._live_migrate(server)
        assert host_of(server) == other
        assert self.allocation(server['id']) == self.with_slot(other, found)
        self.done('set', found, '--amount', '1')
        assert self.slots(found) == {other: (1, 1)}
        self.done('host', 'set', '--disable', host)

    def test_cold_migration_confirmed_and_reverted(self):
        found, server, host, other = self.reserved_server()
        self.spare_slot(found, host)
        server = self._migrate_server(server)
        assert host_of(server) == other
        # The migration keeps the slot until it is confirmed.
        assert self.slots(found) == {host: (1, 1), other: (1, 1)}
        server = self._revert_resize(server)
        assert host_of(server) == host
        assert self.slots(found) == {host: (1, 1), other: (1, 0)}
        server = self._migrate_server(server)
        server = self._confirm_resize(server)
        assert self.slots(found) == {host: (1, 0), other: (1, 1)}
        assert self.allocation(server['id']) == self.with_slot(other, found)

    @pytest.mark.slow
    def test_an_evacuation_moves_to_another_slot(self):
        found, server, host, other = self.reserved_server()
        self.break_host(host)
        repaired = self.run_command('reservation', 'repair')
        assert repaired.code == 3
        assert (
            f'host {host} is down: 1 slot there, 1 with a server'
            in repaired.err
        )
        result = self.run_command('reservation', 'set', found, '--amount', '2')
        assert result.code == 0, result
        assert self.slots(found) == {host: (1, 1), other: (1, 0)}
        server = self._evacuate_server(server)
        assert host_of(server) == other
        # Nova keeps the allocation on the failed host until it is back.
        assert self.slots(found) == {host: (1, 1), other: (1, 1)}

        self.computes[host].start()
        self.compute(host, forced_down=False)
        self._run_periodics()
        assert self.allocation(server['id']) == self.with_slot(other, found)
        self.done('set', found, '--amount', '1')
        assert self.slots(found) == {other: (1, 1)}

    @pytest.mark.slow
    def test_all_on_one_host_are_evacuated_in_one_command(self):
        reservation = self.reserve('--amount', '2', '--affinity', 'same')
        servers = [self.boot(reservation) for _ in range(2)]
        host = host_of(servers[0])
        other = {'host1': 'host2', 'host2': 'host1'}[host]
        self.break_host(host)
        result = self.run_command('reservation', 'repair', '--evacuate')
        assert result.code == 3, result
        for server in servers:
            server = self._wait_for_server_parameter(
                server, {'OS-EXT-SRV-ATTR:host': other, 'status': 'ACTIVE'}
            )
        # Nova keeps what they had on the failed host until that is back.
        assert self.slots(reservation) == {host: (2, 2), other: (2, 2)}

        self.computes[host].start()
        self.compute(host, forced_down=False)
        self._run_periodics()
        self.done('reconcile')
        assert self.slots(reservation) == {other: (2, 2)}
        assert self.host_for(self.flavor()) == 'host3'
        self.done('host', 'set', '--disable', host)

    def test_shelved_servers_have_no_slot(self):
        found, server, host, _ = self.reserved_server()
        server = self._shelve_server(server)
        assert self.slots(found) == {host: (1, 0)}
        server = self._unshelve_server(server)
        assert host_of(server) == host
        assert self.allocation(server['id']) == self.with_slot(host, found)

        server = self._shelve_server(server)
        second = self.boot(found)
        self.api.post_server_action(server['id'], {'unshelve': None})
        self._wait_for_server_parameter(
            server,
            {'OS-EXT-STS:task_state': None, 'status': 'SHELVED_OFFLOADED'},
        )

        self.end(found)
        assert self.is_gone(server)
        assert self.is_gone(second)


class ResizeTest(ReservationTest):
    """A resize to a flavor of another kind leaves or enters the pool."""

    @pytest.mark.slow
    def test_a_server_can_be_resized_out_of_the_reservation_and_back(self):
        reservation = self.reserve()
        server = self.boot(reservation)
        [host] = self.slots(reservation)
        server = self._resize_server(server, self.flavor())
        assert host_of(server) == 'host3'
        # The slot is kept for the case that it is reverted.
        assert self.slots(reservation) == {host: (1, 1)}
        server = self._revert_resize(server)
        assert host_of(server) == host
        assert self.allocation(server['id']) == self.with_slot(
            host, reservation
        )

        server = self._resize_server(server, self.flavor())
        server = self._confirm_resize(server)
        assert self.slots(reservation) == {host: (1, 0)}
        assert self.allocation(server['id']) == {'host3': TAKEN}

        server = self._resize_server(server, reservation)
        server = self._confirm_resize(server)
        assert host_of(server) == host
        assert self.allocation(server['id']) == self.with_slot(
            host, reservation
        )

    @pytest.mark.slow
    def test_a_server_can_be_resized_to_another_reservation(self):
        one, other = self.reserve(), self.reserve()
        server = self.boot(one)
        self.flags(allow_resize_to_same_host=True)
        server = self._resize_server(server, other)
        server = self._confirm_resize(server)
        [host] = self.slots(other)
        assert self.allocation(server['id']) == self.with_slot(host, other)
        assert list(self.slots(one).values()) == [(1, 0)]

    def test_a_reservation_can_end_while_a_server_leaves_it(self):
        reservation = self.reserve()
        server = self.boot(reservation)
        server = self._resize_server(server, self.flavor())
        # The resize is confirmed and cannot be reverted.
        self.end(reservation)
        server = self._wait_for_state_change(server, 'ACTIVE')
        assert host_of(server) == 'host3'
        assert self.allocation(server['id']) == {'host3': TAKEN}

    @pytest.mark.slow
    def test_a_reservation_can_end_while_a_server_enters_it(self):
        reservation = self.reserve()
        server = self.boot(self.flavor())
        server = self._resize_server(server, reservation)
        self.end(reservation)
        assert self.is_gone(server)


class FailedHostTest(ReservationTest):
    """A host fails, and Nova does not know it yet."""

    def test_an_end_completes_once_nova_knows_that_the_host_is_down(self):
        reservation = self.reserve()
        server = self.boot(reservation)
        host = host_of(server)
        self.computes[host].stop()
        ended = self.run_command('reservation', 'end', reservation, '--yes')
        assert ended.code == 3, ended
        # Nova keeps a server whose nova-compute does not answer.
        later = times.now() + LATE
        self.stub_out(f'{times.__name__}.now', lambda: later)
        [problem] = self.done('show', reservation)['problems']
        assert f'host {host} still has server {server["id"]}' in problem
        assert (
            f'run openstack compute service set --down {host} nova-compute'
            in problem
        )
        self.run_command('reservation', 'reconcile')
        assert not self.is_gone(server)

        self.compute(host, forced_down=True)
        self.run_command('reservation', 'reconcile')
        assert self.is_gone(server)
        self.run_command('reservation', 'reconcile')
        assert self.leftovers() == []


class SoftDeleteTest(ReservationTest):
    """Servers that are deleted can be restored for a while."""

    def setUp(self):
        self.flags(reclaim_instance_interval=3600)
        super().setUp()

    @pytest.mark.slow
    def test_slots_stay_until_soft_deleted_servers_are_reclaimed(self):
        reservation = self.reserve()
        server = self.boot(reservation)
        self.api.delete_server(server['id'])
        server = self._wait_for_state_change(server, 'SOFT_DELETED')
        assert list(self.slots(reservation).values()) == [(1, 1)]
        self.api.post_server_action(server['id'], {'restore': {}})
        server = self._wait_for_state_change(server, 'ACTIVE')
        assert self.allocation(server['id']) == self.with_slot(
            host_of(server), reservation
        )

        self.api.delete_server(server['id'])
        self._wait_for_state_change(server, 'SOFT_DELETED')
        self.end(reservation)
        assert self.is_gone(server)


class ServiceTest(ReservationTest):
    """A compute service is deleted."""

    @pytest.mark.slow
    def test_slots_of_a_deleted_compute_service_move(self):
        reservation = self.reserve()
        server = self.boot(reservation)
        host = host_of(server)
        self.break_host(host)
        [service] = self.admin_api.get_services('nova-compute', host)
        path = f'/os-services/{service["id"]}'
        # Not as long as there are servers.
        self.admin_api.api_delete(path, check_response_status=[409])
        self.api.post_server_action(server['id'], {'forceDelete': None})
        self._wait_until_deleted(server)

        self.admin_api.api_delete(path)
        hosts = [h['name'] for h in self.done('host', 'list')['hosts']]
        assert host not in hosts
        [reconciled] = self.done('reconcile')['reservations']
        assert reconciled['missing'] == 0
        [other] = self.slots(reservation)
        assert other != host
        assert self.host_for(reservation) == other
