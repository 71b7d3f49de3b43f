# SPDX-License-Identifier: Apache-2.0
"""Calls an OpenStack REST API and says plainly what went wrong.

Sessions, endpoints, time-outs and retries are keystoneauth's; this module
translates its errors, and the answers that are invalid.
"""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import functools
from typing import Any, ClassVar, TypeVar

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exceptions
import requests

from isolate_aggregates import exception
from isolate_aggregates.rest import errors
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates.text import public, short

# Of the web servers in use uWSGI takes the least by default: it has 4,096
# bytes for the whole request and holds the query in it twice, so that beside
# the headers there is room for about 1,600.
_LONG_QUERY = 1600

# What they, or a proxy before them such as HAProxy (400), answer to a longer
# one. Only 414 means nothing else.
_TOO_LONG = (400, 431, 502)

# What a caller may be able to do something about.
_KINDS = {
    404: exception.ServiceNotFound,
    409: exception.ServiceConflict,
    500: exception.ServiceFailed,
}

RETRIES = 3
RETRIABLE = (429, 503)

_T = TypeVar('_T')


class Service:
    """One OpenStack service, as its clients here call it.

    :param name: What messages call it, such as ``Placement``.
    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first one and twice as long before each further.
    :param retries: How often to try again what may succeed then; None for
        three times.
    :param long_query: The bytes of a path and query that was answered, for
        those who try longer ones to find a limit: what fails beyond them may
        be too long. None for what web servers take at least.
    """

    def __init__(
        self,
        name: str,
        client: adapter.Adapter,
        retry_delay: float | None = None,
        retries: int | None = None,
        long_query: int | None = None,
    ) -> None:
        self.name = name
        self._client = client
        self._retry_delay = retry_delay
        self._retries = RETRIES if retries is None else retries
        self._long_query = _LONG_QUERY if long_query is None else long_query
        # Where uWSGI refuses a request, Apache before it answers 500, as it
        # does in other cases. Only who has seen a shorter one answered can
        # tell them apart.
        self._too_long_statuses = (
            _TOO_LONG if long_query is None else (*_TOO_LONG, 500)
        )

    @functools.cached_property
    def endpoint(self) -> str:
        """The endpoint, for messages; Keystone is asked for it once.

        :raises ServiceError: if Keystone does not give it away.
        """
        self._authenticate()
        try:
            endpoint = self._client.get_endpoint()
        except ks_exceptions.EndpointNotFound as exc:
            raise exception.ServiceError(
                self.name,
                None,
                f'has no endpoint in the service catalog: {short(exc)}'
                '; look at the region and the interface.',
            ) from exc
        except Exception as exc:
            # A catalog that no Keystone gives.
            raise self._no_token(exc) from exc
        if not endpoint:
            raise exception.ServiceError(
                self.name,
                None,
                'has no endpoint: this auth type has no service catalog; '
                'give the endpoint itself, as '
                f'--os-{self._client.service_type}-endpoint-override.',
            )
        return public(endpoint)

    def root(self, version: str) -> str:
        """Return how paths begin: endpoints may or may not have a version.

        :param version: The version, such as ``v2``.
        """
        endpoint = self.endpoint.rstrip('/')
        return '' if endpoint.endswith(f'/{version}') else f'/{version}'

    def request(
        self,
        method: str,
        path: str,
        microversion: str | None = None,
        json: Any = None,
        accept: Iterable[int] = (200,),
        content_type: str = 'application/json',
    ) -> requests.Response:
        """Call the API and return an answer with an accepted status.

        After connection errors and the statuses 429 and 503 it is tried again.

        :param path: Path and query string below the endpoint.
        :param accept: The statuses the caller can use.
        :raises ServiceError: or the one of its kinds that says what happened.
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
                connect_retry_delay=self._retry_delay,
                status_code_retries=self._retries,
                status_code_retry_delay=self._retry_delay,
                retriable_status_codes=list(RETRIABLE),
            )
        if answer.status_code not in accept:
            raise self.failure(method, path, answer)
        return answer

    def get(self, path: str, microversion: str | None = None) -> Any:
        """Call the API and return the JSON object it answers with.

        :param path: Path and query string below the endpoint.
        :raises ServiceError: or the one of its kinds that says what happened.
        """
        answer = self.request('GET', path, microversion)
        return self.decode(answer, path)

    def decode(self, answer: requests.Response, path: str) -> dict[str, Any]:
        """Return the JSON object of an answer.

        :param path: What was asked, for the message.
        :raises ServiceError: if it is no JSON object.
        """
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
        """Return what a parser makes of an answer.

        :param path: What was asked, for the message.
        :raises ServiceError: if the answer lacks what the parser needs.
        """
        try:
            return parser(document)
        except (LookupError, TypeError, AttributeError, ValueError) as exc:
            raise exception.ServiceError(
                self.name,
                self.endpoint,
                f'answered {_shown(path)} with JSON that lacks what it should '
                f'have: {exc!r}; is this the right endpoint?',
            ) from exc

    @contextlib.contextmanager
    def translated(self, path: str = '') -> Iterator[None]:
        """Turn keystoneauth's errors into ours.

        :raises ServiceError: or the one of its kinds that says what happened.
        """
        where = self.endpoint
        # Whatever goes wrong hereafter is then not for want of a token.
        self._authenticate()
        try:
            yield
        except (ks_exceptions.ConnectionError, OSError) as exc:
            if len(path) > self._long_query and errors.was_closed(exc):
                raise self._too_long(path, 'closed the connection') from exc
            raise errors.unreachable(self.name, where, exc) from exc
        except ks_exceptions.ClientException as exc:
            # The token had to be renewed.
            raise self._no_token(exc) from exc

    def _authenticate(self) -> None:
        try:
            self._client.session.get_auth_headers(self._client.auth)
        except Exception as exc:
            # Of any kind: a plugin that misses its password raises just
            # Exception, and an answer that no Keystone gives leads to others.
            raise self._no_token(exc) from exc

    def _no_token(self, exc: Exception) -> exception.ServiceError:
        auth = self._client.auth or self._client.session.auth
        return errors.from_keystone(getattr(auth, 'auth_url', None), exc)

    def failure(
        self, method: str, path: str, answer: requests.Response
    ) -> exception.ServiceError:
        """Return the error for an answer that is of no use."""
        status, said = answer.status_code, _said(answer)
        if status == 414 or (
            status in self._too_long_statuses
            and len(path) > self._long_query
            and not _is_json(answer)
        ):
            return self._too_long(path, f'answered {status}')
        if status == 400:
            return exception.BadQuery(
                self.name,
                self.endpoint,
                f'calls the request invalid (400): {short(said)}.',
            )
        return self.refusal(f'{method} {_shown(path)}', status, said)

    def refusal(
        self, request: str, status: int, said: str
    ) -> exception.ServiceError:
        """Return the error for a status that is of no use.

        :param request: What was asked.
        :param status: The status of the answer.
        :param said: What the service itself says went wrong.
        """
        said = short(said) or 'it does not say why'
        if status == 401:
            return exception.ServiceDenied(
                self.name,
                self.endpoint,
                f'does not accept the token of {request} (401): {said}; look '
                'at the credentials, and at [keystone_authtoken] of the '
                'service.',
            )
        if status == 403:
            return exception.ServiceDenied(
                self.name,
                self.endpoint,
                f'denied {request} (403): {said}; use credentials with the '
                'admin or service role.',
            )
        kind = _KINDS.get(status, exception.ServiceError)
        return kind(
            self.name,
            self.endpoint,
            f'answered {request} with {status}: {said}.',
        )

    def _too_long(self, path: str, happened: str) -> exception.QueryTooLong:
        query = path.partition('?')[2]
        return exception.QueryTooLong(
            self.name, self.endpoint, happened, len(query)
        )


def _is_json(answer: requests.Response) -> bool:
    return 'json' in answer.headers.get('Content-Type', '')


def _said(answer: requests.Response) -> str:
    """Return what the service itself says went wrong."""
    try:
        document = answer.json()
        if 'errors' in document:
            said = document['errors'][0]['detail']
        elif 'message' in document:
            said = document['message']
        else:
            [error] = document.values()
            said = error['message']
        # First comes what the status means, then what is wrong.
        general, _, specific = said.partition('\n\n')
        return str(specific.strip() or general)
    except (ValueError, LookupError, TypeError, AttributeError):
        is_page = answer.text.lstrip().startswith('<')
        return answer.reason or '' if is_page else answer.text


def _shown(path: str) -> str:
    """Return a path for a message, without the end of a long query."""
    return path if len(path) <= 100 else f'{path[:100]}...'


class ApiClient:
    """The API of one service.

    Every method raises ServiceError, or the one of its kinds that says what
    happened, if the service gives no usable answer.

    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first one and twice as long before each further.
    """

    # What messages call the service, and what the catalog does.
    NAME: ClassVar[str]
    TYPE: ClassVar[str]

    def __init__(
        self, connection: Connection, retry_delay: float | None = None
    ) -> None:
        self._service = Service(
            self.NAME, connection.adapter(self.TYPE), retry_delay
        )
