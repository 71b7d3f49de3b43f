# SPDX-License-Identifier: Apache-2.0
"""The local API of a rehearsal answers as a cloud, or says that it cannot."""

import contextlib
import dataclasses
import socket

import jsonschema
from keystone.catalog import schema as catalog
from keystone.resource import schema as resource
from keystoneauth1 import session
from keystoneauth1.identity import v3
import pytest

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.compute.servers import (
    Server,
    ServerGroup,
    Servers,
)
from isolate_aggregates_tools.domains import Keystone, Project
from isolate_aggregates_tools.placement.provider import Inventory
from isolate_aggregates_tools.rehearse.service import Service
from isolate_aggregates_tools.rehearse.world import World
from isolate_aggregates_tools.testing import make_compute_node, make_snapshot

GPU = Aggregate(
    '9aa6b1ee-8b0c-4b7f-9c3e-0a3a8d0f1c11',
    'gpu',
    {'trait:CUSTOM_GPU': 'required'},
    frozenset({'g1'}),
    id=7,
)
FLAVORS = (
    Flavor('m1', 'one', 1, 64, 1),
    Flavor(
        'gpu.small',
        'two',
        2,
        128,
        1,
        extra_specs={'trait:CUSTOM_GPU': 'required'},
        is_public=False,
        projects=frozenset({'a' * 32}),
    ),
)
IMAGE = Image('debian', 'c' * 32, {'os_distro': 'debian'}, visibility='public')


class Held:
    """A cloud with its API, asked as an administrator."""

    def __init__(self, cloud):
        self.world = World(cloud)
        self.service = Service(
            self.world, socket.create_server(('127.0.0.1', 0))
        )
        self.session = session.Session(
            v3.Password(
                f'{self.service.url}/identity/v3',
                username='admin',
                password=self.service.identity.password,
                project_name='admin',
                user_domain_id='default',
                project_domain_id='default',
            )
        )

    def close(self):
        self.service.close()

    def __call__(self, method, path, body=None, minor=100, kind='compute'):
        """Return the status and the document of an answer."""
        version = {'compute': f'compute 2.{minor}'}.get(kind)
        headers = {'OpenStack-API-Version': version or 'placement 1.36'}
        answer = self.session.request(
            path,
            method,
            json=body,
            headers=headers,
            endpoint_filter={'service_type': kind},
            raise_exc=False,
        )
        document = answer.json() if answer.content else None
        return answer.status_code, document

    @property
    def cloud(self):
        return self.world.snapshot


def held_cloud(**fields):
    nodes = [make_compute_node('g1'), make_compute_node('c1')]
    cloud = make_snapshot([GPU], nodes, flavors=FLAVORS, images=[IMAGE])
    return dataclasses.replace(cloud, **fields)


@pytest.fixture
def held():
    with contextlib.closing(Held(held_cloud())) as found:
        yield found


def test_a_host_that_is_added_is_in_placement_too(held):
    body = {'add_host': {'host': 'c1'}}
    # Placement starts when it is asked: before, and after the change.
    before = held('GET', '/resource_providers', kind='placement')[1]
    node = {p['name']: p['uuid'] for p in before['resource_providers']}['c1']
    status, document = held('POST', '/os-aggregates/7/action', body)
    assert (status, document['aggregate']['hosts']) == (200, ['c1', 'g1'])
    path = f'/resource_providers/{node}/aggregates'
    answer = held('GET', path, kind='placement')[1]
    assert answer['aggregates'] == [GPU.uuid]
    [gpu] = held.cloud.aggregates
    assert gpu.hosts == {'c1', 'g1'}
    [there] = [p for p in held.cloud.providers if p.name == 'c1']
    assert there.aggregates == {GPU.uuid}


def test_placement_starts_with_what_nova_has_changed_before(held):
    held('POST', '/os-aggregates/7/action', {'add_host': {'host': 'c1'}})
    found = held(
        'GET', f'/resource_providers?member_of={GPU.uuid}', kind='placement'
    )
    names = {one['name'] for one in found[1]['resource_providers']}
    assert names == {'c1', 'g1'}


