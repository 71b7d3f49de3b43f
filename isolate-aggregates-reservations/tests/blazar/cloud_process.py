# SPDX-License-Identifier: Apache-2.0
"""A process with a real Nova and a real Placement behind real sockets.

Nova's functional fixtures run without sockets, and their global threads and
configuration conflict with Blazar's. So they run in this separate process,
which forwards HTTP requests to them. A minimal Keystone is included.

The argument is a file into which the port is written. The process ends when
its standard input is closed.
"""

from http import server
import json
import logging
import pathlib
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).parents[3]
sys.path[:0] = [
    str(ROOT / folder)
    for folder in (
        'tests/nova_functional',
        'tests/support',
        'isolate-aggregates-tools/tests/support',
    )
]

# Before anything of Nova.
import conftest  # noqa: E402, F401, I001
from base import CloudTest  # noqa: E402
from nova.virt import fake  # noqa: E402
import requests  # noqa: E402

ADMIN = 'admin'
SERVICE_PROJECT = 'f' * 32


class Cloud(CloudTest):
    """Three hosts, with the filter that takes the place of BlazarFilter."""

    REQUEST_FILTERS = ('blazar_reservation',)
    HOSTS = ('host1', 'host2', 'host3')
    # Tests take reservation providers away between them, and nova-compute
    # would fail a server over one that it had seen.
    OPTIONS = (('compute', 'resource_provider_association_refresh', 0),)

    def serve(self):
        """Serve until standard input ends."""
        logging.getLogger('nova').addHandler(_complaints())
        may_delete = threading.Event()
        may_delete.set()
        destroy = fake.FakeDriver.destroy

        def destroy_later(*args, **kwargs):
            may_delete.wait()
            return destroy(*args, **kwargs)

        self.stub_out('nova.virt.fake.FakeDriver.destroy', destroy_later)
        # Tests of Nova are not allowed its old notifications, of which force
        # deletion sends one.
        self.stub_out('nova.rpc.LegacyValidatingNotifier.fatal', False)
        Handler.compute = self.api_fixture.base_url
        Handler.placement = self.placement.fixture.endpoint
        Handler.may_delete = may_delete
        listening = server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        listening.daemon_threads = True
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        port = pathlib.Path(sys.argv[1])
        port.with_suffix('.new').write_text(str(listening.server_port))
        port.with_suffix('.new').rename(port)
        sys.stdin.read()
        may_delete.set()
        listening.shutdown()


def _complaints():
    """Return a handler that writes errors to standard error."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter('%(asctime)s %(name)s %(message)s'))
    return handler


class Handler(server.BaseHTTPRequestHandler):
    """A minimal Keystone, and a proxy for Nova and Placement.

    A token is a name and a project. The name ``admin`` is the operator, who
    acts in the project of services; others are users of their project.
    """

    protocol_version = 'HTTP/1.1'
    # Nova's fixtures are made for one caller at a time.
    turn = threading.Lock()

    def log_message(self, *args):
        """Say nothing."""

    def handle_any(self):
        """Answer a request of any kind."""
        size = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(size)
        service, _, path = self.path.lstrip('/').partition('/')
        if service == 'compute':
            self.forward(f'{self.compute}/{path}', body, self.identity())
        elif service == 'placement':
            admin = {'X-Auth-Token': 'admin'}
            self.forward(f'{self.placement}/{path}', body, admin)
        elif service == 'control':
            held = json.loads(body)['hold']
            (self.may_delete.clear if held else self.may_delete.set)()
            self.answer(200, {})
        else:
            self.keystone(path, body)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

    def identity(self):
        """Return what keystonemiddleware makes of a token."""
        token = self.headers.get('X-Auth-Token', '')
        name, _, project = token.partition('-')
        roles = 'admin,member,reader' if name == ADMIN else 'member,reader'
        return {
            'X-Auth-User': name,
            'X-User-Id': name,
            'X-Auth-Project-Id': project,
            'X-Roles': roles,
        }

    def forward(self, url, body, headers):
        """Forward a request to a service in this process."""
        kept = (
            'Content-Type',
            'Accept',
            'OpenStack-API-Version',
            'X-OpenStack-Nova-API-Version',
        )
        headers |= {k: self.headers[k] for k in kept if k in self.headers}
        with self.turn:
            result = requests.request(
                self.command, url, data=body, headers=headers
            )
        self.send_response(result.status_code)
        for name in (
            'Content-Type',
            'Location',
            'OpenStack-API-Version',
            'X-OpenStack-Nova-API-Version',
        ):
            if name in result.headers:
                self.send_header(name, result.headers[name])
        # Links lead to where it is in this process.
        here = self.compute.replace(':80', '').encode()
        there = f'http://{self.headers["Host"]}/compute'.encode()
        self.send(result.content.replace(here, there))

    def answer(self, code, document, headers=()):
        """Answer with JSON."""
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        for name, value in headers:
            self.send_header(name, value)
        self.send(json.dumps(document).encode())

    def send(self, body):
        """Send a body."""
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def keystone(self, path, body):
        """Be as much of Keystone as Blazar needs."""
        root = f'http://{self.headers["Host"]}'
        version = {
            'id': 'v3.14',
            'status': 'stable',
            'links': [{'rel': 'self', 'href': f'{root}/identity/v3/'}],
            'media-types': [],
        }
        path = path.strip('/')
        if path == '':
            self.answer(300, {'versions': {'values': [version]}})
        elif path == 'v3':
            self.answer(200, {'version': version})
        elif path == 'v3/auth/tokens' and self.command == 'POST':
            scope = json.loads(body)['auth']['scope']
            trust = scope.get('OS-TRUST:trust')
            # The id of a trust is that of the project.
            project = trust['id'] if trust else SERVICE_PROJECT
            name = ADMIN if project == SERVICE_PROJECT else 'user'
            self.answer(
                201,
                {'token': _token(root, name, project)},
                [('X-Subject-Token', f'{name}-{project}')],
            )
        else:
            self.answer(404, {'error': {'code': 404, 'message': path}})


def _token(root, name, project):
    domain = {'id': 'default', 'name': 'Default'}
    kinds = {
        'identity': 'identity',
        'compute': 'compute',
        'placement': 'placement',
    }
    return {
        'methods': ['password'],
        'expires_at': '2100-01-01T00:00:00.000000Z',
        'issued_at': '2020-01-01T00:00:00.000000Z',
        'user': {'id': name, 'name': name, 'domain': domain},
        'project': {'id': project, 'name': project, 'domain': domain},
        'roles': [{'id': 'admin', 'name': 'admin'}],
        'catalog': [
            {
                'id': kind,
                'name': kind,
                'type': kind,
                'endpoints': [
                    {
                        'id': f'{kind}-{interface}',
                        'interface': interface,
                        'region': 'RegionOne',
                        'region_id': 'RegionOne',
                        'url': f'{root}/{path}',
                    }
                    for interface in ('public', 'internal', 'admin')
                ],
            }
            for kind, path in kinds.items()
        ],
    }


if __name__ == '__main__':
    result = unittest.TextTestRunner().run(Cloud('serve'))
    sys.exit(not result.wasSuccessful())
