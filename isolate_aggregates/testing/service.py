# SPDX-License-Identifier: Apache-2.0
"""The mocked Placement: maps requests to status, headers and JSON."""

from collections.abc import Callable, Mapping
import dataclasses
import datetime
from email import utils
import http
import re
from typing import NamedTuple
from urllib import parse
import uuid

from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.placement import microversion as mv
from isolate_aggregates.placement.simulator import query, refusal
from isolate_aggregates.testing.documents import (
    Asked,
    Document,
    Documents,
    Failure,
)

NEWEST = mv.ANY_TRAITS.microversion

# The microversions that introduced parts of all responses.
_CACHE_HEADERS = 15
_ERROR_CODES = 23

_REQUEST_ID = f'req-{uuid.UUID(int=0)}'

# The general text for each status, which precedes the error message.
_MEANINGS = {
    400: 'The server could not comply with the request since it is either '
    'malformed or otherwise incorrect.',
    404: 'The resource could not be found.',
    405: 'The method is not allowed for this resource.',
    406: 'The resource could not be generated that was acceptable to your '
    'browser.',
    501: 'The server does not do this.',
}


class _Route(NamedTuple):
    """A path of the API.

    :param methods: The methods that Placement supports there.
    :param since: The microversion that introduced it.
    :param read: Handles a ``GET``; takes the request and the parts of the path
        in place of ``{}``.
    """

    methods: str
    since: int = 0
    read: Callable[..., Document | None] = Documents.versions


_PROVIDER = '/resource_providers/{}'
_ROUTES = {
    '': _Route('GET'),
    '/': _Route('GET'),
    '/resource_classes': _Route('GET, POST', 2, Documents.resource_classes),
    '/resource_classes/{}': _Route(
        'GET, PUT, DELETE', 2, Documents.resource_class
    ),
    '/resource_providers': _Route('GET, POST', 0, Documents.providers),
    _PROVIDER: _Route('GET, DELETE, PUT', 0, Documents.provider),
    f'{_PROVIDER}/inventories': _Route(
        'GET, POST, PUT, DELETE', 0, Documents.inventories
    ),
    f'{_PROVIDER}/inventories/{{}}': _Route(
        'GET, PUT, DELETE', 0, Documents.inventory
    ),
    f'{_PROVIDER}/usages': _Route('GET', 0, Documents.usages),
    f'{_PROVIDER}/aggregates': _Route('GET, PUT', 1, Documents.aggregates),
    f'{_PROVIDER}/traits': _Route(
        'GET, PUT, DELETE', 6, Documents.provider_traits
    ),
    f'{_PROVIDER}/allocations': _Route('GET', 0, Documents.allocations),
    '/allocations': _Route('POST', 13),
    '/allocations/{}': _Route('GET, PUT, DELETE', 0, Documents.consumer),
    '/allocation_candidates': _Route('GET', 10, Documents.candidates),
    '/traits': _Route('GET', 6, Documents.traits),
    '/traits/{}': _Route('GET, PUT, DELETE', 6, Documents.trait),
    '/usages': _Route('GET', 9, Documents.total_usages),
    '/reshaper': _Route('POST', 30),
}
_PATTERNS = [
    (re.compile(path.replace('{}', '([^/]+)')), route)
    for path, route in _ROUTES.items()
]
_JSON = re.compile(r'(^|[\s,])(application|\*)/(json|\*)')


@dataclasses.dataclass(frozen=True)
class Answer:
    """A response.

    :param status: The HTTP status.
    :param document: The JSON document; None for a response without a body.
    :param headers: The headers.
    """

    status: int
    document: Document | None
    headers: Mapping[str, str]


