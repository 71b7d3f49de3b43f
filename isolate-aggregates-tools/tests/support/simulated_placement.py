# SPDX-License-Identifier: Apache-2.0
"""A Placement that answers from the simulator, in this thread.

It is quick enough for thousands of questions.
"""

import json

from keystoneauth1 import adapter, session, token_endpoint
import requests

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.testing import service

_URL = 'http://placement.test'


class SimulatedPlacement(adapter.Adapter):
    """What takes requests to Placement; it can be read only.

    :param providers: The providers; parents before children.
    """

    def __init__(self, providers=()):
        super().__init__(
            session.Session(token_endpoint.Token(_URL, 'admin')),
            service_type='placement',
        )
        self.load(providers)

    @property
    def client(self):
        """A client of this package for it."""
        return PlacementClient(self)

    def load(self, providers):
        """Answer for other providers from now on."""
        snapshot = Snapshot(origin='test', providers=tuple(providers))
        self._service = service.MockedService(snapshot, service.NEWEST, '')

    def request(self, url, method, microversion=None, **kwargs):
        """Answer a request."""
        path, _, query = url.partition('?')
        headers = {'X-Auth-Token': 'admin'}
        if microversion:
            headers['OpenStack-API-Version'] = f'placement {microversion}'
        found = self._service.answer(method, path, query, headers)
        answer = requests.Response()
        answer.status_code = found.status
        answer.headers.update(found.headers)
        answer._content = json.dumps(found.document).encode()
        return answer


class Clock:
    """Returns the time in seconds."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now
