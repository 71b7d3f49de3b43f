# SPDX-License-Identifier: Apache-2.0
"""The Nova of a rehearsal answers random changes as a real one does.

The same requests are made to both. Their statuses are equal, and so are the
aggregates and flavors after each of them.
"""

import dataclasses
import json
import os
import random
import re

from base import IMAGE
from day_two import CommandTest
import pytest

from isolate_aggregates.aggregates.aggregate import ZONE, zone_of
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.compute.servers import Servers
from isolate_aggregates_tools.rehearse.exchange import Request
from isolate_aggregates_tools.rehearse.nova import Nova
from isolate_aggregates_tools.rehearse.placement import HeldPlacement
from isolate_aggregates_tools.rehearse.world import World
from isolate_aggregates_tools.testing import make_compute_node, make_snapshot

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
class RehearsedNovaTest(CommandTest):
    """A cloud of two zones with servers in some places, and its rehearsal."""

    HOSTS = HOSTS

    def setUp(self):
        super().setUp()
        for host in ('host1', 'host3'):
            made = self._build_server(image_uuid=IMAGE, networks='none')
            made = self.admin_api.post_server(
                {'server': {**made, 'host': host}}
            )
            self._wait_for_state_change(made, 'ACTIVE')
        for name, zone in (('one', 'a'), ('two', 'b'), ('free', None)):
            aggregate = {'name': name, 'availability_zone': zone}
            self.admin_api.post_aggregate({'aggregate': aggregate})
        nova = NovaClient(self.connection())
        cloud = make_snapshot(
            nova.aggregates(),
            list(map(make_compute_node, HOSTS)),
            flavors=nova.flavors(),
        )
        servers = Servers(tuple(nova.servers()), {}, True)
        self.world = World(dataclasses.replace(cloud, servers=servers))
        self.rehearsed = Nova(self.world, HeldPlacement(self.world))
        # Nova's ids of the aggregates that both have made. Its database may
        # give the id of a deleted one again.
        self.ids = {}

    def ask(self, method, path, body, minor):
        """Return the statuses of the real Nova and of the rehearsed one.

        :param path: With the id that an aggregate has in the rehearsal.
        """
        self.admin_api.microversion = f'2.{minor}'
        response = self.admin_api.api_request(
            re.sub(
                r'(?<=^/os-aggregates/)\d+',
                lambda number: str(self.id_in_nova(int(number[0]))),
                path,
            ),
            method=method,
            headers={'Content-Type': 'application/json'},
            body=None if body is None else json.dumps(body),
        )
        asked = Request(method, path, {}, body, minor, 'http://nova')
        answer = self.world.answer('nova', self.rehearsed.answer, asked)
        if path == '/os-aggregates' and response.status_code == 200:
            number = answer.document['aggregate']['id']
            self.ids[number] = response.json()['aggregate']['id']
        return response.status_code, answer.status

    def id_in_nova(self, number):
        return self.ids.get(number, number)

    def state(self, aggregates, flavors):
        """Return aggregates and flavors, as both may have them."""
        return (
            sorted(
                (
                    *(a.id, a.name, zone_of(a), sorted(a.hosts)),
                    sorted({**a.metadata, ZONE: ''}.items()),
                )
                for a in aggregates
            ),
            sorted(
                (
                    *(f.id, f.name, f.vcpus, f.ram, f.disk, f.swap),
                    *(f.is_public, sorted(f.extra_specs.items())),
                    # Nova does not tell those of a public one.
                    sorted(() if f.is_public else f.projects),
                )
                for f in flavors
            ),
        )

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
        nova = NovaClient(self.connection())
        accepted = 0
        for place in range(REQUESTS):
            asked = self.request(chance)
            minor = chance.choice((1, 60))
            real, rehearsed = self.ask(*asked, minor)
            assert rehearsed == real, (place, asked, minor)
            accepted += real < 300
            states = [
                self.state(aggregates, flavors)
                for aggregates, flavors in (
                    (nova.aggregates(), nova.flavors()),
                    (
                        [
                            dataclasses.replace(a, id=self.id_in_nova(a.id))
                            for a in self.world.snapshot.aggregates
                        ],
                        self.world.snapshot.flavors,
                    ),
                )
            ]
            assert states[1] == states[0], (place, asked, minor)
        assert REQUESTS / 10 < accepted < REQUESTS