def test_what_is_changed_in_placement_is_in_the_cloud(held):
    root = held('GET', '/resource_providers?name=c1', kind='placement')[1]
    [node] = root['resource_providers']
    path = f'/resource_providers/{node["uuid"]}/traits'
    assert held('PUT', '/traits/CUSTOM_NEW', kind='placement')[0] == 201
    assert held.cloud.traits == {'CUSTOM_NEW'}
    body = {
        'resource_provider_generation': node['generation'],
        'traits': ['CUSTOM_NEW'],
    }
    assert held('PUT', path, body, kind='placement')[0] == 200
    [there] = [p for p in held.cloud.providers if p.name == 'c1']
    assert there.traits == {'CUSTOM_NEW'}
    assert held.cloud.traits == frozenset()
    # With an old generation, Placement refuses it.
    assert (
        held('PUT', path, {**body, 'traits': []}, kind='placement')[0] == 409
    )
    [call] = held.world.refused
    assert 'generation' in call.reason
    new = {'name': 'child', 'parent_provider_uuid': node['uuid']}
    assert held('POST', '/resource_providers', new, kind='placement')[0] == 200
    assert [p.name for p in held.cloud.providers] == ['g1', 'c1', 'child']
    child = held.cloud.providers[-1].uuid
    path = f'/resource_providers/{child}'
    assert held('DELETE', path, kind='placement')[0] == 204
    assert [p.name for p in held.cloud.providers] == ['g1', 'c1']
    assert len(held.world.steps) == 4


@pytest.mark.parametrize(
    ('method', 'path', 'kind'),
    [
        ('GET', '/os-keypairs', 'compute'),
        ('GET', '/servers/detail', 'compute'),
        ('GET', '/os-server-groups?all_projects=1', 'compute'),
        ('GET', '/os-hypervisors?with_servers=true', 'compute'),
        ('GET', '/os-hypervisors/1/uptime', 'compute'),
        ('GET', '/flavors?sort_key=name', 'compute'),
        ('GET', '/os-services?binary=nova-scheduler', 'compute'),
        ('POST', '/servers', 'compute'),
        ('GET', f'/allocations/{"a" * 32}', 'placement'),
        ('GET', '/v2/images?os_distro=debian', 'image'),
        ('GET', '/v2/images?name=in:debian', 'image'),
        ('POST', '/v2/images', 'image'),
        ('GET', '/v3/users', 'identity'),
        ('GET', '/v2.0/networks', 'network'),
    ],
)
def test_what_is_not_known_is_an_error_and_listed(held, method, path, kind):
    if kind == 'identity':
        path = f'{held.service.url}/identity{path}'
    assert held(method, path, kind=kind)[0] == 501
    assert len(held.world.unknown) == 1


@pytest.mark.parametrize(
    ('method', 'path', 'body', 'status'),
    [
        ('GET', '/os-aggregates/8', None, 404),
        ('GET', '/os-aggregates/x', None, 400),
        ('POST', '/os-aggregates', {'aggregate': {'name': 'gpu'}}, 409),
        ('POST', '/os-aggregates', {'aggregate': {'name': ' gpu'}}, 400),
        ('POST', '/os-aggregates', {'aggregate': {}}, 400),
        ('POST', '/os-aggregates', None, 400),
        ('DELETE', '/os-aggregates/7', None, 400),
        ('POST', '/os-aggregates/7/action', {'add_host': {'host': 'g1'}}, 409),
        ('POST', '/os-aggregates/7/action', {'add_host': {'host': 'x'}}, 404),
        (
            'POST',
            '/os-aggregates/7/action',
            {'set_metadata': {'metadata': {'a': False}}},
            400,
        ),
        (
            'POST',
            '/flavors/one/os-extra_specs',
            {'extra_specs': {'a': False}},
            400,
        ),
        ('POST', '/flavors/x/os-extra_specs', {'extra_specs': {}}, 404),
        ('DELETE', '/flavors/one/os-extra_specs/a', None, 404),
        ('GET', '/flavors/one/os-flavor-access', None, 404),
        (
            'POST',
            '/flavors/two/action',
            {'addTenantAccess': {'tenant': 'a' * 32}},
            409,
        ),
        ('POST', '/flavors', {'flavor': {'name': 'm1'}}, 400),
        (
            'POST',
            '/flavors',
            {'flavor': {'name': 'm1', 'ram': '64', 'vcpus': 1, 'disk': 0}},
            409,
        ),
        (
            'POST',
            '/flavors',
            {'flavor': {'name': 'x', 'ram': 0, 'vcpus': 1, 'disk': 0}},
            400,
        ),
    ],
)
def test_nova_refuses_what_it_refuses(held, method, path, body, status):
    before = held.cloud
    assert held(method, path, body)[0] == status
    assert held.cloud is before
    assert not held.world.unknown
    assert len(held.world.refused) == (method != 'GET')


