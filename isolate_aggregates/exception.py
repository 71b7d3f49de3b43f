# SPDX-License-Identifier: Apache-2.0
"""Every error this package raises, under one base class.

Each error keeps its facts as attributes and builds the one sentence an
operator sees from them. Errors of other libraries are translated where they
come in, so callers need not know which library does the work.
"""

from collections.abc import Iterable, Sequence

from isolate_aggregates.text import escaped, meant


class IsolateAggregatesError(Exception):
    """Something foreseeable went wrong; the text says what and what to do."""

    def __str__(self) -> str:
        """Return the text, in which every character can be seen."""
        return escaped(super().__str__())


class ConfigError(IsolateAggregatesError):
    """A configuration value cannot be used.

    :param option: The option, as ``[group] name``.
    :param problem: What is wrong and what would be right.
    """

    def __init__(self, option: str, problem: str) -> None:
        self.option = option
        self.problem = problem
        super().__init__(f'Configuration option {option} {problem}')


class ConfigFilesError(IsolateAggregatesError):
    """The configuration files cannot be read."""


class CredentialsError(IsolateAggregatesError):
    """There are no credentials for the cloud, or they are invalid."""


class NoCredentialsError(CredentialsError):
    """There are no credentials for a cloud.

    :param instead: What can be done without them; empty if nothing can.
    """

    def __init__(self, instead: str = '') -> None:
        super().__init__(
            'There are no credentials for a cloud: give --os-cloud, OS_* '
            'variables or [isolate_aggregates] auth_type with its options'
            f'{instead and f", or {instead}"}.'
        )


class FilterError(IsolateAggregatesError):
    """A request filter cannot be loaded or does not keep its contract.

    :param name: The name of the filter's entry point.
    :param problem: What is wrong with it.
    """

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        self.problem = problem
        super().__init__(f'Request filter {name} {problem}')


class RequestRefused(IsolateAggregatesError):
    """No host may serve this request, so Placement is not even asked.

    :param reasons: Every reason found, in the order of the filters.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(map(escaped, reasons))
        super().__init__(f'Request refused: {"; ".join(self.reasons)}.')


class QueryNotShortened(RequestRefused):
    """The query to Placement would be too long, whatever is tried."""


class InvalidRequest(IsolateAggregatesError):
    """A flavor, image or argument holds a value that has no meaning."""


class AggregatesUnreadable(IsolateAggregatesError):
    """The host aggregates cannot be read, and nothing may take their place.

    :param cause: Why they cannot be read.
    :param age: How many seconds ago they were read last; None if never.
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


class ChangedMeanwhile(IsolateAggregatesError):
    """Others change the same thing at the same time.

    :param steps: What was done last and may have been undone again.
    """

    def __init__(self, steps: Iterable[str]) -> None:
        self.steps = tuple(steps)
        super().__init__(
            'Another command changes the same thing at the same time; these '
            f'changes may not have lasted: {"; ".join(self.steps)}. Wait '
            'until it has ended, and run this again.'
        )


class CloudFileError(IsolateAggregatesError):
    """A cloud file cannot be read, or does not describe a cloud.

    :param path: The file.
    :param problems: What is wrong, each naming the place in the file.
    """

    def __init__(self, path: object, problems: Sequence[str]) -> None:
        self.path = str(path)
        self.problems = tuple(problems)
        super().__init__(f'Cloud file {path}: {"; ".join(self.problems)}.')


class NotFound(IsolateAggregatesError):
    """The cloud has nothing of that name.

    :param kind: What was looked for: ``flavor``, ``image``, ``host`` ...
    :param name: The name or id that was asked for.
    :param place: Where it was looked for.
    :param known: The names there are, of which one may be meant.
    """

    def __init__(
        self, kind: str, name: str, place: str, known: Iterable[str] = ()
    ) -> None:
        self.kind = kind
        self.name = name
        super().__init__(
            f'There is no {kind} with the name or id {name!r} in {place}'
            f'{meant(name, known)}.'
        )


class NotUnique(IsolateAggregatesError):
    """A name stands for several things and only one can be meant.

    :param kind: What was looked for.
    :param name: The name that was asked for.
    :param ids: What the name may mean.
    """

    def __init__(self, kind: str, name: str, ids: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.ids = tuple(sorted(ids))
        super().__init__(
            f'The {kind} name {name!r} is not unique; name one of '
            f'{", ".join(self.ids)} instead.'
        )


class ServiceError(IsolateAggregatesError):
    """An OpenStack service did not give a usable answer.

    :param service: Its name, such as ``Nova``.
    :param url: The endpoint or the address that was called.
    :param problem: What happened, and what to look at.
    """

    def __init__(self, service: str, url: str | None, problem: str) -> None:
        self.service = service
        self.url = url
        self.problem = problem
        where = f' at {url}' if url else ''
        super().__init__(f'{service}{where} {problem}')


class ServiceUnreachable(ServiceError):
    """No answer at all: not listening, not resolvable, timed out, bad TLS."""


class ServiceDenied(ServiceError):
    """The service answered 401 or 403."""


class ServiceTooOld(ServiceError):
    """The service does not speak the microversion that is needed.

    :param service: The service.
    :param url: Its endpoint.
    :param maximum: The newest microversion it offers, if it said so.
    :param needed: The microversion that is needed.
    :param purpose: What it is needed for, and the release that brought it.
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
    """The service answered 409: another client changed the same thing."""


class ServiceNotFound(ServiceError):
    """The service answered 404: the thing is not there, or not any more."""


class ServiceFailed(ServiceError):
    """The service answered 500: it failed over the request."""


class BadQuery(ServiceError):
    """The service answered 400: it says the question is invalid."""


class QueryTooLong(ServiceError):
    """The query is longer than the web server before the service takes.

    :param service: The service.
    :param url: Its endpoint.
    :param happened: What the web server did, such as ``answered 414``.
    :param length: The bytes of the query.
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
            'default the most is about 1,600 for uWSGI, 4,050 for gunicorn, '
            '8,150 for Apache and 14,700 for HAProxy; "isolate-aggregates '
            'limit show" measures it. Raise that limit, or set '
            '[isolate_aggregates] max_query_length below it.',
        )


class EmbeddedPlacementUnavailable(IsolateAggregatesError):
    """The embedded Placement is not installed or already in use."""


class ReportError(IsolateAggregatesError):
    """The report cannot be written.

    :param path: Where to.
    :param problem: What is wrong.
    """

    def __init__(self, path: object, problem: str) -> None:
        self.path = str(path)
        self.problem = problem
        super().__init__(f'The report cannot be written to {path}: {problem}.')


class MetricsError(IsolateAggregatesError):
    """Metrics cannot be worked out, served or written."""


class ReservationError(IsolateAggregatesError):
    """A reservation cannot be made, read or changed.

    :param reservation: Its id.
    :param problem: What is wrong.
    """

    def __init__(self, reservation: str, problem: str) -> None:
        self.reservation = reservation
        self.problem = problem
        super().__init__(f'Reservation {reservation} {problem}.')


class ReservationHostError(IsolateAggregatesError):
    """A host cannot be made one for reservations, or stop being one.

    :param host: Its name.
    :param problem: What is wrong.
    """

    def __init__(self, host: str, problem: str) -> None:
        self.host = host
        self.problem = problem
        super().__init__(f'Host {host} {problem}.')
