# SPDX-License-Identifier: Apache-2.0
"""A cloud whose services answer over HTTP, as the real clients see it.

keystoneauth, novaclient and requests are the real ones; requests-mock answers
in place of the network. Placement is the real one too where it matters.
"""

from collections.abc import Callable
import dataclasses

from fake_nova import NOVA
from keystoneauth1 import adapter, fixture, session, token_endpoint
from keystoneauth1.identity import v3
import pytest
import requests_mock

from isolate_aggregates import exception
from isolate_aggregates.request import Image
from isolate_aggregates.rest.client import Service
from isolate_aggregates.rest.connection import Connection

AUTH_URL = 'http://keystone.test/v3'
GLANCE = 'http://glance.test'
PLACEMENT = 'http://placement.test'
# So long that a web server may refuse it.
LONG = '/allocation_candidates?member_of=!in:' + 'u' * 4000
ENDPOINTS = {'compute': NOVA, 'image': GLANCE, 'placement': PLACEMENT}

# Neither may ever be shown. Placement without Keystone takes whatever token
# begins with "admin" for the administrator's.
PASSWORD = 'pa55word-for-nobody-to-see'
TOKEN = 'admin:t0ken-for-nobody-to-see'
CREDENTIALS = {
    'auth_url': AUTH_URL,
    'username': 'admin',
    'password': PASSWORD,
    'project_name': 'admin',
    'user_domain_id': 'default',
    'project_domain_id': 'default',
}

# What web servers return instead of JSON.
HTML = {'Content-Type': 'text/html'}


class FakeKeystone:
    """A fake Keystone: returns a token and a catalog for the right password.

    :param http: Where it is to answer.
    :param endpoints: URLs by service type.
    :param region: The region of all endpoints.
    """

    def __init__(self, http, endpoints=ENDPOINTS, region='RegionOne'):
        self._endpoints = endpoints
        self._region = region
        http.get(AUTH_URL, json={'version': fixture.V3Discovery(AUTH_URL)})
        http.post(f'{AUTH_URL}/auth/tokens', json=self._token)
        for kind in ('domains', 'projects'):
            http.get(f'{AUTH_URL}/{kind}', json={kind: []})

    def _token(self, request, context):
        password = request.json()['auth']['identity']['password']
        if password['user']['password'] != PASSWORD:
            context.status_code = 401
            context.headers['Content-Type'] = 'application/json'
            return {
                'error': {
                    'code': 401,
                    'title': 'Unauthorized',
                    'message': 'The request you have made requires '
                    'authentication.',
                }
            }
        context.status_code = 201
        context.headers['X-Subject-Token'] = TOKEN
        token = fixture.V3Token(user_id='a1', user_name='admin')
        token.set_project_scope(id='a2', name='admin')
        for service_type, url in self._endpoints.items():
            token.add_service(service_type).add_standard_endpoints(
                public=url, region=self._region
            )
        return token


@dataclasses.dataclass
class FakeGlance:
    """A fake of the parts of Glance's API that are read.

    :param page: The most images it gives out at once.
    :param hidden: The ids of the images that are hidden.
    :param after_page: Called after each page.
    """

    page: int = 1000
    images: list[Image] = dataclasses.field(default_factory=list)
    hidden: set[str] = dataclasses.field(default_factory=set)
    after_page: Callable[[], None] = lambda: None

    def answer(self, http, url=GLANCE):
        """Answer requests for a URL."""
        http.get(f'{url}/v2/images', json=self._images)
        http.get(
            requests_mock.ANY,
            status_code=404,
            text='No image found',
            additional_matcher=lambda request: request.url.startswith(
                f'{url}/v2/images/'
            ),
        )
        for image in self.images:
            http.get(f'{url}/v2/images/{image.id}', json=_image(image))

    def _images(self, request, context):
        [name] = request.qs.get('name', [None])
        [visibility] = request.qs.get('visibility', [None])
        [hidden] = request.qs.get('os_hidden', ['false'])
        # As MySQL compares.
        found = [
            _image(image)
            for image in self.images
            if (name is None or image.name.lower() == name.lower())
            and (image.id in self.hidden) == (hidden == 'true')
            # Without a visibility, Glance leaves out community images.
            and (
                image.visibility == visibility
                if visibility
                else image.visibility != 'community'
            )
        ]
        answer = _listing('images', found, request, context, self.page)
        page = answer.get('images')
        if page and page[-1] != found[-1]:
            answer['next'] = f'/v2/images?marker={page[-1]["id"]}'
        self.after_page()
        return answer


def _image(image):
    return {
        'id': image.id,
        'name': image.name,
        'owner': image.owner,
        'visibility': image.visibility,
        'disk_format': image.disk_format,
        'status': 'active',
        'min_disk': 0,
        'tags': ['tag'],
        'checksum': None,
        'file': f'/v2/images/{image.id}/file',
        **image.properties,
    }


def _listing(key, items, request, context, longest):
    """Return a page, or the refusal of a marker that does not exist."""
    [limit] = request.qs.get('limit', [longest])
    [marker] = request.qs.get('marker', [None])
    ids = [item['id'] for item in items]
    if marker and marker not in ids:
        context.status_code = 400
        message = f'marker [{marker}] not found'
        return {'badRequest': {'code': 400, 'message': message}}
    start = ids.index(marker) + 1 if marker else 0
    return {key: items[start : start + min(int(limit), longest)]}


def connection(password=PASSWORD, region=None):
    """Return a connection with the credentials of the administrator."""
    auth = v3.Password(
        AUTH_URL,
        username='admin',
        password=password,
        project_name='admin',
        user_domain_id='default',
        project_domain_id='default',
    )
    return Connection(session.Session(auth), region_name=region)


def client(url, timeout=None):
    """Return an adapter for a Placement without a Keystone."""
    return adapter.Adapter(
        session.Session(token_endpoint.Token(url, TOKEN), timeout=timeout),
        service_type='placement',
    )


def service(client):
    """Return a Placement client that retries without a delay."""
    return Service('Placement', client)


def failing(client, path='/traits'):
    """Return the error that a question ends with."""
    with pytest.raises(exception.ServiceError) as caught:
        client.get(path)
    return caught.value