def test_a_name_is_kept_although_the_zone_is_refused(held):
    body = {'aggregate': {'name': 'new', 'availability_zone': None}}
    assert held('PUT', '/os-aggregates/7', body)[0] == 400
    [gpu] = held.cloud.aggregates
    assert gpu.name == 'new'


def test_a_flavor_made_anew_has_no_extra_specs_and_no_access(held):
    assert held('DELETE', '/flavors/two')[0] == 202
    new = {'name': 'gpu.small', 'ram': 64, 'vcpus': 1, 'disk': 1, 'id': 'two'}
    new['os-flavor-access:is_public'] = 'false'
    assert held('POST', '/flavors', {'flavor': new})[0] == 200
    flavor = held.cloud.flavor('two')
    assert (flavor.extra_specs, flavor.projects) == ({}, frozenset())
    assert not flavor.is_public
    assert not held.world.unknown
    held('DELETE', '/flavors/two')
    held('POST', '/flavors', {'flavor': {**new, 'description': 'old?'}})
    [doubt] = held.world.unknown
    assert doubt.startswith('whether flavor gpu.small had this description')


def test_a_project_that_the_file_does_not_name_may_not_exist(held):
    path, body = '/flavors/two/action', {'tenant': 'b' * 32}
    assert held('POST', path, {'addTenantAccess': body})[0] == 200
    assert held.cloud.flavor('two').projects == {'a' * 32, 'b' * 32}
    assert held.world.unknown == [
        f'whether project {"b" * 32} exists; Nova refuses access for others'
    ]


def test_nova_asks_keystone_whether_a_project_exists():
    """A file with the names of projects has all of them."""
    one = Flavor('f1', 'one', 1, 64, 1, is_public=False)
    known = Keystone({'d': 'D'}, (Project('b' * 32, 'research', 'd'),))
    cloud = dataclasses.replace(
        make_snapshot((), (), flavors=[one]), keystone=known
    )
    with contextlib.closing(Held(cloud)) as held:
        for flavor, project, status in (
            ('one', 'b', 200),
            ('one', 'b', 409),
            ('one', 'c', 400),
            # Before Nova looks for the flavor.
            ('none', 'c', 400),
            ('none', 'b', 404),
        ):
            body = {'addTenantAccess': {'tenant': project * 32}}
            assert held('POST', f'/flavors/{flavor}/action', body)[0] == status
        assert not held.world.unknown
        [changed] = held.cloud.flavors
        assert changed.projects == {'b' * 32}


def test_flavors_come_in_pages():
    many = [Flavor(f'f{n}', f'id{n:04}', 1, 64, 1) for n in range(2500)]
    cloud = make_snapshot((), (), flavors=many)
    with contextlib.closing(Held(cloud)) as held:
        found, path = [], '/flavors/detail?is_public=None'
        while path:
            document = held('GET', path)[1]
            found += [flavor['name'] for flavor in document['flavors']]
            links = document.get('flavors_links', [{'href': ''}])
            path = links[0]['href']
        assert found == [flavor.name for flavor in many]
        page = held('GET', '/flavors?limit=2&marker=id0003')[1]['flavors']
        assert [flavor['id'] for flavor in page] == ['id0004', 'id0005']
        assert held('GET', '/flavors?marker=x')[0] == 400


