# SPDX-License-Identifier: Apache-2.0
"""The fake Nova of other tests answers each call as a real one does.

The same calls are made to both. Their statuses are equal, and whatever the
fake says, the real one says, too; it says more than anything here reads.
"""

import json
from urllib import parse

from base import IMAGE
from day_two import CommandTest
from fake_nova import FakeNova
import pytest

from isolate_aggregates_tools.compute.client import NovaClient

NEWEST = '2.96'
# What each of them chooses.
CHOSEN = {'id', 'uuid', 'min_version', 'version', 'created_at'}
SIZES = {'vcpus': 1, 'ram': 64, 'disk': 1}


def differences(fake, real, at=()):
    """Yield what the fake says and the real one does not."""
    if isinstance(fake, dict) and isinstance(real, dict):
        for key, value in fake.items():
            if key not in real:
                yield (*at, key), 'only the fake has it'
            else:
                yield from differences(value, real[key], (*at, key))
    elif isinstance(fake, list) and isinstance(real, list):
        if all(isinstance(one, dict) and 'name' in one for one in fake):
            by_name = {one['name']: one for one in real}
            fake = sorted(fake, key=lambda one: one['name'])
            real = [by_name.get(one['name']) for one in fake]
        if len(fake) != len(real):
            yield at, f'{fake}, not {real}'
        for number, pair in enumerate(zip(fake, real, strict=False)):
            yield from differences(*pair, (*at, number))
    elif at and at[-1] in CHOSEN:
        if type(fake) is not type(real):
            yield at, f'{fake!r} and {real!r}'
    elif fake != real:
        yield at, f'{fake!r}, not {real!r}'


