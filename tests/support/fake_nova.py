# SPDX-License-Identifier: Apache-2.0
"""A fake of those parts of Nova's API that this package calls.

What a test only reads can be objects of this package; what it changes through
the API are documents by id, as the `Compute API reference
<https://docs.openstack.org/api-ref/compute/>`_ describes them.
"""

from collections.abc import Mapping
import copy
import re
import threading
from urllib import parse

NOVA = 'http://nova.test/v2.1'


def uuid(kind, name):
    """Return the uuid of something of a kind with a name."""
    number = int.from_bytes(name.encode()[:6], 'big')
    return f'{kind:08d}-0000-4000-8000-{number:012x}'


class FakeNova:
    """A fake Nova.

    :param newest: The newest microversion; empty where there are none.
    """

    def __init__(
        self, newest='2.96', *, aggregates=None, flavors=None, nodes=None
    ):
        self.newest = newest
        # The most items it gives out at once, whatever is asked for.
        self.page = 1000
        self.aggregates = {} if aggregates is None else aggregates
        self.flavors = {} if flavors is None else flavors
        self.nodes = {} if nodes is None else nodes
        # The names of flavors that are not public.
        self.private = frozenset()
        # The projects with access to each flavor, and the flavors of servers.
        self.access = {}
        self.servers = {}
        self.groups = []
        # Servers in the format of the API, for lists with details.
        self.placed = []
        self.deleted = []
        # Whether deleting a server takes until the test completes it.
        self.is_slow = False
        self.after_page = lambda: None
        self.on_delete = lambda server: None
        self._prefix = parse.urlsplit(NOVA).path
        self._lock = threading.Lock()

    def keep(self):
        """Return a copy of the whole state."""
        return copy.deepcopy(
            (
                self.nodes,
                self.aggregates,
                self.flavors,
                self.access,
                self.servers,
            )
        )

    def put_back(self, state):
        """Have the state of a copy, and nothing else."""
        (
            self.nodes,
            self.aggregates,
            self.flavors,
            self.access,
            self.servers,
        ) = copy.deepcopy(state)
        self.is_slow = False
        self.deleted = []

    def answer(self, http, url=NOVA):
        """Answer requests that read, for a URL."""
        paths = ['', '/os-aggregates', '/flavors/detail']
        paths += ['/os-hypervisors/detail', '/servers', '/servers/detail']
        paths += ['/os-server-groups', '/os-services']
        paths += (
            f'/flavors/{parse.quote(flavor.id)}/{part}'
            for flavor in self.flavors
            for part in ('os-extra_specs', 'os-flavor-access')
        )

        self._prefix = parse.urlsplit(url).path
        for path in paths:
            http.get(f'{url}{path}', json=self.respond)

    def respond(self, request, context):
        """Answer one request, as requests-mock calls it."""
        parts = parse.urlsplit(request.url)
        context.status_code, document = self.reply(
            'GET',
            parse.unquote(parts.path.removeprefix(self._prefix)),
            parts.query,
            request.headers,
        )
        return document

    def reply(self, method, path, query, headers, body=None):
        """Return the status and the document of an answer."""
        values = dict(parse.parse_qsl(query))
        version = headers.get('OpenStack-API-Version', 'compute 2.1')
        minor = int(version.removeprefix('compute 2.'))
        with self._lock:
            for pattern, handler, *microversion in _ROUTES:
                if match := re.fullmatch(pattern, f'{method} {path}'):
                    arguments = [minor] if microversion else []
                    try:
                        return handler(
                            self, values, body, *match.groups(), *arguments
                        )
                    except KeyError:
                        return 404, {'itemNotFound': {'message': 'no such'}}
        raise AssertionError(f'{method} {path}')

    def versions(self, query, body):
        return 200, {
            'version': {
                'id': 'v2.1',
                'status': 'CURRENT',
                'min_version': '2.1' if self.newest else '',
                'version': self.newest,
            }
        }

    def list_aggregates(self, query, body, minor):
        aggregates = _documents(self.aggregates, _aggregate)
        if minor < 41:
            for aggregate in aggregates:
                del aggregate['uuid']
        return 200, {'aggregates': aggregates}

    def create_aggregate(self, query, body):
        name = body['aggregate']['name']
        if any(a['name'] == name for a in self.aggregates.values()):
            return 409, {'conflictingRequest': {'message': 'there'}}
        number = len(self.aggregates) + 1
        self.aggregates[number] = {
            'id': number,
            'uuid': uuid(2, name),
            'name': name,
            'hosts': [],
            'metadata': {},
            'availability_zone': None,
        }
        made = dict(self.aggregates[number])
        del made['hosts'], made['metadata']
        return 200, {'aggregate': made}

    def act_on_aggregate(self, query, body, number):
        aggregate = self.aggregates[int(number)]
        [(action, change)] = body.items()
        if action == 'set_metadata':
            merged = {**aggregate['metadata'], **change['metadata']}
            aggregate['metadata'] = {
                key: value
                for key, value in merged.items()
                if value is not None
            }
        elif action == 'add_host':
            if change['host'] in aggregate['hosts']:
                return 409, {'conflictingRequest': {'message': 'in it'}}
            if not any(
                node['service']['host'] == change['host']
                for node in self.nodes.values()
            ):
                raise KeyError
            aggregate['hosts'].append(change['host'])
        elif change['host'] in aggregate['hosts']:
            aggregate['hosts'].remove(change['host'])
        else:
            raise KeyError
        return 200, {'aggregate': aggregate}

    def delete_aggregate(self, query, body, number):
        if self.aggregates[int(number)]['hosts']:
            return 400, {'badRequest': {'message': 'not empty'}}
        del self.aggregates[int(number)]
        return 200, None

    def list_nodes(self, query, body):
        return self._listing('hypervisors', self._nodes(), query)

    def list_flavors(self, query, body, minor):
        flavors = [
            flavor
            for flavor in _documents(self.flavors, self._flavor)
            if query.get('is_public', 'True')
            in ('None', str(flavor['os-flavor-access:is_public']))
        ]
        if minor < 55:
            for flavor in flavors:
                flavor.pop('description', None)
        if minor < 61:
            for flavor in flavors:
                del flavor['extra_specs']
        if minor < 75:
            for flavor in flavors:
                flavor['swap'] = flavor.get('swap') or ''
        reply = self._listing('flavors', flavors, query)
        self.after_page()
        return reply

    def create_flavor(self, query, body):
        flavor = dict(body['flavor'])
        if flavor['id'] in self.flavors:
            return 409, {'conflictingRequest': {'message': 'there'}}
        flavor['extra_specs'] = {}
        self.flavors[flavor['id']] = flavor
        self.access[flavor['id']] = set()
        return 200, {'flavor': flavor}

    def get_flavor(self, query, body, flavor):
        return 200, {'flavor': self.flavors[flavor]}

    def delete_flavor(self, query, body, flavor):
        del self.flavors[flavor]
        del self.access[flavor]
        return 202, None

    def get_extra_specs(self, query, body, flavor):
        extra_specs = {
            document['id']: document['extra_specs']
            for document in _documents(self.flavors, self._flavor)
        }
        return 200, {'extra_specs': extra_specs[flavor]}

    def set_extra_specs(self, query, body, flavor):
        self.flavors[flavor]['extra_specs'].update(body['extra_specs'])
        return 200, body

    def list_access(self, query, body, flavor):
        return 200, {
            'flavor_access': [
                {'flavor_id': flavor, 'tenant_id': project}
                for project in sorted(self.access.get(flavor, ()))
            ]
        }

    def act_on_flavor(self, query, body, flavor):
        [(action, change)] = body.items()
        projects = self.access[flavor]
        if action == 'addTenantAccess':
            if change['tenant'] in projects:
                return 409, {'conflictingRequest': {'message': 'there'}}
            projects.add(change['tenant'])
        else:
            projects.remove(change['tenant'])
        return self.list_access(query, body, flavor)

    def list_servers(self, query, body):
        servers = [
            {'id': server, 'name': server}
            for server, flavor in sorted(self.servers.items())
            if flavor == query.get('flavor', flavor)
        ]
        return self._listing('servers', servers, query)

    def list_groups(self, query, body):
        start = int(query.get('offset', 0))
        return 200, {'server_groups': self.groups[start:]}

    def list_services(self, query, body):
        services = [
            {
                'host': node['service']['host'],
                'state': node['state'],
                'status': node['status'],
                'disabled_reason': None,
                'forced_down': False,
            }
            for node in self._nodes()
        ]
        return 200, {'services': services}

    def get_server(self, query, body, server):
        self.servers[server]
        return 200, {'server': {'id': server}}

    def describe_servers(self, query, body):
        return self._listing('servers', self.placed, query)

    def delete_server(self, query, body, server):
        self.servers[server]
        # That of the action os-forceDelete or of DELETE.
        status = 202 if body else 204
        self.deleted.append(server)
        if not self.is_slow:
            self.finish(server)
        return status, None

    def list_migrations(self, query, body):
        assert query['status'] == 'finished'
        return 200, {'migrations': []}

    def finish(self, server):
        """Delete a server permanently."""
        del self.servers[server]
        self.on_delete(server)

    def _nodes(self):
        # In the order in which they came; their ids are random.
        if isinstance(self.nodes, Mapping):
            return list(map(dict, self.nodes.values()))
        return list(map(_node, self.nodes))

    def _listing(self, key, items, query):
        """Return a page, or the refusal of a marker that does not exist."""
        marker = query.get('marker')
        ids = [item['id'] for item in items]
        if marker and marker not in ids:
            message = f'marker [{marker}] not found'
            return 400, {'badRequest': {'code': 400, 'message': message}}
        start = ids.index(marker) + 1 if marker else 0
        number = min(int(query.get('limit', self.page)), self.page)
        return 200, {key: items[start : start + number]}

    def _flavor(self, flavor):
        return {
            'id': flavor.id,
            'name': flavor.name,
            'vcpus': flavor.vcpus,
            'ram': flavor.ram,
            'disk': flavor.disk,
            'OS-FLV-EXT-DATA:ephemeral': flavor.ephemeral,
            'swap': flavor.swap,
            'os-flavor-access:is_public': flavor.name not in self.private,
            'extra_specs': dict(flavor.extra_specs),
            'description': None,
        }