def test_properties_of_images_change(held):
    headers = {'Content-Type': 'application/openstack-images-v2.1-json-patch'}

    def patch(*steps):
        return held.session.patch(
            f'/v2/images/{"c" * 32}',
            json=list(steps),
            headers=headers,
            endpoint_filter={'service_type': 'image'},
            raise_exc=False,
        ).status_code

    add = {'op': 'add', 'path': '/trait:CUSTOM_A', 'value': 'required'}
    assert patch(add) == 200
    assert patch({'op': 'remove', 'path': '/os_distro'}) == 200
    assert patch({'op': 'remove', 'path': '/os_distro'}) == 409
    assert patch({**add, 'value': True}) == 400
    [image] = held.cloud.images
    assert image.properties == {'trait:CUSTOM_A': 'required'}
    assert patch({**add, 'path': '/protected'}) == 501


@pytest.mark.parametrize(
    ('query', 'count'),
    [
        (f'id=in:{"b" * 32},{"c" * 32}', 1),
        (f'id={"c" * 32}', 1),
        (f'id=in:{"b" * 32}', 0),
        ('name=debian', 1),
        ('name=ubuntu', 0),
        ('owner=other', 0),
    ],
)
def test_images_are_listed_by_what_is_asked_for(held, query, count):
    answer = held('GET', f'/v2/images?{query}', kind='image')[1]
    assert len(answer['images']) == count


def test_a_service_that_is_disabled_has_the_trait(held):
    services = held('GET', '/os-services?host=c1')[1]['services']
    path = f'/os-services/{services[0]["id"]}'
    body = {'status': 'disabled', 'disabled_reason': 'repair'}
    status, document = held('PUT', path, body)
    assert (status, document['service']['status']) == (200, 'disabled')
    assert held.cloud.disabled_hosts == {'c1'}
    [node] = [p for p in held.cloud.providers if p.host == 'c1']
    assert 'COMPUTE_STATUS_DISABLED' in node.traits
    assert held('PUT', path, {'status': 'enabled'})[0] == 200
    assert not held.cloud.disabled_hosts
    assert held('PUT', path, {'status': 'enabled'})[0] == 400
    body = {'host': 'c1', 'binary': 'nova-compute'}
    assert held('PUT', '/os-services/disable', body, minor=1)[0] == 200
    assert held.cloud.disabled_hosts == {'c1'}


def test_servers_are_listed_by_host_and_project():
    servers = Servers(
        (
            Server('s1', 'web', 'a' * 32, 'ACTIVE', 'g1', FLAVORS[0]),
            Server('s2', 'db', 'b' * 32, 'ACTIVE', 'c1', FLAVORS[0]),
        ),
        {},
        True,
        (ServerGroup('g', 'anti-affinity', frozenset({'s1'})),),
    )
    with contextlib.closing(Held(held_cloud(servers=servers))) as held:
        listed = held('GET', '/servers/detail?all_tenants=1&host=c1')[1]
        assert [one['name'] for one in listed['servers']] == ['db']
        path = f'/servers?all_tenants=True&project_id={"a" * 32}'
        assert [s['name'] for s in held('GET', path)[1]['servers']] == ['web']
        # Those of the project of the administrator.
        assert held('GET', '/servers')[1] == {'servers': []}
        shown = held('GET', '/servers/s1')[1]['server']
        assert shown['server_groups'] == ['g']
        assert held('GET', '/servers?all_tenants=1&name=web')[0] == 501
    servers = dataclasses.replace(servers, groups=None)
    with contextlib.closing(Held(held_cloud(servers=servers))) as held:
        assert held('GET', '/servers/s1', minor=70)[0] == 200
        assert held('GET', '/servers/s1')[0] == 501