class MockedService:
    """Answers requests like a Placement with the providers of a snapshot.

    :param snapshot: The cloud.
    :param max_microversion: The newest supported microversion, up to 1.39.
    :param prefix: The prefix of the paths in links.
    :raises ValueError: if the microversion is invalid or newer than 1.39.
    """

    def __init__(
        self, snapshot: Snapshot, max_microversion: str, prefix: str
    ) -> None:
        known = [f'1.{minor}' for minor in range(query.NEWEST + 1)]
        if max_microversion not in known:
            raise ValueError(
                f'{max_microversion!r} is not a microversion from 1.0 to '
                f'{NEWEST}'
            )
        self._newest = known.index(max_microversion)
        self._documents = Documents(snapshot, self._newest, prefix)

    def answer(
        self,
        method: str,
        path: str,
        query_string: str,
        headers: Mapping[str, str],
    ) -> Answer:
        """Return the response to a request.

        :param method: The HTTP method.
        :param path: The path below the endpoint.
        :param query_string: The query string.
        :param headers: The headers, with names in any case.
        """
        headers = {name.lower(): value for name, value in headers.items()}
        sent = {'X-OpenStack-Request-Id': _REQUEST_ID}
        minor = None
        document: Document | None
        try:
            if path not in ('', '/') and 'x-auth-token' not in headers:
                raise Failure(401, 'a token is needed')
            minor = self._minor(headers.get('openstack-api-version', ''))
            sent['OpenStack-API-Version'] = f'placement 1.{minor}'
            sent['Vary'] = 'openstack-api-version'
            route, names = _find_route(method, parse.unquote(path), minor)
            accepted = headers.get('accept', '*/*')
            if not _JSON.search(accepted):
                raise Failure(406, f'{accepted} is not application/json')
            asked = Asked(minor, query_string)
            document = route.read(self._documents, asked, *names)
        except Failure as failure:
            status, document = failure.status, _error(failure, minor)
            sent.update(failure.headers)
        except refusal.Refused as refused:
            bad = Failure(400, refused.reason)
            status, document = 400, _error(bad, minor, refused.code)
        else:
            status = 204 if document is None else 200
            if minor >= _CACHE_HEADERS:
                now = datetime.datetime.now(datetime.UTC)
                sent['Cache-Control'] = 'no-cache'
                sent['Last-Modified'] = utils.format_datetime(now, usegmt=True)
        if document is not None:
            sent['Content-Type'] = 'application/json'
        return Answer(status, None if method == 'HEAD' else document, sent)

    def _minor(self, header: str) -> int:
        """Return the minor number of the requested microversion."""
        services = (part.split(None, 1) for part in header.split(','))
        versions = [
            words[1].strip()
            for words in services
            if len(words) == 2 and words[0].lower() == 'placement'
        ]
        version = versions[-1] if versions else '1.0'
        if version == 'latest':
            return self._newest
        try:
            major, minor = map(int, version.split('.', 1))
        except ValueError:
            raise Failure(400, f'Invalid microversion: {version}') from None
        if major != 1 or not 0 <= minor <= self._newest:
            raise Failure(
                406,
                'Invalid microversion: Unacceptable version header: '
                f'{version}',
                facts={
                    'min_version': '1.0',
                    'max_version': f'1.{self._newest}',
                },
            )
        return minor


def _find_route(
    method: str, path: str, minor: int
) -> tuple[_Route, tuple[str, ...]]:
    """Return the route of a request, and the variable parts of its path.

    :raises Failure: if there is no such route.
    """
    for pattern, route in _PATTERNS:
        if match := pattern.fullmatch(path):
            _check_method(method, path, route, minor)
            return route, match.groups()
    raise Failure(404, f'the mocked Placement has no {path}')


def _check_method(method: str, path: str, route: _Route, minor: int) -> None:
    if method not in route.methods.split(', '):
        raise Failure(
            405,
            f'{method} is not possible at {path}',
            headers={'Allow': route.methods},
        )
    if minor < route.since:
        raise Failure(404, f'{path} needs microversion 1.{route.since}')
    if method != 'GET':
        raise Failure(
            501,
            'the mocked Placement can only be read; a test that writes needs '
            'the embedded one, isolate_aggregates.testing.EmbeddedPlacement',
        )


def _error(
    failure: Failure, minor: int | None, code: str = refusal.UNDEFINED
) -> Document:
    """Return the JSON document of an error response."""
    title = http.HTTPStatus(failure.status).phrase
    if failure.status == http.HTTPStatus.UNAUTHORIZED:
        # Raised before Placement's own error format applies.
        return {
            'message': failure.problem,
            'code': f'{failure.status} {title}',
            'title': title,
        }
    error: Document = {
        'status': failure.status,
        'title': title,
        'detail': f'{_MEANINGS[failure.status]}\n\n {failure.problem}  ',
        'request_id': _REQUEST_ID,
        **failure.facts,
    }
    if minor is not None and minor >= _ERROR_CODES:
        error['code'] = code
    return {'errors': [error]}
