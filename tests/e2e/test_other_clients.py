# SPDX-License-Identifier: Apache-2.0
"""Printed lines for services that the cloud does not have.

The clients of Ironic, Blazar and Watcher are real, in an environment of their
own. In place of the services something notes what they are told.
"""

import contextlib
from http import server
import json
import os
import pathlib
import threading

from control_plane.settings import REGION
import pytest
from test_printed_commands import Shell

from isolate_aggregates_tools import shell
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.shell import Kind

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(
    os.environ.get('CLIENTS_VENV') or ROOT / '.venv-clients', 'bin'
).resolve()
TYPES = ('baremetal', 'infra-optim', 'reservation')


class Noting(server.ThreadingHTTPServer):
    """Answers each change with success, and keeps it."""

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.changes = []

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_port}'


class Handler(server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        links = [{'rel': 'self', 'href': f'{self.server.url}/v1/'}]
        version = {'id': 'v1', 'status': 'CURRENT', 'links': links}
        self._answer(200, {'versions': [version], **version})

    def do_PUT(self):
        body = self._note()
        if 'traits' in self.path:
            self._answer(204, None)
        else:
            self._answer(200, {'host': body})

    def do_POST(self):
        self._answer(201, {'strategy_name': None, **self._note()})

    def _note(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        document = json.loads(body or '{}')
        self.server.changes.append((self.command, self.path, document))
        return document

    def _answer(self, code, document):
        body = b'' if document is None else json.dumps(document).encode()
        self.send_response(code)
        for name in ('Minimum', 'Maximum', ''):
            header = '-'.join(filter(None, ['API', name, 'Version']))
            number = '1.1' if name == 'Minimum' else '1.58'
            self.send_header(f'X-OpenStack-Ironic-{header}', number)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def noting(cloud):
    """What is noted of the changes; the catalog has the services meanwhile."""
    with Noting() as found, contextlib.ExitStack() as undone:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        undone.callback(thread.join)
        undone.callback(found.shutdown)
        identity = cloud.sdk.identity
        for type_ in TYPES:
            service = identity.create_service(name=type_, type=type_)
            undone.callback(identity.delete_service, service)
            for interface in ('public', 'internal', 'admin'):
                identity.create_endpoint(
                    service_id=service.id,
                    interface=interface,
                    url=found.url,
                    region_id=REGION,
                )
        yield found


@pytest.fixture
def changes(plane, noting, tmp_path):
    """Return what a line changes."""

    def of(text):
        code, output = Shell(plane, tmp_path, PROGRAMS).paste(text)
        assert code == 0, output
        return noting.changes

    return of


def test_a_node_of_bare_metal_gets_a_trait(changes):
    [add] = commands.add_node_traits([Provider('u', 'node-1')], 'CUSTOM_A')
    assert changes(commands.shown([add])) == [
        ('PUT', '/v1/nodes/node-1/traits/CUSTOM_A', {})
    ]


def test_a_host_of_blazar_gets_an_extra_capability(changes):
    line = shell.command(Kind.LEASE_HOST_SET, '--extra', 'gpu=VALUE')
    assert changes(f'{line} 1') == [('PUT', '/os-hosts/1', {'gpu': 'VALUE'})]


def test_watcher_gets_an_audit_that_runs_the_actions(changes):
    actions = [
        {
            'action_type': 'migrate',
            'resource_id': 'u',
            'input_parameters': {'destination_node': "it's"},
        }
    ]
    [create] = commands.run_watcher_actions(actions)
    [(method, path, audit)] = changes(commands.shown([create]))
    assert (method, path) == ('POST', '/v1/audits')
    parameters = {'actions': actions}
    assert (audit['goal'], audit['strategy']) == ('unclassified', 'actuator')
    assert audit['parameters'] == parameters
