# SPDX-License-Identifier: Apache-2.0
"""Calls an OpenStack REST API and says plainly what went wrong.

Sessions, endpoints, time-outs and retries are keystoneauth's; this module
translates its errors, and the answers nobody can use.
"""

from collections.abc import Iterable
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exceptions
import requests

from isolate_aggregates import exception

# Web servers refuse longer request lines by default: gunicorn at 4,094 bytes,
# uWSGI at 4,096, Apache at 8,190.
_LONG_QUERY = 4000

_TIMEOUT = 60  # seconds
RETRIES = 3
_RETRY_DELAY = 0.5  # seconds, doubled each time by keystoneauth
RETRIABLE = (429, 503)


class Service:
    """One OpenStack service, as its clients here call it.

    :param name: What messages call it, such as ``Placement``.
    :param client: The keystoneauth adapter that knows session and endpoint.
    :param retry_delay: Seconds to wait before the first retry; each further
        wait is twice as long.
    """

    def __init__(
        self,
        name: str,
        client: adapter.Adapter,
        retry_delay: float = _RETRY_DELAY,
    ) -> None:
        self.name = name
        self._client = client
        self._retry_delay = retry_delay

    @property
    def endpoint(self) -> str | None:
        """The endpoint, for messages; None while it is not known."""
        try:
            return self._client.get_endpoint()
        except ks_exceptions.ClientException:
            return None

    def request(
        self,
        method: str,
        path: str,
        microversion: str | None = None,
        json: Any = None,
        accept: Iterable[int] = (200,),
    ) -> requests.Response:
        """Call the API and return an answer with an accepted status.

        Connection errors and the statuses 429 and 503 are tried again a few
        times.

        :param method: The HTTP method.
        :param path: Path and query string below the endpoint.
        :param microversion: The microversion to ask for.
        :param json: The body, if any.
        :param accept: The statuses the caller can use.
        :raises ServiceError: or the one of its kinds that says what happened.
        """
        with self.translated(path):
            answer = self._client.request(
                path,
                method,
                microversion=microversion,
                json=json,
                raise_exc=False,
                headers={'Accept': 'application/json'},
                timeout=_TIMEOUT,
                connect_retries=RETRIES,
                connect_retry_delay=self._retry_delay,
                status_code_retries=RETRIES,
                status_code_retry_delay=self._retry_delay,
                retriable_status_codes=list(RETRIABLE),
            )
        if answer.status_code not in accept:
            raise self._failure(method, path, answer)
        return answer

    def get(self, path: str, microversion: str | None = None) -> Any:
        """Call the API and return the JSON object it answers with.

        :param path: Path and query string below the endpoint.
        :param microversion: The microversion to ask for.
        :raises ServiceError: or the one of its kinds that says what happened.
        """
        answer = self.request('GET', path, microversion)
        return self.decode(answer, path)

    def decode(self, answer: requests.Response, path: str) -> dict[str, Any]:
        """Return the JSON object of an answer.

        :param answer: The answer.
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
                f'answered {_short(path)} with something that is not a JSON '
                f'object: {_short(answer.text)!r}; is this the right '
                'endpoint?',
            )
        return document

    def translated(self, path: str) -> '_Translation':
        """Return a context that turns keystoneauth's errors into ours.

        :param path: What is asked, for the message.
        """
        return _Translation(self, path)

    def _failure(
        self, method: str, path: str, answer: requests.Response
    ) -> exception.ServiceError:
        status, where = answer.status_code, self.endpoint
        said = _detail(answer)
        if status in (401, 403):
            return exception.ServiceDenied(
                self.name,
                where,
                f'denied {method} {_short(path)} with {status}: {said}; use '
                'credentials with the admin or service role.',
            )
        if status == 414 or (
            status in (400, 431)
            and len(path) > _LONG_QUERY
            and not _is_json(answer)
        ):
            return self.too_long(path, f'answered {status}')
        if status == 400:
            return exception.BadQuery(
                self.name, where, f'calls the request invalid (400): {said}'
            )
        return exception.ServiceError(
            self.name,
            where,
            f'answered {method} {_short(path)} with {status}: {said}',
        )

    def too_long(self, path: str, happened: str) -> exception.QueryTooLong:
        """Return the error for a query that no web server let through.

        :param path: Path and query string.
        :param happened: What the server did.
        """
        return exception.QueryTooLong(
            self.name,
            self.endpoint,
            f'{happened} to a request line of {len(path):,} bytes; the web '
            'server before it takes less (4,094 bytes with gunicorn, 4,096 '
            'with uWSGI, 8,190 with Apache by default): raise that limit, or '
            'forbid fewer aggregates.',
        )


class _Translation:
    """Turns keystoneauth's errors into ours."""

    def __init__(self, service: Service, path: str) -> None:
        self._service = service
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: object, exc: BaseException | None, traceback: object
    ) -> None:
        name = self._service.name
        if isinstance(exc, ks_exceptions.ConnectFailure):
            where = self._service.endpoint
            if len(self._path) > _LONG_QUERY and _was_reset(exc):
                raise self._service.too_long(
                    self._path, 'closed the connection'
                ) from exc
            raise exception.ServiceUnreachable(
                name, where, f'can not be reached: {exc}'
            ) from exc
        if isinstance(exc, ks_exceptions.Unauthorized):
            raise exception.ServiceDenied(
                'Keystone',
                None,
                f'does not accept the credentials: {exc}',
            ) from exc
        if isinstance(exc, ks_exceptions.EndpointNotFound):
            raise exception.ServiceError(
                name,
                None,
                f'has no endpoint in the service catalog: {exc}; look at '
                'region and interface.',
            ) from exc
        if isinstance(exc, ks_exceptions.ClientException):
            raise exception.ServiceError(
                name, None, f'can not be asked: {exc}'
            ) from exc


def _was_reset(exc: BaseException) -> bool:
    return 'reset' in str(exc).lower() or 'aborted' in str(exc).lower()


def _is_json(answer: requests.Response) -> bool:
    return 'json' in answer.headers.get('Content-Type', '')


def _detail(answer: requests.Response) -> str:
    """Return what the service itself says went wrong."""
    try:
        document = answer.json()
        if 'errors' in document:
            return ' '.join(document['errors'][0]['detail'].split())
        [error] = document.values()
        return str(error['message'])
    except (ValueError, LookupError, TypeError, AttributeError):
        return _short(answer.text) or str(answer.reason)


def _short(text: str) -> str:
    text = ' '.join(text.split())
    return text if len(text) <= 200 else f'{text[:200]}...'
