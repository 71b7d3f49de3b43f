# SPDX-License-Identifier: Apache-2.0
"""The exit statuses, each with one meaning in all commands."""

import enum

from isolate_aggregates import exception
from isolate_aggregates.tools import errors

# A request that a filter or nova-api refuses; the error says why.
REFUSED = (exception.RequestRefused, errors.RequestUnacceptable)


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
    # A part of a file with changes was not read.
    UNREAD = 8
