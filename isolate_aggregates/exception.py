# SPDX-License-Identifier: Apache-2.0
"""All exceptions of this package, with a common base class.

Each exception has its data as attributes and builds the message from them.
Exceptions of other libraries are translated where they occur, so that callers
do not depend on these libraries.
"""

from collections.abc import Iterable

from isolate_aggregates import web_servers
from isolate_aggregates.text import escaped


class IsolateAggregatesError(Exception):
    """An expected error; the message says what is wrong and what to do."""

    def __str__(self) -> str:
        """Return the message with control characters escaped."""
        return escaped(super().__str__())


class ConfigError(IsolateAggregatesError):
    """A configuration value cannot be used.

    :param option: The option, as ``[group] name``.
    """

    def __init__(self, option: str, problem: str) -> None:
        self.option = option
        self.problem = problem
        super().__init__(f'Configuration option {option} {problem}')


class FilterError(IsolateAggregatesError):
    """A request filter cannot be loaded or violates its contract."""

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        self.problem = problem
        super().__init__(f'Request filter {name} {problem}')


class RequestRefused(IsolateAggregatesError):
    """No host may serve the request, so Placement is not queried.

    :param reasons: All reasons, in the order of the filters.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(map(escaped, reasons))
        super().__init__(f'Request refused: {"; ".join(self.reasons)}.')


class QueryNotShortened(RequestRefused):
    """The query to Placement is too long and cannot be shortened enough."""


class AggregatesUnreadable(IsolateAggregatesError):
    """The host aggregates cannot be read, and the cached ones are too old.

    :param age: The seconds since they were last read; None if never.
    """

    def __init__(self, cause: object, age: float | None) -> None:
        self.cause = cause
        self.age = age
        last = (
            f'they were last read {age:.0f} s ago'
            if age is not None
            else 'they were never read'
        )
        super().__init__(
            f'The host aggregates cannot be read ({str(cause).rstrip(".")}); '
            f'{last}.'
        )


class ServiceError(IsolateAggregatesError):
    """An OpenStack service did not give a usable answer.

    :param problem: What happened and what to check.
    """

    def __init__(self, service: str, url: str | None, problem: str) -> None:
        self.service = service
        self.url = url
        self.problem = problem
        where = f' at {url}' if url else ''
        super().__init__(f'{service}{where} {problem}')


class ServiceUnreachable(ServiceError):
    """The service did not answer: connection, DNS, timeout or TLS error."""


class ServiceDenied(ServiceError):
    """The service answered 401 or 403."""


class ServiceTooOld(ServiceError):
    """The service does not support a required microversion.

    :param purpose: The feature that requires it, with its release.
    """

    def __init__(
        self,
        service: str,
        url: str | None,
        maximum: str | None,
        needed: str,
        purpose: str,
    ) -> None:
        self.maximum = maximum
        self.needed = needed
        self.purpose = purpose
        offers = (
            f'offers microversions up to {maximum}'
            if maximum
            else 'is too old'
        )
        super().__init__(service, url, f'{offers}; {purpose} needs {needed}.')


class ServiceConflict(ServiceError):
    """The service answered 409: a conflict with another client."""


class ServiceNotFound(ServiceError):
    """The service answered 404: the object does not exist."""


class ServiceFailed(ServiceError):
    """The service answered 500: an internal error."""


class BadQuery(ServiceError):
    """The service answered 400: the request is invalid."""


class QueryTooLong(ServiceError):
    """The query is too long for the web server in front of the service.

    :param happened: The failure, for example ``answered 414``.
    :param length: The length of the query in bytes.
    """

    def __init__(
        self, service: str, url: str | None, happened: str, length: int
    ) -> None:
        self.happened = happened
        self.length = length
        super().__init__(
            service,
            url,
            f'{happened}: the query of {length:,} bytes is too long. By '
            f'default the maximum is about {web_servers.UWSGI:,} for uWSGI, '
            f'{web_servers.GUNICORN:,} for gunicorn, {web_servers.APACHE:,} '
            f'for Apache and {web_servers.HAPROXY:,} for HAProxy; '
            '"isolate-aggregates-status upgrade check" measures it. Raise '
            'that limit, or set [isolate_aggregates] max_query_length below '
            'it.',
        )


def without_frames(error: BaseException) -> None:
    """Remove the tracebacks of an error and of its causes.

    Use it for an error that is kept: the frames of a traceback keep all
    variables of the callers.
    """
    pending: list[BaseException | None] = [error]
    visited: set[int] = set()
    while pending:
        one = pending.pop()
        if one is not None and id(one) not in visited:
            visited.add(id(one))
            one.__traceback__ = None
            pending += one.__cause__, one.__context__


def ends_process(error: BaseException) -> bool:
    """Return whether an exception ends a process or thread from outside.

    Any other one is a failure of the code that raises it, also if it is no
    subclass of Exception: a plugin may call ``sys.exit()``. oslo.service ends
    with a SystemExit that has the number of a signal, and eventlet with a
    GreenletExit; neither is imported here.
    """
    return (
        isinstance(error, (KeyboardInterrupt, GeneratorExit))
        or (isinstance(error, SystemExit) and hasattr(error, 'signo'))
        or type(error).__name__ == 'GreenletExit'
    )
