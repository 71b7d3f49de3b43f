# SPDX-License-Identifier: Apache-2.0
"""The mocked Placement: maps requests to status, headers and JSON.

Each path is answered at the microversions that clients send there: Nova 31 to
34, Blazar, osc-placement and this package.
"""

from collections.abc import Callable, Mapping
import dataclasses
import datetime
from email import utils
import http
import re
from typing import NamedTuple
from urllib import parse
import uuid

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement import microversion as mv
from isolate_aggregates_tools.simulator import query, refusal
from isolate_aggregates_tools.testing.documents import (
    Document,
    Documents,
    Failure,
    Query,
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
    406: 'The resource could not be generated that was acceptable to your '
    'browser.',
    500: 'The server has either erred or is incapable of performing the '
    'requested operation.',
    501: 'The server does not do this.',
}


# osc-placement sends the newest microversion by default. Blazar sends 1.29, as
# this package does for whatever does not need a newer one.
_COMMON = frozenset((mv.NESTED.minor, mv.ANY_TRAITS.minor))
_CANDIDATES = _COMMON | {
    mv.IN_TREE.minor,
    mv.FORBIDDEN_AGGREGATES.minor,
    mv.STRING_SUFFIXES.minor,
    mv.ROOT_REQUIRED.minor,
    # Nova sends this one.
    mv.SAME_SUBTREE.minor,
}
_PROVIDERS = _COMMON | {0, 14, 18, mv.FORBIDDEN_AGGREGATES.minor}
_ALL = frozenset(range(query.NEWEST + 1))


class _Route(NamedTuple):
    """A path of the API.

    :param microversions: Those that clients send, without the ``1.``.
    :param read: Takes the query and the parts of the path in place of ``{}``.
    """

    microversions: frozenset[int]
    read: Callable[..., Document | None]


_PROVIDER = '/resource_providers/{}'
# The numbers are the microversions that Nova sends.
_ROUTES = {
    '': _Route(_ALL, Documents.versions),
    '/': _Route(_ALL, Documents.versions),
    '/resource_classes': _Route(_COMMON, Documents.resource_classes),
    '/resource_classes/{}': _Route(_COMMON, Documents.resource_class),
    '/resource_providers': _Route(_PROVIDERS, Documents.providers),
    _PROVIDER: _Route(_COMMON | {14}, Documents.provider),
    f'{_PROVIDER}/inventories': _Route(_COMMON | {0}, Documents.inventories),
    f'{_PROVIDER}/inventories/{{}}': _Route(_COMMON, Documents.inventory),
    f'{_PROVIDER}/usages': _Route(_COMMON, Documents.usages),
    f'{_PROVIDER}/aggregates': _Route(_COMMON | {19}, Documents.aggregates),
    f'{_PROVIDER}/traits': _Route(_COMMON | {6}, Documents.provider_traits),
    f'{_PROVIDER}/allocations': _Route(_COMMON | {0}, Documents.allocations),
    '/allocations/{}': _Route(_COMMON | {28}, Documents.consumer),
    '/allocation_candidates': _Route(_CANDIDATES, Documents.candidates),
    '/traits': _Route(_COMMON | {6}, Documents.traits),
    '/traits/{}': _Route(_COMMON | {6}, Documents.trait),
    '/usages': _Route(_COMMON | {9}, Documents.total_usages),
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
    :param max_microversion: The newest supported microversion, from 1.29 to
        1.39.
    :param prefix: The prefix of the paths in links.
    :raises ValueError: if the microversion is not one of these.
    """

    def __init__(
        self, snapshot: Snapshot, max_microversion: str, prefix: str
    ) -> None:
        minors = {
            f'1.{minor}': minor
            for minor in range(query.OLDEST, query.NEWEST + 1)
        }
        if max_microversion not in minors:
            raise ValueError(
                f'{max_microversion!r} is not a microversion from '
                f'1.{query.OLDEST} to {NEWEST}'
            )
        self._newest = minors[max_microversion]
        self._documents = Documents(snapshot, self._newest, prefix)

    def answer(
        self,
        method: str,
        path: str,
        query_string: str,
        headers: Mapping[str, str],
    ) -> Answer:
        """Return the response to a request.

        :param path: The path below the endpoint.
        :param headers: The headers, with names in any case.
        """
        headers = {name.lower(): value for name, value in headers.items()}
        reply = {'X-OpenStack-Request-Id': _REQUEST_ID}
        minor = None
        document: Document | None
        try:
            if path not in ('', '/') and 'x-auth-token' not in headers:
                raise Failure(401, 'a token is needed')
            minor = self._minor(headers.get('openstack-api-version', ''))
            reply['OpenStack-API-Version'] = f'placement 1.{minor}'
            reply['Vary'] = 'openstack-api-version'
            route, names = self._route(method, parse.unquote(path), minor)
            media_types = headers.get('accept', '*/*')
            if not _JSON.search(media_types):
                raise Failure(406, f'{media_types} is not application/json')
            document = route.read(
                self._documents, Query(minor, query_string), *names
            )
        except Failure as failure:
            status, document = failure.status, _error(failure, minor)
        except refusal.Overflow:
            overflow = Failure(
                500, 'Python int too large to convert to SQLite INTEGER'
            )
            status, document = 500, _error(overflow, minor)
            # Placement adds them to no unexpected error.
            del reply['OpenStack-API-Version'], reply['Vary']
        except refusal.Refused as refused:
            bad = Failure(400, refused.reason)
            status, document = 400, _error(bad, minor, refused.code)
        else:
            status = 204 if document is None else 200
            if minor >= _CACHE_HEADERS:
                now = datetime.datetime.now(datetime.UTC)
                reply['Cache-Control'] = 'no-cache'
                reply['Last-Modified'] = utils.format_datetime(
                    now, usegmt=True
                )
        if document is not None:
            reply['Content-Type'] = 'application/json'
        return Answer(status, document, reply)

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
            raise self._unacceptable(version)
        return minor

    def _route(
        self, method: str, path: str, minor: int
    ) -> tuple[_Route, tuple[str, ...]]:
        """Return the route of a request, and the variable parts of its path.

        :raises Failure: if the mocked Placement does not answer it.
        """
        if method != 'GET':
            raise Failure(
                501,
                'the mocked Placement can only be read; a test that writes '
                'needs the embedded one, '
                'isolate_aggregates_tools.testing.EmbeddedPlacement',
            )
        for pattern, route in _PATTERNS:
            if match := pattern.fullmatch(path):
                if minor not in route.microversions:
                    versions = ', '.join(
                        f'1.{minor}' for minor in sorted(route.microversions)
                    )
                    raise self._unacceptable(
                        f'1.{minor}; the mocked Placement answers {path} at '
                        f'the microversions that clients send: {versions}'
                    )
                return route, match.groups()
        raise Failure(404, f'the mocked Placement has no {path}')

    def _unacceptable(self, version: str) -> Failure:
        return Failure(
            406,
            'Invalid microversion: Unacceptable version header: ' + version,
            min_version='1.0',
            max_version=f'1.{self._newest}',
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
        **failure.fields,
    }
    if minor is not None and minor >= _ERROR_CODES:
        error['code'] = code
    return {'errors': [error]}
