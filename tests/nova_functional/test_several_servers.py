# SPDX-License-Identifier: Apache-2.0
"""Two servers that one request asks for, on one host.

nova-scheduler reads the allocation candidates once, and claims the first of a
host for each server.
"""

from base import host_of
from day_two import CommandTest
from nova.tests import fixtures as nova_fixtures
import pytest
from reservation_cloud import ReservationTest

CARD = 'CUSTOM_CARD'


def boot_two(test, flavor, status):
    """Ask for two servers in one request; return both as an operator."""
    server = test._build_server(
        flavor_id=flavor, networks='none', image_uuid=test.image({})
    )
    server['min_count'] = server['max_count'] = 2
    # Without it only the first is returned.
    server['return_reservation_id'] = True
    user = test.user(nova_fixtures.PROJECT_ID)
    answer = user.api_post('/servers', {'server': server})
    listed = test.admin_api.api_get(
        f'/servers?reservation_id={answer.body["reservation_id"]}'
    )
    made = listed.body['servers']
    assert len(made) == 2
    return [test._wait_for_state_change(one, status) for one in made]


def give_cards(test, host, units):
    """Add child providers to a host, each with so many cards."""
    test.placement.put(f'/resource_classes/{CARD}', {}, version='1.20')
    parent = test._get_provider_uuid_by_host(host)
    for number, total in enumerate(units):
        answer = test.placement.post(
            '/resource_providers',
            {'name': f'{host}-{number}', 'parent_provider_uuid': parent},
            version='1.20',
        )
        answer = test.placement.put(
            f'/resource_providers/{answer.body["uuid"]}/inventories',
            {
                'resource_provider_generation': 0,
                'inventories': {CARD: {'total': total}},
            },
            version='1.20',
        )
        assert answer.status == 200


@pytest.mark.slow
class CardsTest(CommandTest):
    """Hosts of which only the first has cards."""

    def capacity(self, flavor):
        """Return the first line of the answer, and whether more is said."""
        asked = self.run_command('capacity', 'list', '--flavor', flavor)
        assert asked.code == 0, asked
        return asked.out.splitlines()[0], 'of a single request' in asked.out

    def test_two_children_hold_one_server_of_a_request_each_not_two(self):
        give_cards(self, 'host1', (1, 1))
        flavor = self.flavor({f'resources:{CARD}': '1'})
        room = '2 more servers of this flavor fit.'
        assert self.capacity(flavor) == (room, True)
        for server in boot_two(self, flavor, 'ERROR'):
            assert host_of(server) is None
        assert [self.host_for(flavor) for _ in range(2)] == ['host1'] * 2

    def test_one_child_holds_both(self):
        give_cards(self, 'host1', (2,))
        flavor = self.flavor({f'resources:{CARD}': '1'})
        room = '2 more servers of this flavor fit.'
        assert self.capacity(flavor) == (room, False)
        for server in boot_two(self, flavor, 'ACTIVE'):
            assert host_of(server) == 'host1'


class SlotsTest(ReservationTest):
    """All slots of a host are on one child."""

    def test_two_slots_of_one_host_are_taken_by_one_request(self):
        reservation = self.reserve('--amount', '2', '--affinity', 'same')
        [(host, slots)] = self.slots(reservation).items()
        assert slots == (2, 0)
        for server in boot_two(self, reservation, 'ACTIVE'):
            assert host_of(server) == host
        assert self.slots(reservation) == {host: (2, 2)}

    def test_slots_of_different_hosts_are_taken_by_one_request(self):
        reservation = self.reserve('--amount', '2', '--affinity', 'different')
        hosts = {
            host_of(server) for server in boot_two(self, reservation, 'ACTIVE')
        }
        assert hosts == {'host1', 'host2'}
