# SPDX-License-Identifier: Apache-2.0
"""As much of Keystone as an operator needs: a token, and any project."""

from keystoneauth1 import fixture
import webob
import webob.dec
import webob.exc
from wsgi_intercept import interceptor

URL = 'http://keystone.test'
REGIONS = ('RegionOne', 'RegionTwo')


class KeystoneApi:
    """Returns the token of the administrator to all users.

    :param token: The token that the services know.
    :param endpoints: Addresses by type of the service.
    """

    def __init__(self, token, endpoints):
        self._token = token
        self._endpoints = endpoints
        self.interceptor = interceptor.RequestsInterceptor(
            lambda: self, url=URL
        )

    @webob.dec.wsgify
    def __call__(self, request):
        """Answer a request."""
        arguments = (request.method, request.path_info.rstrip('/'))
        if arguments == ('GET', ''):
            return webob.Response(
                json=fixture.DiscoveryList(URL, v2=False), status=300
            )
        if arguments == ('GET', '/v3'):
            return webob.Response(
                json={'version': fixture.V3Discovery(f'{URL}/v3')}
            )
        if arguments == ('POST', '/v3/auth/tokens'):
            return webob.Response(
                json=self._body(),
                status=201,
                headerlist=[
                    ('X-Subject-Token', self._token),
                    ('Content-Type', 'application/json'),
                ],
            )
        if arguments == ('GET', '/v3/projects'):
            return webob.Response(json={'projects': [], 'links': {}})
        if arguments[1].startswith('/v3/projects/'):
            number = arguments[1].rpartition('/')[2]
            return webob.Response(json={'project': {'id': number}})
        raise webob.exc.HTTPNotFound()

    def _body(self):
        token = fixture.V3Token(user_name='admin')
        token.set_project_scope(name='admin')
        token.add_role(name='admin')
        here = {'identity': f'{URL}/v3'}
        for kind, endpoint in (self._endpoints | here).items():
            service = token.add_service(kind)
            for region in REGIONS:
                service.add_standard_endpoints(public=endpoint, region=region)
        return token