@pytest.mark.slow
class FakeNovaTest(CommandTest):
    """A real Nova, and a fake one with the same hosts."""

    HOSTS = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.wrong = []
        self.addCleanup(self.check)
        self.fake = FakeNova(NEWEST)
        assert not NovaClient(self.connection()).aggregates()
        # The ids of both, by the names that paths have.
        self.ids = {}
        nodes = self.both('GET', '/os-hypervisors/detail', compared=False)[1]
        for node in nodes['hypervisors']:
            self.fake.nodes[node['id']] = {
                **{k: node[k] for k in ('id', 'state', 'status')},
                'hypervisor_hostname': node['hypervisor_hostname'],
                'service': node['service'],
            }

    def check(self):
        assert not self.wrong, self.wrong

    def both(self, method, path, body=None, compared=True, version=NEWEST):
        """Ask both, and compare their answers; return those documents."""
        paths = [
            path.format(**{name: pair[at] for name, pair in self.ids.items()})
            for at in (0, 1)
        ]
        url, _, query = paths[0].partition('?')
        status, fake = self.fake.reply(
            method,
            parse.unquote(url),
            query,
            {'OpenStack-API-Version': f'compute {version}'},
            json.loads(json.dumps(body)),
        )
        self.admin_api.microversion = version
        response = self.admin_api.api_request(
            paths[1],
            method=method,
            headers={'Content-Type': 'application/json'},
            body=None if body is None else json.dumps(body),
        )
        real = json.loads(response.content) if response.content else None
        if compared:
            found = [] if status >= 300 else [*differences(fake, real)]
            if status != response.status_code:
                found = [((), f'{status}, not {response.status_code}')]
            self.wrong += [(method, path, body, *one) for one in found]
        return fake, real

    def make(self, name, path, body):
        """Make something with both; its ids are those of a name in paths."""
        pair = self.both('POST', path, body)
        self.ids[name] = [next(iter(one.values()))['id'] for one in pair]

    def test_aggregates(self):
        one = {'aggregate': {'name': 'one'}}
        self.make('one', '/os-aggregates', one)
        self.both('POST', '/os-aggregates', one)
        action = '/os-aggregates/{one}/action'
        for verb, host in (
            *(('add_host', 'host1'), ('add_host', 'host1')),
            *(('add_host', 'none'), ('remove_host', 'host2')),
        ):
            self.both('POST', action, {verb: {'host': host}})
        values = {'metadata': {'trait:CUSTOM_A': 'required'}}
        self.both('POST', action, {'set_metadata': values})
        gone = {'metadata': {'trait:CUSTOM_A': None, 'other': 'x'}}
        self.both('POST', action, {'set_metadata': gone})
        self.both('GET', '/os-aggregates')
        self.both('GET', '/os-aggregates', version='2.40')
        self.both('DELETE', '/os-aggregates/{one}')
        self.both('POST', action, {'remove_host': {'host': 'host1'}})
        self.both('DELETE', '/os-aggregates/{one}')
        self.both('DELETE', '/os-aggregates/{one}')
        self.both('POST', action, {'set_metadata': values})

    def test_flavors(self):
        for name in ('one', 'two'):
            body = {'id': name, 'name': name, **SIZES}
            body['os-flavor-access:is_public'] = name == 'one'
            self.both('POST', '/flavors', {'flavor': body})
            self.both('POST', '/flavors', {'flavor': body})
        specs = {'extra_specs': {'trait:CUSTOM_A': 'required'}}
        self.both('POST', '/flavors/one/os-extra_specs', specs)
        self.both('GET', '/flavors/one/os-extra_specs')
        self.both('GET', '/flavors/two')
        self.both('GET', '/flavors/none')
        for project in ('a' * 32, 'a' * 32):
            body = {'addTenantAccess': {'tenant': project}}
            self.both('POST', '/flavors/two/action', body)
        self.both('GET', '/flavors/two/os-flavor-access')
        body = {'removeTenantAccess': {'tenant': 'a' * 32}}
        self.both('POST', '/flavors/two/action', body)
        self.both('POST', '/flavors/two/action', body)
        for query in ('is_public=None', 'limit=1&is_public=None&marker=one'):
            self.both('GET', f'/flavors/detail?{query}')
        self.both('GET', '/flavors/detail?marker=none')
        self.both('GET', '/flavors/detail', version='2.60')
        for _ in range(2):
            self.both('DELETE', '/flavors/two')
        self.both('GET', '/flavors/two/os-extra_specs')

    def test_hosts(self):
        self.both('GET', '/')
        self.both('GET', '/os-hypervisors/detail')
        self.both('GET', '/os-hypervisors/detail?limit=1')
        self.both('GET', f'/os-hypervisors/detail?marker={IMAGE}')
        self.both('GET', '/os-services?binary=nova-compute')
        self.both('GET', '/os-server-groups?all_projects=true')
        self.both('GET', '/os-migrations?status=finished')

    def test_servers(self):
        flavor = self.api.get_flavors()[0]['id']
        made = self._build_server(
            image_uuid=IMAGE, flavor_id=flavor, networks='none', name='one'
        )
        made = self.admin_api.post_server({'server': made})
        self._wait_for_state_change(made, 'ACTIVE')
        self.fake.servers[made['id']] = flavor
        self.ids['one'] = [made['id']] * 2
        for path in ('servers', 'servers/{one}', f'servers/{IMAGE}'):
            self.both('GET', f'/{path}', compared=path != 'servers')
        for query in (f'flavor={flavor}', 'flavor=none', f'marker={IMAGE}'):
            path = f'/servers?all_tenants=1&{query}'
            fake, real = self.both('GET', path, compared=False)
            assert [one['id'] for one in fake.get('servers', ())] == [
                one['id'] for one in real.get('servers', ())
            ]
        self.both('DELETE', '/servers/{one}')
        self._wait_until_deleted(made)
        self.both('DELETE', '/servers/{one}')

    def test_objects_are_answered_as_the_documents_they_come_from(self):
        self.make('one', '/os-aggregates', {'aggregate': {'name': 'one'}})
        nova = NovaClient(self.connection())
        read = FakeNova(
            NEWEST,
            aggregates=list(nova.aggregates()),
            flavors=nova.flavors(),
            nodes=nova.compute_nodes(),
        )
        self.fake = read
        for path in (
            '/os-aggregates',
            '/flavors/detail?is_public=None',
            '/os-hypervisors/detail',
        ):
            self.both('GET', path)
