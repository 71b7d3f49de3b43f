# SPDX-License-Identifier: Apache-2.0
"""Neutron's API over the networks of Nova's Neutron fixture."""

import webob
import webob.dec
import webob.exc
from wsgi_intercept import interceptor

URL = 'http://neutron.test'
_VERSIONS = {
    'versions': [
        {
            'id': 'v2.0',
            'status': 'CURRENT',
            'links': [{'rel': 'self', 'href': f'{URL}/v2.0/'}],
        }
    ]
}


class NetworkApi:
    """A fake of Neutron's API for finding networks and ports.

    :param networks: The networks of the fixture.
    """

    def __init__(self, networks):
        self._networks = networks
        self.interceptor = interceptor.RequestsInterceptor(
            lambda: self, url=URL
        )

    @webob.dec.wsgify
    def __call__(self, request):
        """Answer a request."""
        if request.path_info in ('', '/'):
            return webob.Response(json=_VERSIONS)
        version, kind, *number = request.path_info.strip('/').split('/')
        if kind in ('ports', 'subnets'):
            # The servers here are booted without networks.
            return webob.Response(json={kind: []})
        assert (version, kind) == ('v2.0', 'networks'), request.path_info
        if number:
            raise webob.exc.HTTPNotFound()
        name = request.GET.get('name')
        found = [n for n in self._networks if n['name'] == name]
        return webob.Response(json={'networks': found})
