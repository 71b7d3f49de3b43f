# SPDX-License-Identifier: Apache-2.0
"""Projects and domains of a Keystone that answers over HTTP."""

from http_fakes import AUTH_URL
import requests_mock

PROJECTS = f'{AUTH_URL}/projects'
DOMAINS = f'{AUTH_URL}/domains'
ACME = '0a4f1e2b3c4d5e6f708192a3b4c5d6e7'
OTHER = '1b5f1e2b3c4d5e6f708192a3b4c5d6e7'
SALES = '2c6f1e2b3c4d5e6f708192a3b4c5d6e7'


class FakeProjects:
    """A fake of Keystone's API for projects and domains.

    :param http: Where it is to answer.
    """

    def __init__(self, http):
        self.projects = [
            {'id': ACME, 'name': 'acme', 'domain_id': 'default'},
            {'id': OTHER, 'name': 'acme', 'domain_id': SALES},
            {'id': '3d' * 16, 'name': 'a&b=c/d', 'domain_id': 'default'},
            {'id': '4e' * 16, 'name': 'Lab', 'domain_id': 'default'},
            {'id': '5f' * 16, 'name': '6a' * 16, 'domain_id': 'default'},
        ]
        self.domains = [
            {'id': 'default', 'name': 'Default'},
            {'id': SALES, 'name': 'sales'},
        ]
        http.get(PROJECTS, json=lambda r, c: self._list('projects', r))
        http.get(DOMAINS, json=lambda r, c: self._list('domains', r))
        missing = {'error': {'code': 404, 'message': 'Could not find it.'}}
        for kind in ('projects', 'domains'):
            http.get(
                requests_mock.ANY,
                status_code=404,
                json=missing,
                additional_matcher=lambda r, kind=kind: r.url.startswith(
                    f'{AUTH_URL}/{kind}/'
                ),
            )
            for each in getattr(self, kind):
                for number in {each['id'], each['id'].upper()}:
                    url = f'{AUTH_URL}/{kind}/{number}'
                    http.get(url, json={kind[:-1]: each})

    def _list(self, kind, request):
        # As MySQL compares.
        [name] = request.qs.get('name', [None])
        [domain] = request.qs.get('domain_id', [None])
        return {
            kind: [
                each
                for each in getattr(self, kind)
                if name is None
                or (
                    each['name'].lower() == name.lower()
                    and domain in (None, each.get('domain_id'))
                )
            ]
        }
