# SPDX-License-Identifier: Apache-2.0
"""The Nova of a rehearsal answers random changes as a real one does.

The same requests are made to both. Their statuses are equal, and so are the
aggregates and flavors after each of them.
"""

import os
import random

from both_novas import BothNovasTest
import pytest

# How many requests are made, and with which random ones.
REQUESTS = int(os.environ.get('RANDOM_REQUESTS', '150'))
SEED = int(os.environ.get('RANDOM_SEED', '1'))
# Each choice is as likely as the others; some are never valid.
ZONES = ('a', 'b', 'a', 'b', '', ' b', 'b:c', 'z' * 256, None, 1)
NAMES = ('new', 'newer', '', ' new', 'one', 'n' * 255, 'n' * 256, None, 7)
KEYS = ('key', 'trait:CUSTOM_A b-c_d.e', '', 'key/slash', 'klé', 'k' * 256)
VALUES = ('value', '', 'v' * 255, 'v' * 256, None, False, 7, 1.5, [])
HOSTS = ('host1', 'host2', 'host3', 'host4')
# Nova fails with 500 for a number such as 1.0.
NUMBERS = (1, 0, -1, '2', '0', 'x', 2**31, None, True, 1.0, 0.0, -1.0, 1.5)
PROJECTS = ('a' * 32, 'b' * 32, '', 'p' * 256, 5)


@pytest.mark.slow
class RehearsedNovaTest(BothNovasTest):
    """A cloud of two zones with servers in some places, and its rehearsal."""

    HOSTS = HOSTS
    OCCUPIED = ('host1', 'host3')

    def prepare(self):
        for name, zone in (('one', 'a'), ('two', 'b'), ('free', None)):
            aggregate = {'name': name, 'availability_zone': zone}
            self.admin_api.post_aggregate({'aggregate': aggregate})

    def request(self, chance):
        """Return a method, a path and a body."""
        cloud = self.world.snapshot
        number = chance.choice([*(a.id for a in cloud.aggregates), 9999])
        key = chance.choice([*(f.id for f in cloud.flavors), 'none'])
        aggregate, flavor = f'/os-aggregates/{number}', f'/flavors/{key}'
        values = {
            chance.choice(KEYS): chance.choice(VALUES)
            for _ in range(chance.randrange(1, 3))
        }
        fields = {}
        if chance.random() < 0.8:
            fields['name'] = chance.choice(NAMES)
        if chance.random() < 0.6:
            fields['availability_zone'] = chance.choice(ZONES)
        if chance.random() < 0.3:
            values = {'availability_zone': chance.choice(ZONES)}
        verb = chance.choice(('add_host', 'remove_host'))
        host = {'host': chance.choice((*HOSTS, *HOSTS, 'none', '', 'a b', 1))}
        access = chance.choice(('addTenantAccess', 'removeTenantAccess'))
        tenant = {'tenant': chance.choice(PROJECTS)}
        spec = chance.choice(('key', 'trait:CUSTOM_A b-c_d.e', 'other'))
        new = {
            'name': chance.choice((*NAMES, f'f{chance.randrange(9)}')),
            'id': f'id{chance.randrange(12)}',
            'ram': 64, 'vcpus': 1, 'disk': 1,
            'os-flavor-access:is_public': chance.choice(
                (True, False, 'no', 'maybe', None)
            ),
        }  # fmt: skip
        new[chance.choice(('ram', 'vcpus', 'disk', 'swap'))] = chance.choice(
            NUMBERS
        )
        return chance.choice(
            (
                ('POST', '/os-aggregates', {'aggregate': fields}),
                ('PUT', aggregate, {'aggregate': fields}),
                ('DELETE', aggregate, None),
                *[('POST', f'{aggregate}/action', {verb: host})] * 3,
                (
                    *('POST', f'{aggregate}/action'),
                    {'set_metadata': {'metadata': values}},
                ),
                ('POST', '/flavors', {'flavor': new}),
                ('DELETE', flavor, None),
                ('POST', f'{flavor}/os-extra_specs', {'extra_specs': values}),
                ('PUT', f'{flavor}/os-extra_specs/{spec}', values),
                ('DELETE', f'{flavor}/os-extra_specs/{spec}', None),
                ('GET', f'{flavor}/os-extra_specs/{spec}', None),
                *[('POST', f'{flavor}/action', {access: tenant})] * 2,
                ('GET', f'{flavor}/os-flavor-access', None),
                ('GET', aggregate, None),
            )
        )

    def test_random_requests(self):
        """REQUESTS and SEED are of the environment, for longer runs."""
        chance = random.Random(SEED)
        accepted = 0
        for place in range(REQUESTS):
            asked = self.request(chance)
            minor = chance.choice((1, 60))
            response, answer = self.ask(*asked, minor)
            real = response.status_code
            assert answer.status == real, (place, asked, minor)
            accepted += real < 300
            state, rehearsed = self.states()
            assert rehearsed == state, (place, asked, minor)
        assert REQUESTS / 10 < accepted < REQUESTS