def _documents(items, to_document):
    if isinstance(items, Mapping):
        # As Nova sorts flavors.
        return [dict(items[key]) for key in sorted(items)]
    return list(map(to_document, items))


def _aggregate(aggregate):
    return {
        'id': aggregate.id,
        'uuid': aggregate.uuid,
        'name': aggregate.name,
        'metadata': dict(aggregate.metadata),
        'hosts': sorted(aggregate.hosts),
        'availability_zone': aggregate.availability_zone,
        'created_at': '2026-01-01T00:00:00.000000',
        'deleted': False,
    }


def _node(node):
    return {
        'id': node.uuid,
        'hypervisor_hostname': node.name,
        'service': {'host': node.host, 'id': f'service-{node.uuid}'},
        'state': 'up',
        'status': 'enabled',
    }


# The third item tells which handlers depend on the microversion.
_ROUTES = [
    ('GET /?', FakeNova.versions),
    ('GET /os-aggregates', FakeNova.list_aggregates, True),
    ('POST /os-aggregates', FakeNova.create_aggregate),
    (r'POST /os-aggregates/(\d+)/action', FakeNova.act_on_aggregate),
    (r'DELETE /os-aggregates/(\d+)', FakeNova.delete_aggregate),
    ('GET /os-hypervisors/detail', FakeNova.list_nodes),
    ('GET /flavors/detail', FakeNova.list_flavors, True),
    ('POST /flavors', FakeNova.create_flavor),
    ('GET /flavors/([^/]+)', FakeNova.get_flavor),
    ('DELETE /flavors/([^/]+)', FakeNova.delete_flavor),
    ('GET /flavors/(.+)/os-extra_specs', FakeNova.get_extra_specs),
    ('POST /flavors/([^/]+)/os-extra_specs', FakeNova.set_extra_specs),
    ('GET /flavors/([^/]+)/os-flavor-access', FakeNova.list_access),
    ('POST /flavors/([^/]+)/action', FakeNova.act_on_flavor),
    ('GET /servers', FakeNova.list_servers),
    ('GET /servers/detail', FakeNova.describe_servers),
    ('GET /servers/([^/]+)', FakeNova.get_server),
    ('GET /os-server-groups', FakeNova.list_groups),
    ('GET /os-services', FakeNova.list_services),
    ('GET /os-migrations', FakeNova.list_migrations),
    ('DELETE /servers/([^/]+)', FakeNova.delete_server),
    ('POST /servers/([^/]+)/action', FakeNova.delete_server),
]
