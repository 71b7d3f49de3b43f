# SPDX-License-Identifier: Apache-2.0
"""The errors of the tools."""

from collections.abc import Iterable, Sequence

from isolate_aggregates.exception import IsolateAggregatesError
from isolate_aggregates.suggestions import meant


class CredentialsError(IsolateAggregatesError):
    """There are no credentials for the cloud, or they are invalid."""


class NoCredentialsError(CredentialsError):
    """There are no credentials for a cloud.

    :param instead: An alternative that needs no credentials; may be empty.
    """

    def __init__(self, instead: str = '') -> None:
        super().__init__(
            'There are no credentials for a cloud: give --os-cloud, OS_* '
            'variables or [isolate_aggregates] auth_type with its options'
            f'{instead and f", or {instead}"}.'
        )


class ChangedMeanwhile(IsolateAggregatesError):
    """Other clients keep changing the same objects.

    :param steps: The last changes, which may have been undone.
    """

    def __init__(self, steps: Iterable[str]) -> None:
        self.steps = tuple(steps)
        super().__init__(
            'Another command is changing the same objects; these changes may '
            f'have been undone: {"; ".join(self.steps)}. Wait until it has '
            'ended, and run this command again.'
        )


class _FileError(IsolateAggregatesError):
    """A file cannot be used.

    :param problems: The problems, each with its place in the file.
    :param of_file: The problem of the file as a whole, as a predicate.
    """

    kind = ''

    def __init__(
        self, path: object, problems: Sequence[str] = (), of_file: str = ''
    ) -> None:
        self.path = str(path)
        self.problems = tuple(problems) or (of_file,)
        super().__init__(
            f'{path} {of_file}.'
            if of_file
            else f'{self.kind}{path}: {"; ".join(self.problems)}.'
        )


class CloudFileError(_FileError):
    """A cloud file cannot be read, or does not describe a cloud."""

    kind = 'Cloud file '


class ExpectationsFileError(_FileError):
    """A file of expectations cannot be read or written, or is invalid."""


class ChangesFileError(IsolateAggregatesError):
    """A file of another tool cannot be read, or describes no changes.

    :param problem: The place in the file and what is wrong there, with what
        separates it from the name of the file.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f'{path}{problem}.')


class NotUnique(IsolateAggregatesError):
    """A name is ambiguous."""

    def __init__(self, kind: str, name: str, ids: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.ids = tuple(sorted(ids))
        super().__init__(
            f'The {kind} name {name!r} is not unique; name one of '
            f'{", ".join(self.ids)} instead.'
        )


class EmbeddedPlacementUnavailable(IsolateAggregatesError):
    """The embedded Placement is not installed or already in use."""


class ReportError(IsolateAggregatesError):
    """The report cannot be written."""

    def __init__(self, path: object, problem: str) -> None:
        self.path = str(path)
        self.problem = problem
        super().__init__(f'The report cannot be written to {path}: {problem}.')


class LedgerError(IsolateAggregatesError):
    """A ledger file cannot be read or written."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f'Ledger file {path}: {problem}.')


class LogError(IsolateAggregatesError):
    """A log file cannot be read."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f'Log file {path} cannot be read: {problem}.')


class LogFileError(IsolateAggregatesError):
    """The log of this program cannot be written."""

    def __init__(self, path: str, problem: str | None) -> None:
        super().__init__(f'Log file {path} cannot be written: {problem}.')


class RecordNotFound(IsolateAggregatesError):
    """Log files have no record of a request.

    :param not_read: What of them was not read, as sentences.
    """

    def __init__(
        self, request: str, paths: Sequence[str], not_read: Sequence[str]
    ) -> None:
        self.request = request
        self.paths = tuple(paths)
        verb = 'has' if len(self.paths) == 1 else 'have'
        rest = f'; not read: {", ".join(not_read)}' if not_read else ''
        super().__init__(
            f'{" and ".join(paths)} {verb} no record of request '
            f'{request!r}{rest}.'
        )


class MetricsError(IsolateAggregatesError):
    """Metrics cannot be computed, served or written."""


class InvalidRequest(IsolateAggregatesError):
    """A flavor, image or argument has an invalid value."""


class InvalidArgument(IsolateAggregatesError):
    """An argument whose value could not be checked when it was parsed."""


class RequestUnacceptable(InvalidRequest):
    """Nova would create no server with this flavor, image or zone."""


class NotFound(IsolateAggregatesError):
    """An object does not exist in the cloud.

    :param place: The service or file that was searched.
    :param known: The names that exist, one of which may be meant.
    :param advice: What to do about it.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        place: str,
        known: Iterable[str] = (),
        advice: str = '',
    ) -> None:
        self.kind = kind
        self.name = name
        super().__init__(
            f'There is no {kind} with the name or id {name!r} in {place}'
            f'{meant(name, known)}{"; " if advice else ""}{advice}.'
        )