def test_hypervisors_have_the_resources_that_placement_knows():
    node = make_compute_node(
        'g1',
        inventories={
            'VCPU': Inventory(8, reserved=1, allocation_ratio=4.0),
            'PCPU': 4,
            'MEMORY_MB': Inventory(4096, reserved=512),
        },
        usages={'VCPU': 2, 'PCPU': 3, 'MEMORY_MB': 1024},
    )
    server = Server('s1', 'web', 'a' * 32, 'ACTIVE', 'g1', FLAVORS[0])
    cloud = held_cloud(providers=(node,), servers=Servers((server,), {}, True))
    with contextlib.closing(Held(cloud)) as held:
        listed = held('GET', '/os-hypervisors/detail', minor=61)[1]
        [found] = listed['hypervisors']
        resources = {
            'vcpus': 8,
            'vcpus_used': 6,
            'memory_mb': 4096,
            'memory_mb_used': 1536,
            'free_ram_mb': 2560,
            'local_gb': 0,
            'local_gb_used': 0,
            'free_disk_gb': 0,
            'running_vms': 1,
        }
        assert found.items() >= resources.items()
        assert found['current_workload'] is None
        path = '/os-hypervisors/statistics'
        sums = held('GET', path, minor=87)[1]['hypervisor_statistics']
        empty = {'current_workload': 0, 'disk_available_least': 0}
        assert sums == {'count': 1, **resources, **empty}
        assert held('GET', path, minor=88)[0] == 404
        # What is empty is told, but the tool was given an answer.
        assert held.world.unknown == []
        assert [*held.world.empty] == [
            'what virt drivers report of hypervisors (their types, versions, '
            'addresses, processors, load and least free disk)'
        ]


def test_a_list_of_hypervisors_is_known_at_every_microversion(held):
    for minor, ids in ((1, [1, 2]), (53, [p.uuid for p in cloud_nodes(held)])):
        listed = held('GET', '/os-hypervisors', minor=minor)[1]['hypervisors']
        assert [each['id'] for each in listed] == ids
        assert [each['hypervisor_hostname'] for each in listed] == ['g1', 'c1']
    assert held('GET', '/os-hypervisors/2', minor=52)[0] == 200
    assert held('GET', '/os-hypervisors/2', minor=53)[0] == 400
    assert not held.world.unknown


def cloud_nodes(held):
    return [p for p in held.cloud.providers if p.host]


@pytest.mark.parametrize(
    ('path', 'kind', 'count'),
    [
        ('/os-hypervisors/detail', 'hypervisors', 1200),
        ('/os-hypervisors?limit=5000', 'hypervisors', 1200),
        ('/servers/detail?all_tenants=1&limit=5000', 'servers', 1200),
        ('/flavors?limit=5000', 'flavors', 1200),
    ],
)
def test_a_page_at_its_limit_names_the_next_one(path, kind, count):
    """Clients would miss the rest without an error."""
    numbers = range(count)
    cloud = make_snapshot(
        (),
        [make_compute_node(f'c{n}') for n in numbers],
        flavors=[Flavor(f'f{n}', f'id{n}', 1, 64, 1) for n in numbers],
    )
    servers = tuple(
        Server(f's{n}', 'web', 'a' * 32, 'ACTIVE', 'c1', FLAVORS[0])
        for n in numbers
    )
    cloud = dataclasses.replace(cloud, servers=Servers(servers, {}, True))
    with contextlib.closing(Held(cloud)) as held:
        first = held('GET', path)[1]
        assert len(first[kind]) == 1000
        [link] = first[f'{kind}_links']
        assert len(held('GET', link['href'])[1][kind]) == count - 1000


def test_server_groups_are_listed_as_far_as_they_are_known():
    server = Server('s1', 'web', 'a' * 32, 'ACTIVE', 'g1', FLAVORS[0])
    groups = (
        ServerGroup('g1', 'anti-affinity', frozenset({'s1'}), 2),
        ServerGroup('g2', 'affinity'),
    )
    servers = Servers((server,), {}, True, groups)
    with contextlib.closing(Held(held_cloud(servers=servers))) as held:
        path = '/os-server-groups?all_projects=True'
        first, second = held('GET', path)[1]['server_groups']
        assert first == {
            'id': 'g1',
            'name': '',
            'members': ['s1'],
            'policy': 'anti-affinity',
            'rules': {'max_server_per_host': 2},
            'project_id': 'a' * 32,
            'user_id': 'unknown',
        }
        assert second['project_id'] == 'unknown'
        page = held('GET', f'{path}&limit=1&offset=1')[1]['server_groups']
        assert page == [second]
        assert held('GET', '/os-server-groups/g3')[0] == 404
        assert not held.world.unknown
        # Whose the second one is, is not known.
        assert held('GET', '/os-server-groups')[0] == 501
    servers = Servers((server,), {}, True, groups[:1])
    with contextlib.closing(Held(held_cloud(servers=servers))) as held:
        assert held('GET', '/os-server-groups')[1] == {'server_groups': []}


