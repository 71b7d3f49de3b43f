# SPDX-License-Identifier: Apache-2.0
"""Calls OpenStack REST APIs, with clear error messages.

keystoneauth handles sessions, endpoints, timeouts and retries. This module
translates its exceptions, and reports invalid responses.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
from types import MappingProxyType
from typing import Any, TypeVar
from urllib import parse

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exceptions
import requests

from isolate_aggregates import exception, web_servers
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.rest import errors, paging, retry_after
from isolate_aggregates.text import public_url, short

# The statuses with which web servers, or proxies like HAProxy (400), reject
# longer queries. Only 414 is unambiguous.
_TOO_LONG = (400, 431, 502)

# Statuses with their own exception, which callers may handle.
_KINDS = {
    404: exception.ServiceNotFound,
    409: exception.ServiceConflict,
    500: exception.ServiceFailed,
}

RETRIES = 3
# Seconds before each retry; None for half a second before the first one,
# doubled for each further one.
RETRY_DELAY: float | None = None
RETRIABLE = (429, 503)

_T = TypeVar('_T')

_NO_QUERY: Mapping[str, str] = MappingProxyType({})


class Service:
    """An OpenStack service.

    :param name: The name in messages, for example ``Placement``.
    :param options: The options to name in messages.
    """

    def __init__(
        self,
        name: str,
        client: adapter.Adapter,
        retries: int | None = None,
        options: errors.Options = errors.OF_COMMANDS,
    ) -> None:
        self.name = name
        self._options = options
        retry_after.limit(client.session)
        self._client = client
        self._retries = RETRIES if retries is None else retries
        #: What keystoneauth enters for each attempt; None for no limit.
        self.rate_semaphore: contextlib.AbstractContextManager[None] | None = (
            None
        )
        #: The length in bytes of path and query above which a failure may be
        #: due to the length, and the statuses that it then may have.
        self.long_query = web_servers.UWSGI
        self.too_long_statuses: tuple[int, ...] = _TOO_LONG

    @lazy_property
    def endpoint(self) -> str:
        """The endpoint, for messages; read once from the service catalog."""
        self._authenticate()
        try:
            endpoint = self._client.get_endpoint()
        except ks_exceptions.EndpointNotFound as exc:
            raise exception.ServiceError(
                self.name,
                None,
                f'has no endpoint in the service catalog: {short(exc)}; check '
                'the region and the interface.',
            ) from exc
        except Exception as exc:
            # The catalog is invalid.
            raise self._no_token(exc) from exc
        if not endpoint:
            option = self._options.endpoint.format(
                service_type=self._client.service_type
            )
            raise exception.ServiceError(
                self.name,
                None,
                'has no endpoint: this auth type has no service catalog; '
                f'specify the endpoint with {option}.',
            )
        return public_url(endpoint)

    def request(
        self,
        method: str,
        path: str,
        microversion: str | None = None,
        json: Any = None,
        accept: Iterable[int] = (200,),
        content_type: str = 'application/json',
    ) -> requests.Response:
        """Call the API and return a response with an accepted status.

        Connection errors and the statuses 429 and 503 are retried.
        """
        headers = {'Accept': 'application/json'}
        if json is not None:
            headers['Content-Type'] = content_type
        with self.translated(path):
            answer = self._client.request(
                path,
                method,
                microversion=microversion,
                json=json,
                raise_exc=False,
                headers=headers,
                connect_retries=self._retries,
                connect_retry_delay=RETRY_DELAY,
                status_code_retries=self._retries,
                status_code_retry_delay=RETRY_DELAY,
                retriable_status_codes=list(RETRIABLE),
                rate_semaphore=self.rate_semaphore,
            )
        if answer.status_code not in accept:
            raise self.failure(method, path, answer)
        return answer

    def get(self, path: str, microversion: str | None = None) -> Any:
        """Call the API and return the JSON object of the response."""
        answer = self.request('GET', path, microversion)
        return self.decode(answer, path)

    def paged(
        self,
        path: str,
        parser: Callable[[Any], list[_T]],
        marker_of: Callable[[_T], str],
        query: Mapping[str, str] = _NO_QUERY,
        microversion: str | None = None,
        has_more: Callable[[Any], bool] = lambda document: True,
    ) -> Iterator[_T]:
        """Yield the items of a list, page after page.

        :param parser: Returns the items of a page.
        :param has_more: Returns whether there may be a page after a document;
            an empty page is the last one.
        """

        def page(marker: str | None) -> tuple[list[_T], bool]:
            after = {'marker': marker} if marker else {}
            words = parse.urlencode(
                {**query, 'limit': str(paging.SIZE), **after}
            )
            document = self.get(f'{path}?{words}', microversion)
            some = self.parsed(f'{path}?{words}', parser, document)
            return some, has_more(document)

        try:
            yield from paging.items(page, marker_of)
        except ValueError as exc:
            raise exception.ServiceError(
                self.name,
                self.endpoint,
                f'cannot be read to the end at {path}: {exc}.',
            ) from exc

    def decode(self, answer: requests.Response, path: str) -> dict[str, Any]:
        """Return the JSON object of a response."""
        try:
            document = answer.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise exception.ServiceError(
                self.name,
                self.endpoint,
                f'answered {_shown(path)} with something that is not a JSON '
                f'object: {short(answer.text)!r}; is this the right '
                'endpoint?',
            )
        return document

    def parsed(
        self, path: str, parser: Callable[[Any], _T], document: Any
    ) -> _T:
        """Parse a document."""
        try:
            return parser(document)
        except (LookupError, TypeError, AttributeError, ValueError) as exc:
            raise exception.ServiceError(
                self.name,
                self.endpoint,
                f'answered {_shown(path)} with JSON that lacks expected data: '
                f'{exc!r}; is this the right endpoint?',
            ) from exc

    @contextlib.contextmanager
    def translated(self, path: str = '') -> Iterator[None]:
        """Translate keystoneauth's exceptions into ours."""
        where = self.endpoint
        # So that later failures are not due to a missing token.
        self._authenticate()
        try:
            yield
        except (ks_exceptions.ConnectionError, OSError) as exc:
            if len(path) > self.long_query and errors.was_closed(exc):
                raise self._too_long(path, 'closed the connection') from exc
            raise errors.unreachable(
                self.name, where, exc, self._options
            ) from exc
        except ks_exceptions.ClientException as exc:
            # Renewing the token failed.
            raise self._no_token(exc) from exc

    def _authenticate(self) -> None:
        try:
            self._client.session.get_auth_headers(self._client.auth)
        except Exception as exc:
            # Any exception: a plugin without a password raises a plain
            # Exception, and invalid responses lead to various others.
            raise self._no_token(exc) from exc

    def _no_token(self, exc: Exception) -> exception.ServiceError:
        auth = self._client.auth or self._client.session.auth
        return errors.from_keystone(
            getattr(auth, 'auth_url', None), exc, self._options
        )

    def failure(
        self, method: str, path: str, answer: requests.Response
    ) -> exception.ServiceError:
        """Return the error for a response with an unexpected status."""
        status, reason = answer.status_code, _message(answer)
        if status == 414 or (
            status in self.too_long_statuses
            and len(path) > self.long_query
            and not _is_json(answer)
        ):
            return self._too_long(path, f'answered {status}')
        if status == 400:
            return exception.BadQuery(
                self.name,
                self.endpoint,
                f'rejected the request as invalid (400): {short(reason)}.',
            )
        return self.refusal(f'{method} {_shown(path)}', status, reason)

    def refusal(
        self, request: str, status: int, reason: str
    ) -> exception.ServiceError:
        """Return the error for an unexpected status."""
        reason = short(reason) or 'no reason was given'
        if status == 401:
            return exception.ServiceDenied(
                self.name,
                self.endpoint,
                f'does not accept the token of {request} (401): {reason}; '
                'check the credentials, and [keystone_authtoken] of the '
                'service.',
            )
        if status == 403:
            return exception.ServiceDenied(
                self.name,
                self.endpoint,
                f'denied {request} (403): {reason}; use credentials with the '
                'admin or service role.',
            )
        kind = _KINDS.get(status, exception.ServiceError)
        return kind(
            self.name,
            self.endpoint,
            f'answered {request} with {status}: {reason}.',
        )

    def _too_long(self, path: str, happened: str) -> exception.QueryTooLong:
        query = path.partition('?')[2]
        return exception.QueryTooLong(
            self.name, self.endpoint, happened, len(query)
        )


def _is_json(answer: requests.Response) -> bool:
    return 'json' in answer.headers.get('Content-Type', '')


def _message(answer: requests.Response) -> str:
    """Return the error message of the service."""
    try:
        document = answer.json()
        if 'errors' in document:
            message = document['errors'][0]['detail']
        elif 'message' in document:
            message = document['message']
        else:
            [error] = document.values()
            message = error['message']
        # The meaning of the status comes first, then the message.
        general, _, specific = message.partition('\n\n')
        return str(specific.strip() or general)
    except (ValueError, LookupError, TypeError, AttributeError):
        is_page = answer.text.lstrip().startswith('<')
        return answer.reason or '' if is_page else answer.text


def _shown(path: str) -> str:
    """Return a path for a message, with long queries truncated."""
    return path if len(path) <= 100 else f'{path[:100]}...'
