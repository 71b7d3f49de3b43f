# SPDX-License-Identifier: Apache-2.0
"""The exit statuses, each with one meaning in all commands."""

from collections.abc import Mapping
import enum

from isolate_aggregates import exception
from isolate_aggregates_tools import errors


class ExitStatus(enum.IntEnum):
    """An exit status; ``doc/source/cli/exit-status.rst`` describes them."""

    DONE = 0
    ERROR = 1
    INVALID = 2
    # Something is left to do.
    LEFT = 3
    # The answer is no, or something was found.
    NO = 4
    # Those of effect show --detailed-exitcode. No failure has them: a pipeline
    # that accepts one accepts no mistake.
    DISPLACED = 5
    CHANGED = 6
    # Nova refuses a step of a change.
    REFUSED_CHANGE = 7
    # Not all of a change was understood.
    NOT_UNDERSTOOD = 8
    # The tool of a rehearsal failed.
    TOOL_FAILED = 9


# The errors with a status of their own; the error says why.
_OF_ERRORS: tuple[tuple[type[Exception], ExitStatus], ...] = (
    # A filter or nova-api refuses the request.
    (exception.RequestRefused, ExitStatus.NO),
    (errors.RequestUnacceptable, ExitStatus.NO),
    (errors.InvalidArgument, ExitStatus.INVALID),
)
WITH_STATUS = tuple(kind for kind, _ in _OF_ERRORS)


def of_error(error: BaseException | None) -> ExitStatus | None:
    """Return the status of an error; None if it has none of its own."""
    return next(
        (status for kind, status in _OF_ERRORS if isinstance(error, kind)),
        None,
    )


# Of what a change has several of, the first counts.
_PRECEDENCE = (
    ExitStatus.NOT_UNDERSTOOD,
    ExitStatus.TOOL_FAILED,
    ExitStatus.REFUSED_CHANGE,
    ExitStatus.NO,
    ExitStatus.DISPLACED,
    ExitStatus.CHANGED,
)


def first_of(found: Mapping[ExitStatus, object]) -> ExitStatus:
    """Return the status of a change: the first of those that are true.

    :param found: Whether each status is that of the change.
    """
    return next(
        (status for status in _PRECEDENCE if found.get(status)),
        ExitStatus.DONE,
    )
