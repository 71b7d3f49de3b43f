# SPDX-License-Identifier: Apache-2.0
"""A real Placement with a fake Nova, behind a wire on which calls fail.

Both are called over HTTP: the library has no idea. Each call goes over a wire
where a test can count calls, break them, or let somebody else write between.
"""

import io
import json
from urllib import parse

from fake_nova import NOVA, FakeNova, uuid
from http_fakes import GLANCE
from keystoneauth1 import session, token_endpoint
import placement_backup
import requests
from requests import adapters

from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools.placement.client import PlacementClient


class Wire(adapters.HTTPAdapter):
    """Carries the calls to both services.

    :param nova: Nova.
    """

    def __init__(self, nova):
        super().__init__(pool_maxsize=50)
        self.nova = nova
        self.calls = []
        # Takes the number of a call and returns what happens to it.
        self.fault = None
        # Called before a call is carried.
        self.meddle = None
        # Takes method, address and body of a call, and returns the status that
        # the service answers without doing anything; None to do it.
        self.refuse = None
        # The time that web servers tell, if they do.
        self.date = None
        # The most candidates in an answer of Placement, as operators can
        # configure with [placement] max_allocation_candidates.
        self.most_candidates = None

    def send(self, request, **kwargs):
        """Carry a call, unless it is to fail."""
        self.calls.append((request.method, request.url))
        fault = self.fault and self.fault(len(self.calls))
        return self.carry(request, fault, **kwargs)

    def carry(self, request, fault=None, **kwargs):
        """Carry a call.

        :param fault: What happens to it: ``refused`` and ``cut`` have no
            effect; of ``lost`` and ``silent`` only the answer is wrong, or
            missing.
        """
        if fault in ('refused', 'cut'):
            return self._fail(request, fault)
        if self.meddle:
            self.meddle(request.method, request.url)
        body = request.body or ''
        body = body.decode() if isinstance(body, bytes) else body
        if self.refuse and (
            status := self.refuse(request.method, request.url, body)
        ):
            return _response(
                request, status, {'errors': [{'detail': 'refused'}]}
            )
        if self.most_candidates and '/allocation_candidates' in request.url:
            request.url += f'&limit={self.most_candidates}'
        if request.url.startswith(GLANCE):
            # Nothing about reservations depends on images.
            answer = _response(request, 200, {'images': []})
        elif request.url.startswith(NOVA):
            answer = self._ask_nova(request)
        else:
            answer = super().send(request, **kwargs)
        if self.date:
            answer.headers['Date'] = self.date
        return self._fail(request, fault) if fault else answer

    def _ask_nova(self, request):
        parts = parse.urlsplit(request.url)
        status, document = self.nova.reply(
            request.method,
            parts.path.removeprefix('/v2.1'),
            parts.query,
            request.headers,
            json.loads(request.body) if request.body else None,
        )
        return _response(request, status, document)

    @staticmethod
    def _fail(request, fault):
        if fault in ('cut', 'silent'):
            raise requests.ConnectionError('the wire is cut')
        return _response(request, 500, {'errors': [{'detail': 'no'}]})


def _response(request, status, document):
    answer = requests.Response()
    answer.status_code = status
    answer.request = request
    answer.url = request.url
    answer.headers['Content-Type'] = 'application/json'
    content = b'' if document is None else json.dumps(document).encode()
    answer.raw = io.BytesIO(content)
    answer._content = content
    return answer


class WiredWorld:
    """Nova and Placement, and the library over a wire.

    :param client: The adapter of a Placement, which is empty.
    :param database: What keeps and restores its database.
    """

    def __init__(self, client, database=placement_backup):
        self._database = database
        # For the test itself: these calls are never broken.
        self.direct = PlacementClient(client)
        self.endpoint = client.get_endpoint()
        self.nova = FakeNova('2.90')
        self.wire = Wire(self.nova)
        self._empty = self.keep()

    def connection(self, line=None):
        """Return what another process would connect with.

        :param line: Carries its calls; None for the wire itself.
        """
        http = requests.Session()
        # It needs no proxies; to look for them takes as long as a call.
        http.trust_env = False
        http.mount('http://', line or self.wire)
        return Connection(
            session.Session(token_endpoint.Token(NOVA, 'admin'), session=http),
            endpoints={
                'compute': NOVA,
                'image': GLANCE,
                'placement': self.endpoint,
            },
        )

    def keep(self):
        """Return a copy of the state of both."""
        return self._database.keep(), self.nova.keep()

    def put_back(self, scene):
        """Have what was kept, and nothing else."""
        placement, nova = scene
        self._database.put_back(placement)
        self.nova.put_back(nova)
        self.wire.fault = self.wire.meddle = self.wire.refuse = None
        self.wire.most_candidates = None
        self.wire.calls.clear()

    def reset(self):
        """Forget everything."""
        self.put_back(self._empty)

    def add_node(self, name):
        """Add a compute node to Nova alone; return its uuid."""
        root = uuid(1, name)
        self.nova.nodes[root] = {
            'id': root,
            'hypervisor_hostname': name,
            'service': {'host': name},
            'state': 'up',
            'status': 'enabled',
        }
        return root

    def provide(self, name, uuid, parent=None, inventories=None):
        """Add a resource provider."""
        self.direct.send(
            'POST',
            '/resource_providers',
            {'name': name, 'uuid': uuid, 'parent_provider_uuid': parent},
        )
        if inventories:
            self.direct.send(
                'PUT',
                f'/resource_providers/{uuid}/inventories',
                {
                    'resource_provider_generation': 0,
                    'inventories': inventories,
                },
            )
