# SPDX-License-Identifier: Apache-2.0
"""Hosts that Blazar hands out, without Blazar's own filter in nova."""

from base import CloudTest

OWNER, GUEST, STRANGER = 'a' * 32, 'b' * 32, 'c' * 32
LEASE, CLASS = '4d17d41a-lease', 'CUSTOM_RESERVATION_4D17D41A'


class BlazarReservationTest(CloudTest):
    """The rules 1, 2 and 4 of the filter ``blazar_reservation``."""

    REQUEST_FILTERS = ('blazar_reservation',)
    HOSTS = ('host1', 'host2', 'host3')

    def test_blazars_hosts_take_only_servers_with_the_reservation(self):
        self.aggregate('freepool', ['host1'])
        self.aggregate(
            LEASE,
            ['host2'],
            {'blazar:owner': OWNER, GUEST: 'blazar:tenant'},
            zone=f'blazar_{LEASE}',
        )
        plain = self.flavor()

        # Rule 4: requests without a reservation get none of Blazar's hosts.
        for project in (OWNER, STRANGER):
            assert self.host_for(plain, project=project) == 'host3'

        # Rule 1: the hint, of a project that owns it or was granted it.
        hint = {'reservation': LEASE}
        for project in (OWNER, GUEST):
            assert self.host_for(plain, hints=hint, project=project) == 'host2'
        refused = 'the hint '
        message = self.refusal_of(plain, hints=hint, project=STRANGER)
        assert message == (
            f'{refused}reservation={LEASE} names a reservation that project '
            f'{STRANGER} does not own'
        )
        unknown = {'reservation': 'none-such'}
        message = self.refusal_of(plain, hints=unknown, project=OWNER)
        assert message == (
            f'{refused}reservation=none-such names no existing reservation'
        )

    def test_the_class_of_an_instance_reservation_picks_the_host(self):
        """Rule 2: with such a flavor the free pool is not closed."""
        self.aggregate('freepool', ['host1', 'host2'])
        self.reserve_on('host2', amount=1)
        flavor = self.flavor({f'resources:{CLASS}': '1'})

        assert self.host_for(self.flavor()) == 'host3'
        assert self.host_for(flavor) == 'host2'
        message = self.refusal_of(flavor)
        assert message.startswith('No valid host was found')

    def reserve_on(self, host, amount):
        """Give a host slots of the reservation, as Blazar does."""
        self._create_resource_class(CLASS)
        parent = self._get_provider_uuid_by_host(host)
        provider = self.placement.post(
            '/resource_providers',
            {'name': f'blazar_{host}', 'parent_provider_uuid': parent},
            version='1.20',
        ).body
        self.placement.put(
            f'/resource_providers/{provider["uuid"]}/inventories',
            {
                'resource_provider_generation': provider['generation'],
                'inventories': {CLASS: {'total': amount}},
            },
        )