@pytest.mark.parametrize(
    ('path', 'schema'),
    [
        ('projects', resource.project_index_response_body),
        (f'projects/{"a" * 32}', resource.project_get_response_body),
        ('domains', resource.domain_index_response_body),
        ('domains/default', resource.domain_get_response_body),
        ('regions', catalog.regions_index_response_body),
        ('services', catalog.service_index_response_body),
    ],
)
def test_documents_of_identity_have_the_form_of_keystone(held, path, schema):
    answer = held.session.get(f'{held.service.url}/identity/v3/{path}')
    jsonschema.validate(answer.json(), schema)


KEYSTONE = Keystone(
    {'default': 'Main', 'd' * 32: 'sales'},
    (
        Project('a' * 32, 'web', 'default'),
        Project('b' * 32, 'web', 'd' * 32),
        Project('c' * 32, 'admin', 'default'),
    ),
)


def identity_of(held, path):
    url = f'{held.service.url}/identity/v3/{path}'
    return held.session.get(url, raise_exc=False)


def test_projects_are_found_by_names_that_the_file_has():
    with contextlib.closing(Held(held_cloud(keystone=KEYSTONE))) as held:
        for query, ids in (
            ('name=web', 'ab'),
            (f'name=web&domain_id={"d" * 32}', 'b'),
            ('domain_id=default', 'ac'),
            ('name=gone', ''),
        ):
            found = identity_of(held, f'projects?{query}').json()['projects']
            assert [one['id'] for one in found] == [key * 32 for key in ids]
        [sales] = identity_of(held, 'domains?name=sales').json()['domains']
        assert sales['id'] == 'd' * 32
        # As clients look a name up that may be an id.
        assert identity_of(held, 'projects/web').status_code == 404
        assert held.session.get_project_id() == 'c' * 32
        assert held.world.unknown == []


def test_projects_without_names_are_not_known(held):
    assert identity_of(held, 'projects?name=web').status_code == 501
    assert identity_of(held, 'projects/web').status_code == 501
    assert held.world.unknown == [
        'GET keystone /v3/projects: the id of project web',
        'GET keystone /v3/projects/web: whether there is a project web',
    ]


def test_a_microversion_of_a_later_nova_is_refused():
    settings = {('isolate_aggregates', 'nova_release'): 31}
    with contextlib.closing(Held(held_cloud(settings=settings))) as held:
        assert held('GET', '/flavors', minor=100)[0] == 200
        assert held('GET', '/flavors', minor=101)[0] == 406


def test_other_credentials_are_not_accepted(held):
    user = {'name': 'admin', 'password': 'secret'}
    identity = {'methods': ['password'], 'password': {'user': user}}
    answer = session.Session().post(
        f'{held.service.url}/identity/v3/auth/tokens',
        json={'auth': {'identity': identity}},
        raise_exc=False,
    )
    assert answer.status_code == 501
    assert 'secret' not in repr(held.world.unknown)


def test_a_tool_that_wants_to_leave_is_refused(held):
    port = int(held.service.url.rpartition(':')[2])
    with socket.create_connection(('127.0.0.1', port)) as asking:
        asking.sendall(b'CONNECT keystone.example:5000 HTTP/1.0\r\n\r\n')
        assert b' 501 ' in asking.recv(100)
    assert held.world.unknown == [
        'CONNECT proxy keystone.example:5000: what is elsewhere'
    ]
