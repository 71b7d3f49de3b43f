# SPDX-License-Identifier: Apache-2.0
"""Builds one-sentence messages for connection errors.

The exceptions of keystoneauth quote those of requests, which quote those of
urllib3, and so on. The root cause is at the end of that chain. Those about
invalid URLs quote what they take for the host or the port, which may be a
piece of a password: they are not quoted.
"""

from collections.abc import Iterator
import dataclasses
import http.client
import ssl

from keystoneauth1 import exceptions as ks_exceptions
import requests

from isolate_aggregates import exception
from isolate_aggregates.text import public_url, short

_INVALID_URL = (
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
    requests.exceptions.MissingSchema,
)


@dataclasses.dataclass(frozen=True)
class Options:
    """The options that messages name."""

    timeout: str = '--timeout or [isolate_aggregates] timeout'
    cafile: str = '--os-cacert or [isolate_aggregates] cafile'
    endpoint: str = '--os-{service_type}-endpoint-override'


# The options of commands.
OF_COMMANDS = Options()


def unreachable(
    name: str,
    where: str | None,
    exc: BaseException,
    options: Options = OF_COMMANDS,
) -> exception.ServiceUnreachable:
    """Return the error for a service that did not answer."""
    if any('WRONG_VERSION_NUMBER' in str(link) for link in _chain(exc)):
        problem = (
            'does not speak TLS there; check that its URL begins with http:, '
            'not https:, and has the right port.'
        )
    elif _has(exc, ssl.SSLError, requests.exceptions.SSLError):
        problem = (
            f'cannot be trusted: {_reason(exc)}; check its certificate, and '
            f'specify the CA that signed it with {options.cafile}.'
        )
    elif _has(exc, requests.exceptions.Timeout):
        problem = (
            'does not answer in time; check whether it is overloaded, or '
            f'allow more seconds with {options.timeout}.'
        )
    elif _has(exc, ks_exceptions.ConnectionError):
        problem = (
            f'cannot be reached: {_reason(exc)}; check that it is '
            'running and that this is its address.'
        )
    else:
        # For example, the CA file does not exist.
        problem = f'cannot be asked: {_reason(exc)}.'
    return exception.ServiceUnreachable(name, where, problem)


def was_closed(exc: BaseException) -> bool:
    """Return whether the server closed the connection without an answer."""
    return _has(
        exc, ConnectionResetError, ConnectionAbortedError, BrokenPipeError
    )


def from_keystone(
    where: str | None, exc: BaseException, options: Options = OF_COMMANDS
) -> exception.ServiceError:
    """Return the error for a failure to get a token."""
    where = public_url(where) if where else None
    if _has(exc, ks_exceptions.ConnectionError) or isinstance(exc, OSError):
        return unreachable('Keystone', where, exc, options)
    if isinstance(exc, ks_exceptions.Unauthorized):
        return exception.ServiceDenied(
            'Keystone',
            where,
            f'does not accept the credentials: {_message(exc)}; check the '
            'user, the password, the project and their domains.',
        )
    if isinstance(exc, ks_exceptions.HttpError):
        return exception.ServiceError(
            'Keystone',
            where,
            f'answered {exc.http_status}: {_message(exc)}; check the auth URL '
            'and the credentials.',
        )
    if isinstance(exc, ks_exceptions.ClientException) or (
        type(exc) is Exception
    ):
        reason = short(exc)
    elif type(exc) is ValueError:
        # urllib raises it for invalid URLs.
        reason = 'the auth URL, or a URL in the service catalog, is invalid'
    else:
        reason = short(repr(exc))
    return exception.ServiceError(
        'Keystone',
        where,
        f'gave no token: {reason}; check the auth URL and the credentials.',
    )


def _message(exc: ks_exceptions.HttpError) -> str:
    return short(str(exc).replace(f' (HTTP {exc.http_status})', ''))


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes, the last one first."""
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__


def _has(exc: BaseException, *kinds: type[BaseException]) -> bool:
    return any(isinstance(link, kinds) for link in _chain(exc))


def _reason(exc: BaseException) -> str:
    for link in _chain(exc):
        if isinstance(link, _INVALID_URL):
            return 'this URL is invalid (user name and password are not shown)'
        if isinstance(link, ssl.SSLCertVerificationError):
            return short(link.verify_message)
        if isinstance(link, http.client.RemoteDisconnected):
            return short(link)
        if isinstance(link, OSError) and link.strerror:
            return short(link.strerror)
    return short(exc)
